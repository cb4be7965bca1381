/** A change in the database becomes the events that clients hear. Pure. */
import { type Guarded, readersOf } from '../model/access.js';
import type { Change } from '../model/change.js';
import type { EventName, Form } from '../model/feed.js';
import type { JsonObject } from '../model/json.js';

export interface LiveEvent {
  readonly name: EventName;
  /** The object it is about. */
  readonly objectId: string;
  /** What is told, as JSON. */
  toJson(): Buffer;
  /** The addresses it goes to. */
  readonly readers: readonly string[];
  /** Opaque; whoever comes back with it hears what came after. */
  readonly position: string;
  /** What was made of it to be sent. */
  readonly encoded: Partial<Record<Form, Buffer>>;
}

/** Bookkeeping: no news of the object itself. */
const SILENT: ReadonlySet<string> = new Set(['_at']);

/** Whether a change can be told to anyone. */
export function isAudible(change: Pick<Change, 'store' | 'kind'>): boolean {
  return isOfObject(change) || (change.store === 'objects' && change.kind === 'changed');
}

/** A packet or a command is heard by those who may see its object: they are asked for before it can be told. */
export function isOfObject({ store, kind }: Pick<Change, 'store' | 'kind'>): boolean {
  return (store === 'packets' && kind === 'created') || (store === 'commands' && kind !== 'removed');
}

/**
 * The events of one change, each with those who may hear it. `objectReaders` are the readers of the object that the
 * change belongs to (`isOfObject`): null when that object is gone.
 */
export function toEvents(change: Change, objectReaders: readonly string[] | null): LiveEvent[] {
  const { store, kind, objectId } = change;
  if (objectId === null) return [];
  if (isOfObject(change) && objectReaders === null) return [];
  if (store === 'packets' && kind === 'created') {
    return [createEvent('object-packet', change, objectReaders ?? [], () => change.json ?? toBytes(change.after))];
  }
  const { after } = change;
  if (store === 'commands' && after !== null) {
    const name = commandEventOf(change);
    if (name === null) return [];
    const payload = { id: objectId, command: pick(after, COMMAND_FIELDS) };
    return [createEvent(name, change, objectReaders ?? [], () => toBytes(payload))];
  }
  if (store === 'objects' && kind === 'changed' && after !== null && change.before !== null) {
    const difference = compare(change.before, after);
    if (difference === null) return [];
    const readers = readersOf(after as unknown as Guarded);
    return [createEvent('object-update', change, readers, () => toBytes({ id: objectId, ...difference }))];
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

const toBytes = (payload: JsonObject | null): Buffer => Buffer.from(JSON.stringify(payload));

// Made when it is asked for: most events are of objects that nobody looks at.
function createEvent(name: EventName, change: Change, readers: readonly string[], json: () => Buffer): LiveEvent {
  return {
    ...{ name, objectId: change.objectId as string, readers, encoded: {}, toJson: json },
    get position() {
      return change.position;
    },
  };
}

/** interface, "Event kinds": the fields that changed, top level, before and after; null when none did. */
function compare(before: JsonObject, after: JsonObject): { before: JsonObject; after: JsonObject } | null {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !SILENT.has(name) && JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  if (names.length === 0) return null;
  return { before: pick(before, names), after: pick(after, names) };
}
