/** What conditions read of the packets of one object, one after the other. Pure. */
import { isObject, type Json, type JsonObject } from '../core/json.js';
import { PRESENCE_FIELDS } from '../core/packet-fields.js';
import { findPosition, type Position } from '../core/position-fields.js';
import type { PacketInput } from './evaluate.js';
import type { Fix } from './geofence.js';

/** What is remembered of the packets so far. */
export interface ObjectMemory {
  /** The time of the newest data packet, and of the newest packet at all; -Infinity before the first one. */
  dataMs: number;
  newestMs: number;
  /** How far the service's clock was ahead of the time of the newest data packet when that came. */
  aheadMs: number;
  packetId: string | null;
  fix: Fix | null;
  position: Position | null;
  /** The last value of each parameter; null where no rule reads them. */
  last: JsonObject | null;
}

export const newMemory = (needsLast: boolean): ObjectMemory => ({
  dataMs: -Infinity,
  newestMs: -Infinity,
  aheadMs: 0,
  packetId: null,
  fix: null,
  position: null,
  last: needsLast ? {} : null,
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

/** Remembers a packet that was read. */
export function remember(memory: ObjectMemory, { packet, isData, fix }: PacketInput, receivedMs: number): void {
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
