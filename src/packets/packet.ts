/** Converts messages of devices to packets: checked against the object's model, stamped with the server's time. */

import { isId } from '../core/entity.js';
import { ApiError, badRequest } from '../core/errors.js';
import { isRounded } from '../core/exact-json.js';
import { checkJson, isFieldName, isObject, type Json, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { type DataType, type Declarations, memberAt, toType } from '../core/model.js';
import { explainDeviceTime, parseDeviceTime } from '../core/time.js';
import type { Clock } from '../platform/mongo/driver/client.js';
import { judgeTime } from './device-time.js';

/** A checked message of a device. */
export interface Message {
  /** Given by the device to make retries idempotent; null when the service assigns one. */
  readonly id: string | null;
  /** Null for the server's time. */
  readonly timeMs: number | null;
  /** What a wrong clock said instead. */
  readonly deviceTimeMs?: number | undefined;
  readonly online: boolean;
  readonly parameters: JsonObject;
  /** Its place in the array that was sent; undefined for a single packet. */
  readonly index?: number | undefined;
}

/** A packet of an array that cannot be stored. */
export interface Refusal {
  readonly index: number;
  /** Names the field, and what was expected. */
  readonly reason: string;
}

/** A parsed body. */
export interface Batch {
  readonly messages: readonly Message[];
  readonly refused: readonly Refusal[];
}

/** The object of a packet. */
export interface PacketSource {
  readonly objectId: string;
  readonly ownId: string;
  readonly groupId: string;
}

/** docs/reference/history.md describes the fields. `_ts` is in µs, `time` in ms. */
export type Packet = JsonObject & {
  _id: string;
  _ts: number;
  time: number;
  online: boolean;
  _oid: string;
  id: string;
  _gid: string;
};

const SERVICE_FIELDS: ReadonlySet<string> = new Set(['time', 'online', 'id', 'success']);

/** Parses a body: one JSON object, or an array of them. Throws a 400 for a single packet that cannot be stored, or too many. */
export function parseBatch(body: unknown, declared: Declarations, nowMs: number): Batch {
  if (!Array.isArray(body)) return { messages: [parseMessage(body, declared, nowMs)], refused: [] };
  if (body.length > LIMITS.packetsPerRequest) {
    throw badRequest(`the body: more than ${LIMITS.packetsPerRequest} packets`);
  }
  return toBatch(body.map((item, index) => parseItem(item, index, declared, nowMs)));
}

/** Parses an item of an array. */
export function parseItem(item: unknown, index: number, declared: Declarations, nowMs: number): Message | Refusal {
  try {
    return parseMessage(item, declared, nowMs, index);
  } catch (error) {
    if (error instanceof ApiError) return { index, reason: error.message };
    throw error;
  }
}

/** Separates what can be stored from what cannot. */
export function toBatch(items: readonly (Message | Refusal)[]): Batch {
  const messages: Message[] = [];
  const refused: Refusal[] = [];
  for (const item of items) {
    if ('reason' in item) refused.push(item);
    else messages.push(item);
  }
  return { messages, refused };
}

function parseMessage(body: unknown, declared: Declarations, nowMs: number, index?: number): Message {
  if (!isObject(body)) throw badRequest(`${index === undefined ? 'the body' : 'a packet'}: expected a JSON object`);
  checkJson(body, '');
  const { _id = null, time = null, online = true } = body;
  if (_id !== null && !isId(_id)) throw badRequest('_id: expected 24 hexadecimal digits');
  if (typeof online !== 'boolean') throw badRequest('online: expected a boolean');
  const sentMs = time === null ? null : parsePacketTime(time);
  const { timeMs, deviceTimeMs } = judgeTime(sentMs, nowMs, declared.aheadMs);
  const id = _id === null ? null : (_id as string).toLowerCase();
  return {
    id,
    timeMs,
    deviceTimeMs,
    online,
    parameters: parseParameters(body, declared),
    index,
  };
}

function parsePacketTime(time: unknown): number {
  const timeMs = parseDeviceTime(time);
  if (timeMs === null) throw badRequest(`time: ${explainDeviceTime(time)}`);
  return timeMs;
}

function parseParameters(body: JsonObject, declared: Declarations): JsonObject {
  const parameters: JsonObject = {};
  for (const name of Object.keys(body)) {
    if (name.startsWith('_') || SERVICE_FIELDS.has(name)) continue;
    const given = body[name] as Json;
    const type = declared.parameters.get(name);
    const value = type === undefined ? given : toType(given, type);
    if (value === undefined) throw badRequest(`${name}: ${explainType(given, type)}`);
    parameters[name] = value;
  }
  if (declared.members.length > 0) addMembers(parameters, declared);
  return parameters;
}

function explainType(given: Json, type: DataType | undefined): string {
  const isLong = type === 'number' && typeof given === 'string' && isRounded(given.trim());
  return isLong
    ? `expected a number of at most 15 digits; declare it as string to keep ${given.trim().slice(0, 40)}`
    : `expected ${type}, as the object's model declares it`;
}

/** Adds parameters that are members of other parameters, unless the device sent them directly. */
function addMembers(parameters: JsonObject, { members, parameters: types }: Declarations): void {
  for (const { parameter, of, path } of members) {
    if (Object.hasOwn(parameters, parameter) || !isPlainName(parameter)) continue;
    const value = memberAt(parameters[of], path) as Json | undefined;
    const type = types.get(parameter);
    const converted = value === undefined || type === undefined ? value : toType(value, type);
    if (converted !== undefined) parameters[parameter] = converted;
  }
}

/** Whether a device may use the name for its own field of a packet. */
const isPlainName = (name: string): boolean => isFieldName(name) && !name.startsWith('_') && !SERVICE_FIELDS.has(name);

/** 400 for packets of an array that cannot be stored; `count` others were. */
export function refusalError(refused: readonly Refusal[], count: number): ApiError {
  const [first] = refused;
  const more = refused.length > 1 ? `; and ${refused.length - 1} more` : '';
  return new ApiError(400, `[${first?.index}]: ${first?.reason}${more}`, { details: { count, refused } });
}

/** What such an error refuses; null for any other error. */
export const refusalsIn = ({ details }: ApiError): readonly Refusal[] | null =>
  Array.isArray(details.refused) ? details.refused : null;

/** Builds the packet with its fields in the order of docs/reference/history.md. */
export function toPacket(message: Message, id: string, source: PacketSource, stampUs: number): Packet {
  const packet: Packet = {
    _id: id,
    _ts: stampUs,
    time: message.timeMs ?? Math.floor(stampUs / 1_000),
    online: message.online,
    _oid: source.objectId,
    id: source.ownId,
    _gid: source.groupId,
    ...message.parameters,
  };
  if (message.deviceTimeMs !== undefined) packet.deviceTime = message.deviceTimeMs;
  return packet;
}

/**
 * The server's time of a stamp. Stamps also increase where the clock steps back, so that packets stay in order. After a step of
 * more than `aheadMs` the stamps would be no times any more for as long.
 */
export function toServerMs(stampUs: number, { now, aheadMs }: Clock): number {
  const stampMs = Math.floor(stampUs / 1_000);
  const nowMs = now();
  return stampMs > nowMs + aheadMs ? nowMs : stampMs;
}

/**
 * A strictly increasing clock of the server's time in µs. When the system clock steps back, it continues at the rate of the
 * monotonic `steadyMs` until the system clock steps forward again. Otherwise it would stand still meanwhile.
 */
export function createStampClock(nowMs: () => number, steadyMs: () => number = nowMs): () => number {
  let lastUs = 0;
  let lastMs = nowMs();
  let lastSteadyMs = steadyMs();
  let aheadMs = 0;
  return () => {
    const ms = nowMs();
    const steady = steadyMs();
    const stepMs = ms - lastMs - (steady - lastSteadyMs);
    if (ms < lastMs) aheadMs -= stepMs;
    else if (aheadMs > 0 && stepMs > LIMITS.clockStepMs) aheadMs = Math.max(0, aheadMs - stepMs);
    lastMs = ms;
    lastSteadyMs = steady;
    lastUs = Math.max(Math.floor(ms + aheadMs) * 1_000, lastUs + 1);
    return lastUs;
  };
}
