/** A change in the database becomes the events that clients hear. Pure. */
import { readersOf } from '../model/access.js';
import type { Change } from '../model/change.js';
import type { EventName, Form } from '../model/feed.js';
import type { JsonObject } from '../model/json.js';
import { COMMAND_ENDS, changedFields, commandPayload, updatePayload } from '../model/payload.js';

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

/** Whether a change can be told to anyone. */
export function isAudible(change: Pick<Change, 'store' | 'kind'>): boolean {
  return isOfObject(change) || (change.store === 'objects' && change.kind === 'changed');
}

/** A packet or a command is heard by those who may see its object: they are asked for before it can be told. */
export function isOfObject({ store, kind }: Pick<Change, 'store' | 'kind'>): boolean {
  return (store === 'packets' && kind === 'created') || (store === 'commands' && kind !== 'removed');
}

/** The objects whose readers have to be known before these changes can be told. */
export function objectsOf(changes: readonly Change[]): string[] {
  const ids: string[] = [];
  for (const change of changes) if (change.objectId !== null && isOfObject(change)) ids.push(change.objectId);
  return ids;
}

/**
 * The events of one change, each with those who may hear it: the readers of the object it is about. Null stands for those
 * whom the change itself tells, as one of the object does; one that only belongs to it (`isOfObject`) then has none.
 */
export function toEvents(change: Change, objectReaders: readonly string[] | null): LiveEvent[] {
  const { store, kind, objectId } = change;
  if (objectId === null) return [];
  if (isOfObject(change) && objectReaders === null) return [];
  if (store === 'packets' && kind === 'created') {
    return [new ChangeEvent('object-packet', change, objectReaders, () => change.json ?? toBytes(change.after))];
  }
  if (store === 'objects' && kind === 'changed') return toUpdates(change, objectReaders);
  const { after } = change;
  if (store === 'commands' && after !== null) {
    const name = commandEventOf(change);
    if (name === null) return [];
    const payload = commandPayload(objectId, after);
    return [new ChangeEvent(name, change, objectReaders, () => toBytes(payload))];
  }
  return [];
}

/** Nothing when no field changed. */
function toUpdates(change: Change, objectReaders: readonly string[] | null): LiveEvent[] {
  const fields = changedFields(change);
  if (fields.length === 0) return [];
  return [new ChangeEvent('object-update', change, objectReaders, () => toBytes(updatePayload(change, fields)))];
}

/** A command is told when it is given, and when it ends. */
function commandEventOf({ kind, before, after }: Change): EventName | null {
  if (kind === 'created') return 'object-command-req';
  if (before === null || before.status === after?.status) return null;
  return COMMAND_ENDS[String(after?.status)] ?? null;
}

const toBytes = (payload: JsonObject | null): Buffer => Buffer.from(JSON.stringify(payload));

// What is in it is made when it is asked for: most events are of objects that nobody looks at.
class ChangeEvent implements LiveEvent {
  readonly name: EventName;
  readonly toJson: () => Buffer;
  readonly encoded: LiveEvent['encoded'] = {};
  readonly #change: Change;
  /** Null where the change tells them. */
  readonly #objectReaders: readonly string[] | null;

  constructor(name: EventName, change: Change, objectReaders: readonly string[] | null, toJson: () => Buffer) {
    this.name = name;
    this.toJson = toJson;
    this.#change = change;
    this.#objectReaders = objectReaders;
  }

  get objectId(): string {
    return this.#change.objectId as string;
  }

  get readers(): readonly string[] {
    return this.#objectReaders ?? (this.#change.guard === null ? [] : readersOf(this.#change.guard));
  }

  get position(): string {
    return this.#change.position;
  }
}
