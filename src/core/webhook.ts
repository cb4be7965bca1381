/** Parses the settings of webhooks, and selects the fields that are sent. Pure. */
import { badRequest } from './errors.js';
import { EVENT_NAMES, WEBHOOK_EVENTS } from './event-names.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { ID } from './own-id.js';

const WEBHOOK_MODES = ['object', 'batch'] as const;
export type WebhookMode = (typeof WEBHOOK_MODES)[number];

/** The settings of a handler with a `url`. */
export interface WebhookSettings {
  readonly url: string;
  readonly isActive: boolean;
  readonly mode: WebhookMode;
  readonly events: ReadonlySet<string>;
  /** By `_id` or own id; null for all. */
  readonly objects: readonly string[] | null;
  readonly model: string | null;
  readonly labels: readonly string[] | null;
  readonly only: readonly string[] | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Parses the settings; null for a handler without `url`, which is stored but never sent to. Throws a 400 that names the field. */
export function parseWebhook(fields: JsonObject): WebhookSettings | null {
  if (fields.url === undefined || fields.url === null) return null;
  const { model = null } = fields;
  if (model !== null && !(typeof model === 'string' && ID.test(model))) {
    throw badRequest('model: expected the _id of a model');
  }
  return {
    url: parseUrl(fields.url).href,
    isActive: parseActive(fields.active ?? true),
    mode: parseMode(fields.mode ?? 'object'),
    events: parseEvents(fields.events ?? null),
    objects: parseTexts('objects', fields.objects ?? null, LIMITS.webhookObjects),
    model: model === null ? null : model.toLowerCase(),
    labels: parseTexts('labels', fields.labels ?? null, LIMITS.webhookLabels),
    only: parseTexts('only', fields.only ?? null, LIMITS.onlyNames),
    headers: parseHeaders(fields.headers ?? null),
  };
}

/** What `url` is. */
export const WEBHOOK_URL = 'an address such as https://example.com/webhook, of http or https';

/** Throws a 400: not http or https, with a user name or password, or too long. */
export function parseUrl(value: Json): URL {
  const expected = `url: expected ${WEBHOOK_URL}`;
  if (typeof value !== 'string' || !URL.canParse(value)) throw badRequest(expected);
  if (value.length > LIMITS.webhookUrlCharacters) {
    throw badRequest(`url: at most ${LIMITS.webhookUrlCharacters} characters`);
  }
  const url = new URL(value);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw badRequest(expected);
  if (url.username !== '' || url.password !== '') {
    throw badRequest('url: may not contain a user name or a password; use headers instead');
  }
  return url;
}

function parseActive(value: Json): boolean {
  if (typeof value === 'boolean') return value;
  throw badRequest('active: expected true or false');
}

function parseMode(value: Json): WebhookMode {
  if (value === 'object' || value === 'batch') return value;
  throw badRequest(`mode: expected ${WEBHOOK_MODES.join(' or ')}`);
}

/** Without `events`: all of the live feed. */
function parseEvents(value: Json): ReadonlySet<string> {
  if (value === null) return new Set(EVENT_NAMES);
  const names = parseTexts('events', value, 100) ?? [];
  const unknown = names.find((name) => !WEBHOOK_EVENTS.includes(name));
  if (unknown === undefined) return new Set(names);
  throw badRequest(`events: expected a list of ${WEBHOOK_EVENTS.join(', ')}`);
}

function parseTexts(name: string, value: Json, max: number): readonly string[] | null {
  if (value === null) return null;
  const isText = (item: unknown): item is string => typeof item === 'string' && item !== '' && item.length <= 256;
  if (Array.isArray(value) && value.length <= max && value.every(isText)) return [...new Set(value)];
  throw badRequest(`${name}: expected a list of at most ${max} texts`);
}

/** Set by the service or belonging to the connection. */
const OWN_HEADERS =
  /^(host|content-(length|type|encoding)|user-agent|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*|webhook-.*)$/;
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

function parseHeaders(value: Json): Readonly<Record<string, string>> {
  if (value === null) return {};
  if (!isObject(value)) throw badRequest('headers: expected an object of texts');
  const entries = Object.entries(value);
  if (entries.length > LIMITS.webhookHeaders) throw badRequest(`headers: at most ${LIMITS.webhookHeaders}`);
  const headers: Record<string, string> = {};
  for (const [given, text] of entries) {
    const name = given.toLowerCase();
    if (!HEADER_NAME.test(name)) throw badRequest('headers: a name has letters, digits and hyphens');
    if (OWN_HEADERS.test(name)) throw badRequest(`headers.${name}: is set by Vigil`);
    if (typeof text !== 'string' || !HEADER_VALUE.test(text) || text.length > LIMITS.webhookHeaderCharacters) {
      throw badRequest(
        `headers.${name}: expected at most ${LIMITS.webhookHeaderCharacters} visible characters of ASCII`,
      );
    }
    headers[name] = text;
  }
  return headers;
}

const ALWAYS = ['_id', '_oid', 'id', 'time'];

/** Picks the fields of `only` from the data of an event; null if it has none of them. */
export function pickData(data: JsonObject, only: readonly string[]): JsonObject | null {
  if (isObject(data.before) && isObject(data.after)) {
    const before = pickPaths(data.before, only);
    const after = pickPaths(data.after, only);
    if (Object.keys(before).length + Object.keys(after).length === 0) return null;
    return { ...data, before, after };
  }
  // Commands, and objects that appear or disappear, are sent with all fields.
  if (!Object.hasOwn(data, '_oid')) return data;
  const picked = pickPaths(data, only);
  return Object.keys(picked).length === 0 ? null : { ...pickPaths(data, ALWAYS), ...picked };
}

function pickPaths(from: JsonObject, paths: readonly string[]): JsonObject {
  const picked: JsonObject = {};
  for (const path of paths) copyPath(from, picked, path.split('.'));
  return picked;
}

function copyPath(from: JsonObject, to: JsonObject, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(from, name)) return;
  const value = from[name] as Json;
  if (rest.length === 0) to[name] = value;
  else if (isObject(value)) {
    const inner = Object.hasOwn(to, name) && isObject(to[name]) ? { ...(to[name] as JsonObject) } : {};
    copyPath(value, inner, rest);
    if (Object.keys(inner).length > 0) to[name] = inner;
  }
}
