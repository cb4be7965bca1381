/** What conditions read of the packets of one object, one after the other. Pure. */

import type { Fix } from '../core/geofence.js';
import { isObject, type Json, type JsonObject } from '../core/json.js';
import { PRESENCE_FIELDS } from '../core/packet-fields.js';
import { findPosition, type Position } from '../core/position-fields.js';
import type { PacketInput } from './evaluate.js';

/** What is remembered of the packets so far. */
export interface ObjectMemory {
  /** The time of the newest data packet, and of the newest packet at all; -Infinity before the first one. */
  dataMs: number;
  newestMs: number;
  /** When the last of all packets came, by the service's clock. */
  receivedMs: number;
  /** How far the service's clock was ahead of the time of the newest data packet when that came. */
  aheadMs: number;
  packetId: string | null;
  fix: Fix | null;
  position: Position | null;
  /** The last value of each parameter; null where no rule reads them. */
  last: JsonObject | null;
  /** Whether packets before them may not be remembered: enough for those that change no state. */
  isPartial: boolean;
}

/** How far the packets of an object were evaluated. */
export type EvaluatedTo = Pick<ObjectMemory, 'dataMs' | 'newestMs' | 'receivedMs' | 'aheadMs'>;

const UNEVALUATED: EvaluatedTo = { dataMs: -Infinity, newestMs: -Infinity, receivedMs: -Infinity, aheadMs: 0 };

/** What is remembered of an object of which nothing is known, or only how far it was evaluated. */
export const newMemory = (needsLast: boolean, evaluated: EvaluatedTo = UNEVALUATED): ObjectMemory => ({
  dataMs: evaluated.dataMs,
  newestMs: evaluated.newestMs,
  receivedMs: evaluated.receivedMs,
  aheadMs: evaluated.aheadMs,
  packetId: null,
  fix: null,
  position: null,
  last: needsLast ? {} : null,
  isPartial: true,
});

/** Whether a packet has more than presence. */
export const isDataPacket = (packet: JsonObject): boolean =>
  Object.keys(packet).some((name) => !(PRESENCE_FIELDS as readonly string[]).includes(name));

/** How exact a fix is, by the names of many devices. Metres. */
const ACCURACY_NAMES = ['accuracy', 'acc'];
const CONTAINERS = ['position', 'location', 'gps'];

export function findFix(packet: JsonObject): Fix | null {
  const position = findPosition(packet);
  if (position === null) return null;
  const places = [packet, ...CONTAINERS.map((name) => packet[name]).filter(isObject)];
  const values = places.flatMap((place) => ACCURACY_NAMES.map((name): Json => place[name] ?? null));
  const accuracy = values.find((value) => typeof value === 'number' && value >= 0);
  return { ...position, accuracyM: typeof accuracy === 'number' ? accuracy : null };
}

/** How a packet is read after those before it; null for a data packet that is older than another one. */
export function readPacket(memory: ObjectMemory, packet: JsonObject, object: JsonObject): PacketInput | null {
  const timeMs = packet.time as number;
  const isData = isDataPacket(packet);
  if (isData && timeMs < memory.dataMs) return null;
  return {
    packet,
    isData,
    isNewest: timeMs >= memory.newestMs,
    fix: isData ? findFix(packet) : null,
    previousFix: memory.fix,
    last: memory.last ?? {},
    object,
  };
}

/** When a packet came, by the service's clock. */
export const receivedMsOf = (packet: JsonObject): number => Number(packet._ts ?? Number(packet.time) * 1_000) / 1_000;

/** What was evaluated may have been stored later, by another clock, than what was read. */
export function advanceTo(memory: ObjectMemory, evaluated: EvaluatedTo = UNEVALUATED): void {
  memory.newestMs = Math.max(memory.newestMs, evaluated.newestMs);
  memory.receivedMs = Math.max(memory.receivedMs, evaluated.receivedMs);
  if (evaluated.dataMs <= memory.dataMs) return;
  memory.dataMs = evaluated.dataMs;
  memory.aheadMs = evaluated.aheadMs;
}

/** Whether a packet that may come again was evaluated before. */
export function wasEvaluated({ dataMs, newestMs, receivedMs }: EvaluatedTo, packet: JsonObject): boolean {
  if (receivedMsOf(packet) > receivedMs) return false;
  return (packet.time as number) <= (isDataPacket(packet) ? dataMs : newestMs);
}

/** Remembers a packet; null for a data packet that is older than another one. */
export function remember(memory: ObjectMemory, read: PacketInput | null, receivedMs: number): void {
  memory.receivedMs = Math.max(memory.receivedMs, receivedMs);
  if (read === null) return;
  const { packet, isData, fix } = read;
  const timeMs = packet.time as number;
  memory.newestMs = Math.max(memory.newestMs, timeMs);
  if (!isData) return;
  memory.dataMs = timeMs;
  memory.aheadMs = receivedMs - timeMs;
  memory.packetId = String(packet._id);
  if (fix !== null) {
    memory.fix = fix;
    memory.position = { lat: fix.lat, lon: fix.lon };
  }
  if (memory.last === null) return;
  for (const [name, value] of Object.entries(packet)) {
    if (value !== null && !(PRESENCE_FIELDS as readonly string[]).includes(name)) memory.last[name] = value;
  }
}
