/** A change in the database becomes the events that sockets hear. Pure. */
import { type Guarded, readersOf } from '../model/access.js';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';

export const EVENT_NAMES = ['object-packet', 'object-update'] as const;
export type EventName = (typeof EVENT_NAMES)[number];

export interface LiveEvent {
  readonly name: EventName;
  /** The object it is about. */
  readonly objectId: string;
  /** The object's own id, as the user set it. */
  readonly ownId: string | null;
  readonly payload: JsonObject;
  /** The addresses it goes to. */
  readonly readers: readonly string[];
  /** Opaque; whoever comes back with it hears what came after. */
  readonly position: string;
}

/** Bookkeeping: no news of the object itself. */
const SILENT: ReadonlySet<string> = new Set(['_at']);

/**
 * The events of one change, each with those who may hear it. `packetReaders` are the readers of the object that a new
 * packet is of: null when that object is gone.
 */
export function toEvents(change: Change, packetReaders: readonly string[] | null): LiveEvent[] {
  const { store, kind, after, position } = change;
  if (store === 'packets' && kind === 'created' && after !== null && packetReaders !== null) {
    const [objectId, ownId] = [after._oid as string, after.id as string];
    return [{ name: 'object-packet', objectId, ownId, payload: after, readers: packetReaders, position }];
  }
  if (store === 'objects' && kind === 'changed' && after !== null && change.before !== null) {
    const difference = compare(change.before, after);
    if (difference === null) return [];
    const readers = readersOf(after as unknown as Guarded);
    const payload = { id: change.id, ...difference };
    return [{ name: 'object-update', objectId: change.id, ownId: after.id as string, payload, readers, position }];
  }
  return [];
}

/** interface, "Event kinds": the fields that changed, top level, before and after; null when none did. */
function compare(before: JsonObject, after: JsonObject): { before: JsonObject; after: JsonObject } | null {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !SILENT.has(name) && JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  if (names.length === 0) return null;
  const pick = (image: JsonObject): JsonObject =>
    Object.fromEntries(names.filter((name) => Object.hasOwn(image, name)).map((name) => [name, image[name] ?? null]));
  return { before: pick(before), after: pick(after) };
}
