/** Where objects are: where their newest packet says, or else where they were last known to be. */
import { findPosition, PLACE_NAMES, type Position } from '../../core/position-fields.js';

export { isPlaceField, PLACE_NAMES } from '../../core/position-fields.js';

export interface Place extends Position {
  /** When the object was there, if its newest packet does not say where it is. */
  readonly timeMs?: number;
}

export type LastPlace = Required<Place>;

interface PlacePacket {
  readonly time: number;
}

interface PlacedObject {
  readonly _id: string;
  readonly state?: PlacePacket;
}

type PlaceValue = readonly [name: string, { readonly value: unknown; readonly timeMs: number }];

/** Values that come in turns are of one moment. */
export const TURN_MS = 60_000;

/** By the `_id` of the object. Read only where the newest packet has no position. */
const lastPlaces = new Map<string, LastPlace>();
/** By the `_id` of the object: the last values, by name, of a device that sends latitude and longitude in packets of their own. */
const lastParts = new Map<string, Map<string, PlaceValue[1]>>();

export const positionOf = (packet: PlacePacket): Position | null =>
  findPosition(packet as unknown as Readonly<Record<string, unknown>>);

export function placeOf(object: PlacedObject | undefined): Place | null {
  if (object?.state === undefined) return null;
  return positionOf(object.state) ?? lastPlaces.get(object._id) ?? null;
}

/** Whether an object has sent something, but nobody knows where it is. */
export const isPlaceless = (object: PlacedObject | undefined): boolean =>
  object?.state !== undefined && placeOf(object) === null;

/** Remembers the place in a packet, unless a newer one is known. */
export function rememberPlace(id: string, packet: PlacePacket | undefined): void {
  const position = packet === undefined ? null : positionOf(packet);
  if (position !== null && packet !== undefined) setPlace(id, { ...position, timeMs: packet.time });
}

/** The same, for a place that was found elsewhere. */
export function setPlace(id: string, place: LastPlace): void {
  const known = lastPlaces.get(id);
  if (known === undefined || known.timeMs < place.timeMs) lastPlaces.set(id, place);
}

export function forgetPlace(id: string): void {
  lastPlaces.delete(id);
  lastParts.delete(id);
}

/** Keeps the place of an object whose new state has none: that of the state before, or of a packet that came late. */
export function keepPlace(id: string, state: PlacePacket, before: PlacePacket | undefined, late?: PlacePacket): void {
  if (positionOf(state) !== null) return;
  if (before !== state) rememberPlace(id, before);
  if (late !== state) rememberPlace(id, late);
  if (late !== undefined) rememberPart(id, late);
}

function rememberPart(id: string, packet: PlacePacket): void {
  const parts = PLACE_NAMES.filter((name) => name in packet);
  if (parts.length === 0) return;
  const known = lastParts.get(id) ?? new Map<string, PlaceValue[1]>();
  lastParts.set(id, known);
  for (const name of parts) {
    const isLate = packet.time < (known.get(name)?.timeMs ?? packet.time);
    if (!isLate) known.set(name, { value: packet[name as keyof PlacePacket], timeMs: packet.time });
  }
  const place = placeIn(known);
  if (place !== null) setPlace(id, place);
}

/** The newest place in the last values of an object, by name: in those of one packet, or of packets in turns. */
export function placeIn(values: Iterable<PlaceValue>): LastPlace | null {
  const fields = [...values]
    .filter(([name]) => PLACE_NAMES.includes(name))
    .sort(([, one], [, other]) => other.timeMs - one.timeMs);
  for (const [index, [, { timeMs }]] of fields.entries()) {
    const turn = fields.slice(index).filter(([, one]) => one.timeMs >= timeMs - TURN_MS);
    const position = positionOf({
      time: timeMs,
      ...Object.fromEntries(turn.map(([name, { value }]) => [name, value])),
    });
    if (position !== null) return { ...position, timeMs };
  }
  return null;
}
