/** Share links: what they show, to whom who has them, and what of packets and objects that leaves. Pure. */
import { ACCESS_FIELDS, mayCallObject, type OwnObject, type PermissionHolder } from './access.js';
import { explainSeconds, parseDuration } from './duration.js';
import { badRequest } from './errors.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { distinctPaths, isPath } from './list.js';
import { memberAt } from './model.js';
import { PACKET_FIELDS } from './packet-fields.js';
import { DAY_MS, MINUTE_MS } from './units.js';

export const LINK_HISTORIES = ['none', '24 h'] as const;
export type LinkHistory = (typeof LINK_HISTORIES)[number];

/** What a link shows. */
export interface LinkTerms {
  readonly objectId: string;
  /** The parameters of packets and the fields of the object, nested ones with dots; null for all parameters, `name` and `status`. */
  readonly fields: readonly string[] | null;
  readonly history: LinkHistory;
  readonly secretHash: string;
  readonly pinHash: string | null;
}

/** From the stored form. */
export function toLinkTerms(stored: JsonObject): LinkTerms {
  const { object, fields, history, secretHash, pinHash } = stored;
  return {
    objectId: String(object),
    fields: fields as string[] | null,
    history: history as LinkHistory,
    secretHash: String(secretHash),
    pinHash: pinHash as string | null,
  };
}

export interface LinkRequest extends Pick<LinkTerms, 'fields' | 'history'> {
  readonly name: string;
  readonly lifetimeMs: number;
  readonly pin: string | null;
}

const NAMES: ReadonlySet<string> = new Set(['name', 'expiresIn', 'fields', 'history', 'pin']);
const PIN = /^\d{4,12}$/;
const LIFETIME = `a duration such as "3 days", or milliseconds; ${LIMITS.linkLifetimeMinMs / MINUTE_MS} minute to ${
  LIMITS.linkLifetimeMaxMs / DAY_MS
} days`;

/** Throws a 400 that names the field; an unknown one too, since a restriction with a mistyped name would restrict nothing. */
export function parseLinkRequest(body: unknown): LinkRequest {
  if (!isObject(body)) throw badRequest('expected an object with a name');
  const unknown = Object.keys(body).find((name) => !NAMES.has(name));
  if (unknown !== undefined) throw badRequest(`${unknown.slice(0, 64)}: a link has no such field`);
  const { name, expiresIn = '1 day', fields = null, history = 'none', pin = null } = body;
  if (typeof name !== 'string' || name.trim() === '') throw badRequest('name: required');
  if (name.length > LIMITS.nameCharacters) {
    throw badRequest(`name: expected at most ${LIMITS.nameCharacters} characters`);
  }
  const lifetimeMs = parseDuration(expiresIn);
  if (
    explainSeconds(expiresIn) !== null ||
    lifetimeMs === null ||
    lifetimeMs < LIMITS.linkLifetimeMinMs ||
    lifetimeMs > LIMITS.linkLifetimeMaxMs
  ) {
    throw badRequest(`expiresIn: ${explainSeconds(expiresIn) ?? `expected ${LIFETIME}`}`);
  }
  if (!LINK_HISTORIES.some((one) => one === history)) {
    throw badRequest(`history: expected ${LINK_HISTORIES.map((one) => `"${one}"`).join(' or ')}`);
  }
  if (pin !== null && !(typeof pin === 'string' && PIN.test(pin))) {
    throw badRequest('pin: expected text of 4 to 12 digits');
  }
  return { name, lifetimeMs, fields: parseLinkFields(fields), history: history as LinkHistory, pin };
}

/** Rights and bookkeeping are nobody's but the users'. */
const NEVER_SHOWN: ReadonlySet<string> = new Set([...ACCESS_FIELDS, 'group']);
/** With it, and the password that its hash is of, anybody sends in the name of the device. */
const DEVICE_LOGIN = /^config\.auth(?:\.|$)/;

function parseLinkFields(fields: Json): string[] | null {
  if (fields === null) return null;
  if (!Array.isArray(fields) || fields.length > LIMITS.linkFields) {
    throw badRequest(`fields: expected a list of at most ${LIMITS.linkFields} names`);
  }
  for (const path of fields) {
    if (typeof path !== 'string' || !isPath(path) || path.split('.').some((name) => UNSAFE.has(name))) {
      throw badRequest('fields: expected names of parameters or of fields of the object');
    }
    const [first = ''] = path.split('.');
    if (NEVER_SHOWN.has(first) || first.startsWith('_') || DEVICE_LOGIN.test(path)) {
      throw badRequest(`fields: ${path} cannot be shared`);
    }
  }
  return distinctPaths(fields as string[]);
}

const UNSAFE: ReadonlySet<string> = new Set(['', '__proto__', 'constructor', 'prototype']);

/** Who may share an object: those who may change it, and create links of it. A link ends when its user no longer may. */
export function mayShare(user: PermissionHolder & Parameters<typeof mayCallObject>[0], object: OwnObject): boolean {
  const may = (method: string, below: readonly string[]): boolean => mayCallObject(user, object, method, below);
  return may('GET', []) && may('PATCH', []) && may('POST', ['links']);
}

/** Of an object, where a link names no fields. */
const USUAL_FIELDS = ['name', 'status'];

export function toShownObject(object: JsonObject, fields: LinkTerms['fields']): JsonObject {
  return pickPaths(withoutDeviceLogin(object), fields ?? USUAL_FIELDS);
}

function withoutDeviceLogin(object: JsonObject): JsonObject {
  if (!isObject(object.config)) return object;
  const { auth: _, ...config } = object.config;
  return { ...object, config };
}

/** The fields of a packet besides its parameters, of which a link shows `time` and `online`. */
const NO_PARAMETERS: ReadonlySet<string> = new Set(PACKET_FIELDS);

export function toShownPacket(packet: JsonObject, fields: LinkTerms['fields']): JsonObject {
  const parameters = Object.fromEntries(Object.entries(packet).filter(([name]) => !NO_PARAMETERS.has(name)));
  const { time = null, online } = packet;
  const shown = fields === null ? parameters : pickPaths(parameters, fields);
  return { ...shown, time, ...(online !== undefined && { online }) };
}

/** Whether a link shows the parameter at a path, or the one above it. */
export function isShownParameter(path: string, fields: LinkTerms['fields']): boolean {
  const [first = ''] = path.split('.');
  if (NO_PARAMETERS.has(first)) return false;
  return fields === null || fields.some((field) => path === field || path.startsWith(`${field}.`));
}

/** The data of an `object-update`; null if nothing changed in what the link shows. */
export function toShownUpdate({ before, after }: JsonObject, fields: LinkTerms['fields']): JsonObject | null {
  const shown = (image: Json | undefined): JsonObject => toShownObject(isObject(image) ? image : {}, fields);
  const update = { before: shown(before), after: shown(after) };
  return JSON.stringify(update.before) === JSON.stringify(update.after) ? null : update;
}

/** Only these members. A name with a dot is a member of that name, if there is one. */
function pickPaths(value: JsonObject, paths: readonly string[]): JsonObject {
  const picked: JsonObject = {};
  for (const path of paths) {
    const names = Object.hasOwn(value, path) ? [path] : path.split('.');
    const found = memberAt(value, names);
    if (found !== undefined) setAt(picked, names, found as Json);
  }
  return picked;
}

function setAt(target: JsonObject, [name = '', ...below]: readonly string[], value: Json): void {
  if (below.length === 0) {
    target[name] = value;
    return;
  }
  const inner = isObject(target[name]) ? target[name] : {};
  target[name] = inner;
  setAt(inner, below, value);
}
