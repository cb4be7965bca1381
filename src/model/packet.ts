/** What a device sends becomes a packet: checked against the object's model, stamped with the server's time. */
import { badRequest } from '../errors.js';
import { isId } from './entity.js';
import { checkJson, isFieldName, isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { type Declarations, memberAt, toType } from './model.js';
import { isTimeMs, readTime } from './time.js';

/** A message of a device, checked: `timeMs` null where the server's time is to be taken. */
export interface Message {
  /** Given by the device to make the packet idempotent; null where the service assigns one. */
  readonly id: string | null;
  /** The `_id` that a former version stored the same message with, if it did; null where it cannot have. */
  readonly formerId: string | null;
  readonly timeMs: number | null;
  readonly online: boolean;
  readonly parameters: JsonObject;
}

/** The object that a packet is of. */
export interface PacketSource {
  readonly objectId: string;
  readonly ownId: string;
  readonly groupId: string;
}

/** interface, "Data packet"; times: `_ts` in µs, `time` in ms. */
export type Packet = JsonObject & {
  _id: string;
  _ts: number;
  time: number;
  online: boolean;
  _oid: string;
  id: string;
  _gid: string;
};

/** The fields of every packet. One that has no other tells presence alone: whether the object is online. */
export const PACKET_FIELDS = ['_id', '_ts', 'time', 'online', '_oid', 'id', '_gid'] as const;

const SERVICE_FIELDS: ReadonlySet<string> = new Set(['time', 'online', 'id', 'success']);

/** A body as messages: one JSON object, or an array of them. Throws a 400 that names the item and field at fault. */
export function readMessages(body: unknown, declared: Declarations, nowMs: number): Message[] {
  if (!Array.isArray(body)) return [readMessage(body, '', declared, nowMs)];
  if (body.length > LIMITS.packetsPerRequest) {
    throw badRequest(`the body: more than ${LIMITS.packetsPerRequest} packets`);
  }
  return body.map((item, at) => readMessage(item, `[${at}]`, declared, nowMs));
}

/** One message of a device. `place` stands before the field in an error. */
export function readMessage(body: unknown, place: string, declared: Declarations, nowMs: number): Message {
  if (!isObject(body)) throw badRequest(`${place || 'the body'}: expected a JSON object`);
  checkJson(body, place);
  const dot = place === '' ? '' : `${place}.`;
  const { _id = null, time = null, online = true } = body;
  if (_id !== null && !isId(_id)) throw badRequest(`${dot}_id: expected 24 hexadecimal digits`);
  if (typeof online !== 'boolean') throw badRequest(`${dot}online: expected a boolean`);
  const id = _id === null ? null : (_id as string).toLowerCase();
  return {
    id,
    formerId: id,
    timeMs: time === null ? null : readPacketTime(time, dot, nowMs),
    online,
    parameters: readParameters(body, dot, declared),
  };
}

function readPacketTime(time: unknown, dot: string, nowMs: number): number {
  const timeMs = typeof time === 'string' ? readTime(time) : time;
  if (!isTimeMs(timeMs)) throw badRequest(`${dot}time: expected milliseconds since the epoch, or an ISO 8601 time`);
  if (timeMs > nowMs + LIMITS.packetAheadMs) throw badRequest(`${dot}time: more than a day in the future`);
  return timeMs;
}

function readParameters(body: JsonObject, dot: string, declared: Declarations): JsonObject {
  const parameters: JsonObject = {};
  for (const name of Object.keys(body)) {
    if (name.startsWith('_') || SERVICE_FIELDS.has(name)) continue;
    const given = body[name] as Json;
    const type = declared.parameters.get(name);
    const value = type === undefined ? given : toType(given, type);
    if (value === undefined) throw badRequest(`${dot}${name}: expected ${type}, as the object's model declares it`);
    parameters[name] = value;
  }
  if (declared.members.length > 0) addMembers(parameters, declared);
  return parameters;
}

/** What the model finds within another parameter, where the device has not sent it by itself. */
function addMembers(parameters: JsonObject, { members, parameters: types }: Declarations): void {
  for (const { parameter, of, path } of members) {
    if (Object.hasOwn(parameters, parameter) || !isPlainName(parameter)) continue;
    const value = memberAt(parameters[of], path) as Json | undefined;
    const type = types.get(parameter);
    const fitting = value === undefined || type === undefined ? value : toType(value, type);
    if (fitting !== undefined) parameters[parameter] = fitting;
  }
}

/** Whether a packet can have a field of the name that is the device's own. */
const isPlainName = (name: string): boolean => isFieldName(name) && !name.startsWith('_') && !SERVICE_FIELDS.has(name);

/**
 * Whether a former version may have stored the message before the upgrade: what is sent again has the `time` that it had,
 * and none is later than this.
 */
export function mayBeFormer({ timeMs }: Pick<Message, 'timeMs'>, upgradedMs: number): boolean {
  return timeMs === null || timeMs <= upgradedMs + LIMITS.packetAheadMs;
}

/** The packet as it is stored and shown, its fields in the order of docs/reference/history.md. */
export function toPacket(message: Message, id: string, source: PacketSource, stampUs: number): Packet {
  return {
    _id: id,
    _ts: stampUs,
    time: message.timeMs ?? Math.floor(stampUs / 1_000),
    online: message.online,
    _oid: source.objectId,
    id: source.ownId,
    _gid: source.groupId,
    ...message.parameters,
  };
}

/**
 * A clock of the server's time in µs that strictly increases. Where the system's clock steps back it goes on with `steadyMs`, a
 * clock that no one sets, until the system's steps forward again: otherwise time would stand still until it has caught up.
 */
export function createStampClock(nowMs: () => number, steadyMs: () => number = nowMs): () => number {
  let [lastUs, lastMs, lastSteadyMs, aheadMs] = [0, nowMs(), steadyMs(), 0];
  return () => {
    const [ms, steady] = [nowMs(), steadyMs()];
    const stepMs = ms - lastMs - (steady - lastSteadyMs);
    if (ms < lastMs) aheadMs -= stepMs;
    else if (aheadMs > 0 && stepMs > LIMITS.clockStepMs) aheadMs = Math.max(0, aheadMs - stepMs);
    lastMs = ms;
    lastSteadyMs = steady;
    lastUs = Math.max(Math.floor(ms + aheadMs) * 1_000, lastUs + 1);
    return lastUs;
  };
}
