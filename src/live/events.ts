/** A change in the database becomes the events that sockets hear. Pure. */
import { type Guarded, readersOf } from '../model/access.js';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';

export const EVENT_NAMES = [
  'object-packet',
  'object-update',
  'object-command-req',
  'object-command-res',
  'object-command-err',
] as const;
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

/** What a packet or a command is of: the object (its `_id`) whose readers hear of it; null for every other change. */
export function guardianOf({ store, after }: Change): string | null {
  const objectId = store === 'packets' ? after?._oid : store === 'commands' ? after?.object : null;
  return typeof objectId === 'string' ? objectId : null;
}

/**
 * The events of one change, each with those who may hear it. `guardianReaders` are the readers of the object that a
 * packet or a command is of: null when that object is gone.
 */
export function toEvents(change: Change, guardianReaders: readonly string[] | null): LiveEvent[] {
  const { store, kind, after, position } = change;
  if (store === 'packets' && kind === 'created' && after !== null && guardianReaders !== null) {
    const [objectId, ownId] = [after._oid as string, after.id as string];
    return [{ name: 'object-packet', objectId, ownId, payload: after, readers: guardianReaders, position }];
  }
  if (store === 'commands' && after !== null && guardianReaders !== null) {
    const name = commandEventOf(change);
    if (name === null) return [];
    const objectId = after.object as string;
    const payload = { id: objectId, command: pick(after, COMMAND_FIELDS) };
    return [{ name, objectId, ownId: null, payload, readers: guardianReaders, position }];
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

const COMMAND_FIELDS = ['_id', 'command', 'params', 'status', 'times', 'expires', 'result'];
const ENDS: Readonly<Record<string, EventName>> = {
  done: 'object-command-res',
  failed: 'object-command-err',
  expired: 'object-command-err',
};

/** A command is told when it is given, and when it ends. */
function commandEventOf({ kind, before, after }: Change): EventName | null {
  if (kind === 'created') return 'object-command-req';
  if (before === null || before.status === after?.status) return null;
  return ENDS[String(after?.status)] ?? null;
}

const pick = (image: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(image, name)).map((name) => [name, image[name] ?? null]));

/** interface, "Event kinds": the fields that changed, top level, before and after; null when none did. */
function compare(before: JsonObject, after: JsonObject): { before: JsonObject; after: JsonObject } | null {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !SILENT.has(name) && JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  if (names.length === 0) return null;
  return { before: pick(before, names), after: pick(after, names) };
}
