/** Converts messages of devices to packets: checked against the object's model, stamped with the server's time. */

import { hash } from 'node:crypto';
import { isId } from '../core/entity.js';
import { ApiError, badRequest } from '../core/errors.js';
import { isObject, type Json, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { type Calculated, type Declarations, toBoolean } from '../core/model.js';
import { explainDeviceTime, parseDeviceTime } from '../core/time.js';
import type { ServiceClock } from '../platform/mongo/driver/client.js';
import { mapInSlices } from '../platform/slices.js';
import { judgeTime } from './device-time.js';
import { isTooDeep, parseParameters } from './parameters.js';
import { cutReason, joinReasons } from './reasons.js';

/** A checked message of a device. */
export interface Message {
  /** Given by the device to make retries idempotent; null when the service assigns one. */
  readonly id: string | null;
  /** Whether the device chose what identifies it: the `id` tells nothing of its time then. */
  readonly isChosen?: boolean | undefined;
  /** Null for the server's time. */
  readonly timeMs: number | null;
  /** What a wrong clock said instead. */
  readonly deviceTimeMs?: number | undefined;
  readonly online: boolean;
  readonly parameters: JsonObject;
  /** Its place in the array that was sent; undefined for a single packet. */
  readonly index?: number | undefined;
  /** Why some of its fields are left out; undefined if none are. */
  readonly dropped?: string | undefined;
  /** What its model has added to the parameters. */
  readonly calculated?: Calculated | undefined;
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
  /** Packets that are stored without some of their fields. */
  readonly incomplete: readonly Refusal[];
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

/** Parses a body: one JSON object, or an array of them. Throws a 400 for a single packet that cannot be stored, or too many. */
export function parseBatch(body: unknown, declared: Declarations, nowMs: number): Batch {
  if (!Array.isArray(body)) return toBatch([parseMessage(body, declared, nowMs)]);
  if (body.length > LIMITS.packetsPerRequest) {
    throw badRequest(`the body: more than ${LIMITS.packetsPerRequest} packets`);
  }
  return toBatch(body.map((item, index) => parseItem(item, index, declared, nowMs)));
}

/** Whether others should run between the packets of a body: there are many, or each may take long. */
export const takesTurns = (body: unknown, { calculate }: Declarations): body is readonly unknown[] =>
  Array.isArray(body) &&
  body.length <= LIMITS.packetsPerRequest &&
  body.length > (calculate === null ? LIMITS.slicedPackets : 1);

/** Like `parseBatch`, in turns where it takes long. */
export function parseInTurns(body: unknown, declared: Declarations, nowMs: number): Batch | Promise<Batch> {
  if (!takesTurns(body, declared)) return parseBatch(body, declared, nowMs);
  return mapInSlices(body, (item, index) => parseItem(item, index, declared, nowMs)).then(toBatch);
}

/** Parses an item of an array. */
export function parseItem(item: unknown, index: number, declared: Declarations, nowMs: number): Message | Refusal {
  try {
    return parseMessage(item, declared, nowMs, index);
  } catch (error) {
    if (error instanceof ApiError) return { index, reason: cutReason(error.message) };
    throw error;
  }
}

/** Separates what can be stored from what cannot. */
export function toBatch(items: readonly (Message | Refusal)[]): Batch {
  const messages: Message[] = [];
  const refused: Refusal[] = [];
  const incomplete: Refusal[] = [];
  for (const item of items) {
    if ('reason' in item) refused.push(item);
    else {
      messages.push(item);
      if (item.dropped !== undefined) incomplete.push({ index: item.index ?? 0, reason: item.dropped });
    }
  }
  return { messages, refused, incomplete };
}

function parseMessage(body: unknown, declared: Declarations, nowMs: number, index?: number): Message {
  if (!isObject(body)) throw badRequest(`${index === undefined ? 'the body' : 'a packet'}: expected a JSON object`);
  const { time = null } = body;
  const sentMs = isAbsent(time) ? null : parsePacketTime(time);
  const { timeMs, deviceTimeMs } = judgeTime(sentMs, nowMs, declared.aheadMs);
  const { kept: parameters, dropped } = parseParameters(body, declared);
  const isData = Object.keys(parameters).length > 0;
  const calculated = isData ? declared.calculate?.(parameters) : undefined;
  const online = parseOnline(body.online ?? true, dropped);
  const id = parseId(body, { parameters, dropped });
  const why = dropped.length === 0 ? undefined : joinReasons(dropped);
  if (why !== undefined && Object.keys(parameters).length === 0) throw badRequest(why);
  return {
    id,
    isChosen: id === null ? undefined : true,
    timeMs,
    deviceTimeMs,
    online,
    parameters,
    index,
    dropped: why,
    calculated,
  };
}

function parseOnline(given: Json, dropped: string[]): boolean {
  const online = toBoolean(given);
  if (online === undefined) dropped.push('online: expected a boolean');
  return online ?? true;
}

/**
 * The `_id` of a packet that a device identifies. An identifier of another form is kept as `messageId`. Counters begin anew when a
 * device restarts, so that only the whole packet tells whether it is sent again.
 */
function parseId(
  body: JsonObject,
  { parameters, dropped }: { readonly parameters: JsonObject; readonly dropped: string[] },
): string | null {
  const { _id: given = null } = body;
  if (given === null) return null;
  if (isId(given)) return given.toLowerCase();
  if (!isMessageId(given)) {
    dropped.push(`_id: expected a number, or text of at most ${LIMITS.idCharacters} characters`);
    return null;
  }
  // A packet without parameters reports presence.
  const isData = Object.keys(parameters).length > 0;
  if (isData && !Object.hasOwn(parameters, 'messageId')) parameters.messageId = given;
  return digestOf(body);
}

const digestOf = (body: JsonObject): string => hash('sha256', contentOf(body), 'hex').slice(0, ID_DIGITS);

/** What identifies a packet that is sent again: all of it as it was sent, since what the model makes of it may change. */
export function contentOf(body: JsonObject): string {
  // A value that is nested too deep is never stored, and JSON.stringify may throw for it.
  return JSON.stringify(Object.entries(body).map(([name, value]) => (isTooDeep(value, 1) ? [name] : [name, value])));
}

const ID_DIGITS = 24;

function isMessageId(given: Json): boolean {
  if (typeof given !== 'string') return typeof given === 'number' && Number.isFinite(given);
  return given.trim() !== '' && given.length <= LIMITS.idCharacters && given.isWellFormed();
}

/** Devices without a clock also send a blank text. */
const isAbsent = (time: unknown): boolean => time === null || (typeof time === 'string' && time.trim() === '');

function parsePacketTime(time: unknown): number {
  const timeMs = parseDeviceTime(time);
  if (timeMs === null) throw badRequest(`time: ${explainDeviceTime(time)}`);
  return timeMs;
}

/** 400 for packets of an array that cannot be stored; `count` others were. */
export function refusalError(refused: readonly Refusal[], count: number): ApiError {
  const [first] = refused;
  const more = refused.length > 1 ? `; and ${refused.length - 1} more` : '';
  return new ApiError(400, `[${first?.index}]: ${first?.reason}${more}`, { details: { count, refused } });
}

export const inOrder = (refused: readonly Refusal[]): readonly Refusal[] =>
  refused.length < 2 ? refused : refused.toSorted((one, other) => one.index - other.index);

/** Those of the incomplete packets that are not refused after all. */
export function withoutRefused(incomplete: readonly Refusal[], refused: readonly Refusal[]): readonly Refusal[] {
  if (incomplete.length === 0 || refused.length === 0) return incomplete;
  const indexes = new Set(refused.map(({ index }) => index));
  return incomplete.filter(({ index }) => !indexes.has(index));
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
export function toServerMs(stampUs: number, { now, aheadMs }: ServiceClock): number {
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
