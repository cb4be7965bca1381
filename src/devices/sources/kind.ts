/** What every kind of source has: a pure function from a request to samples, each of one device. */

import { isUtf8 } from 'node:buffer';
import type { Receipt } from '../../commands/network-store.js';
import { ApiError, badRequest } from '../../core/errors.js';
import { parseExactJson } from '../../core/exact-json.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { findJsonFault } from '../../core/json-fault.js';
import { JsonScan } from '../../core/json-scan.js';
import { LIMITS } from '../../core/limits.js';
import { type SourceMap, scale } from '../../core/source.js';
import { parseDeviceTime } from '../../core/time.js';
import type { Zone } from '../../core/zone.js';

/** A request to the entrance of a source, without its key. */
export interface SourceRequest {
  /** A parameter that is given more than once has a list. */
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Empty for a GET. */
  readonly body: Buffer;
  /** The body, if it is JSON that was parsed before: a large one is parsed in pieces. */
  readonly parsed?: unknown;
  readonly map: SourceMap;
  /** Of times without a zone; null for UTC. */
  readonly zone: Zone | null;
  readonly nowMs: number;
}

/** What one device measured. */
export interface Sample {
  /** What may be the own id of its object, the best first; the first one names an object that is registered. */
  readonly devices: readonly string[];
  /** In the form of `POST /objects/:id/packets`. */
  readonly packet: JsonObject;
  /** Whether the sender omits what is 0, false or "", so that parameters of the model that are missing have such values. */
  readonly omitsZeros?: boolean;
  /** What the sender calls the device when it takes a command for it. */
  readonly commandAddress?: string | undefined;
}

/** What a system says of a command that it has taken for a device. */
export interface DeviceReceipt extends Receipt {
  readonly devices: readonly string[];
}

/** A sample, or why there is none. */
export type Item = Sample | { readonly reason: string };

/** The body of an answer that is not the usual one. */
export interface Answer {
  readonly type: string;
  readonly body: string;
}

/** What a request contains. */
export interface Readout {
  /** Large bodies are read one by one, so that other requests run in between. */
  readonly items: Iterable<Item>;
  readonly receipt?: DeviceReceipt | null;
  /** What the sender takes as done; null for `{success, count}`. */
  readonly answer: Answer | null;
  /** Whether the sender sends the whole request again until it is done, so that a sample which cannot be stored would block all later ones. */
  readonly resends: boolean;
  /** Whether it sends again those of all devices, in one queue, so that an unknown device would block the others. */
  readonly sharesQueue?: boolean;
}

export interface SourceKind {
  /** Throws a 400 for what is not of the kind. */
  readonly read: (request: SourceRequest) => Readout;
  /** Whether a parsed body is of this kind. */
  readonly matches: (body: unknown) => boolean;
  /** Of a sender that would send a sample which cannot be read forever, and nothing after it. */
  readonly endless?: {
    /** What it takes as done; null for `{success, count}`. */
    readonly answer: Answer | null;
    /** Whether a request has such a sample of a device: others are refused, since the sender is set up wrong. */
    readonly isMeant: (request: SourceRequest) => boolean;
  };
  /** Whether it also answers GET. */
  readonly isQuery?: boolean;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** Parses the body as JSON. Throws a 400 that names the place. */
export function parseBody({ body, parsed }: Pick<SourceRequest, 'body' | 'parsed'>): unknown {
  if (parsed !== undefined) return parsed;
  if (body.length === 0) throw badRequest('the body is empty: expected JSON');
  if (!isUtf8(body)) throw badRequest('the body is not UTF-8');
  const fault = new JsonScan().take(body);
  if (fault !== null) throw badRequest(`the body: ${fault}`);
  const text = body.toString().replace(/^\ufeff/, '');
  try {
    return parseExactJson(text);
  } catch {
    throw invalidJson(text);
  }
}

export function invalidJson(text: string): ApiError {
  const fault = findJsonFault(text);
  const place = fault === text.length ? ': it ends too early' : `: there is something unexpected at character ${fault}`;
  return badRequest(`the body is not valid JSON${fault === null ? '' : place}`);
}

/** A list of the items of a body that is one or a list of them. Throws a 400 for too many. */
export function toList(body: unknown): readonly unknown[] {
  if (!Array.isArray(body)) return [body];
  if (body.length > LIMITS.packetsPerRequest)
    throw badRequest(`the body: more than ${LIMITS.packetsPerRequest} packets`);
  return body;
}

/** Reads each of the items; one that cannot be read costs none of the others. */
export function* readEach<T>(items: readonly T[], read: (item: T) => Item): Generator<Item, void> {
  for (const item of items) yield readOr(item, read);
}

function readOr<T>(item: T, read: (item: T) => Item): Item {
  try {
    return read(item);
  } catch (error) {
    // What is too large is so as a whole.
    if (error instanceof ApiError && error.status === 400) return { reason: error.message };
    throw error;
  }
}

/** A parameter of the query; the last one if it is given more than once. */
export const parameter = ({ query }: Pick<SourceRequest, 'query'>, name: string): string | undefined =>
  lastOf(query[name]);

export const lastOf = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'object' ? value.at(-1) : value;

/** The body as JSON; null for what is none. */
export function parseOrNull({ body }: Pick<SourceRequest, 'body'>): unknown {
  // A large body is not parsed only to say what it looks like.
  if (body.length > LIMITS.packetBytes) return null;
  try {
    return parseExactJson(body.toString());
  } catch {
    return null;
  }
}

export const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {});

const REASON_CHARACTERS = 500;

export const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/** What another system says of a failure. */
export const toReason = (value: unknown): string =>
  isText(value) ? value.slice(0, REASON_CHARACTERS) : 'the network gave no reason';

/** No number has more characters, and a pattern may take their square. */
const NUMBER_CHARACTERS = 400;

/** A number, or text of one. */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'string' || value.length > NUMBER_CHARACTERS) return undefined;
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(value.trim())) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

const KNOT = { factor: 1.852, offset: 0 };
const METRE_PER_SECOND = { factor: 3.6, offset: 0 };

const scaled = (value: unknown, unit: typeof KNOT): number | undefined => {
  const number = toNumber(value);
  // Apple's Core Location and others write -1 for an unknown value.
  return number === undefined || number < 0 ? undefined : scale(number, unit);
};

/** km/h; undefined for an unknown speed. */
export const fromKnots = (value: unknown): number | undefined => scaled(value, KNOT);
export const fromMetresPerSecond = (value: unknown): number | undefined => scaled(value, METRE_PER_SECOND);

/** Whether a decoder has found something. */
export const hasMembers = (value: unknown): value is JsonObject => isObject(value) && Object.keys(value).length > 0;

/** A value that is not below 0; undefined otherwise: the senders write -1 for an unknown one. */
export const known = (value: unknown): number | undefined => {
  const number = toNumber(value);
  return number === undefined || number < 0 ? undefined : number;
};

/** Seconds, ms or ISO 8601 in ms; what is no time is left to the check of packets, which says so. */
export const toTime = (value: Json | undefined): Json | undefined =>
  value === undefined || value === null || value === '' ? undefined : (parseDeviceTime(value) ?? value);

/** No time has more. */
const TIME_CHARACTERS = 100;
const HAS_ZONE = /(?:Z|UTC?|GMT|[+-]\d\d(?::?\d\d)?)(?: \([^()]*\))?$/i;

/** A time of the source's zone in ms if it is text without a zone; others as they are. */
export function inZone(value: Json, zone: Zone | null): Json {
  if (
    zone === null ||
    typeof value !== 'string' ||
    value.length > TIME_CHARACTERS ||
    HAS_ZONE.test(value.replace(/^\d{4}-\d\d-\d\d/, ''))
  )
    return value;
  const isDigits = /^[\d.+-]+$/.test(value.trim()) && !/^\d{4}-/.test(value.trim());
  const localMs = isDigits ? null : parseDeviceTime(value);
  return localMs === null ? value : zone.toInstant(localMs);
}

/** Throws a 400 for what is not within so many degrees. */
export function toDegrees(name: string, value: unknown, most: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = toNumber(value);
  if (number !== undefined && Math.abs(number) <= most) return number;
  throw badRequest(`${name}: expected degrees, from -${most} to ${most}`);
}

/** A part from 0 to 1 in percent. */
export const percent = (value: unknown): number | undefined => {
  const part = known(value);
  return part === undefined ? undefined : scale(part, { factor: 100, offset: 0 });
};

/** The fields that have a value. */
export function present(fields: Readonly<Record<string, unknown>>): JsonObject {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(kept) as JsonObject;
}

/** All fields but these. */
export const without = (fields: JsonObject, names: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.has(name)));

/**
 * Dotted names are members (`din.1`). A value whose name begins others, such as `din` beside them, is the member `value`, since it would
 * cost the whole packet: two fields of one place are refused.
 */
export function withPlaces(packet: JsonObject): JsonObject {
  const names = Object.keys(packet);
  if (!names.some((name) => name.includes('.'))) return packet;
  const begun = new Set(names.flatMap(beginnings));
  const placed = Object.entries(packet).map(([name, value]) =>
    begun.has(name) && !isObject(value) ? [`${name}.value`, value] : [name, value],
  );
  return Object.fromEntries(placed);
}

/** `a` and `a.b` of `a.b.c`; none of a name that is too long to be stored. */
function beginnings(name: string): string[] {
  const parts = name.length > LIMITS.jsonDepth * LIMITS.keyCharacters ? [] : name.split('.', LIMITS.jsonDepth + 1);
  return parts.slice(0, -1).map((_, at) => parts.slice(0, at + 1).join('.'));
}

/** The texts and numbers among these as identifiers of a device, each once. One that is too long for an object is cut, but still too long. */
export function identifiers(...values: readonly (Json | undefined)[]): string[] {
  const texts = values.flatMap((value) =>
    (typeof value === 'string' && value.trim() !== '') || typeof value === 'number'
      ? [
          String(value)
            .trim()
            .slice(0, LIMITS.idCharacters + 1),
        ]
      : [],
  );
  return [...new Set(texts)];
}
