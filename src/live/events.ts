/** Converts database changes to live events. Pure. */
import { ACCESS_FIELDS, audienceOf } from '../core/access.js';
import { type Change, mayHaveChanged } from '../core/change.js';
import type { Encoding, EventName } from '../core/feed.js';
import type { JsonObject } from '../core/json.js';
import {
  alarmPayload,
  COMMAND_ENDS,
  changedFields,
  commandPayload,
  createdPayload,
  removedPayload,
  updatePayload,
} from '../core/payload.js';

export interface LiveEvent {
  readonly name: EventName;
  readonly objectId: string;
  /** The data of the event as JSON. */
  toJson(): Buffer;
  /** The addresses that receive the event. */
  readonly audience: readonly string[];
  /** The addresses that may see the data of the event. */
  readonly viewers: readonly string[];
  /** Restricts the clients at these addresses; null for all. */
  readonly limits: Limits | null;
  /** Opaque. A client that reconnects with it receives the later events. */
  readonly position: string;
  /** The cached encodings. */
  readonly encoded: Partial<Record<Encoding, Buffer>>;
}

/** A client receives the event if it is at an address of the audience and within these limits. No client receives two events of a change. */
export interface Limits {
  readonly except: readonly string[];
  /** The client must be at an address of each list. */
  readonly within: readonly (readonly string[])[];
}

/** Whether a change can become events. */
export function isPublishable(change: Pick<Change, 'store' | 'kind'>): boolean {
  return isOfObject(change) || change.store === 'objects';
}

/** Stores whose entities belong to an object and become events. */
const BELONGING: ReadonlySet<string> = new Set(['commands', 'alarms']);

/** Packets, commands and alarms have the audience of their object, which must be loaded first. */
export function isOfObject({ store, kind }: Pick<Change, 'store' | 'kind'>): boolean {
  return (store === 'packets' && kind === 'created') || (BELONGING.has(store) && kind !== 'removed');
}

/** The objects whose audience must be loaded before these changes can be published. */
export function objectsOf(changes: readonly Change[]): string[] {
  const ids: string[] = [];
  for (const change of changes) if (change.objectId !== null && isOfObject(change)) ids.push(change.objectId);
  return ids;
}

/**
 * The live events of a change. Events of an object itself have the audience that the change contains. Events of packets and commands
 * have the given audience of their object; null if the object was removed.
 */
export function toEvents(change: Change, objectAudience: readonly string[] | null): LiveEvent[] {
  if (change.objectId === null) return [];
  if (change.store === 'objects') return toObjectEvents(change, null);
  return objectAudience === null ? [] : toBelongingEvents(change, objectAudience);
}

/** The events of a past change for the current audience of the object; null if it was removed. */
export function toPastEvents(change: Change, audience: readonly string[] | null): LiveEvent[] {
  if (change.objectId === null) return [];
  if (change.store === 'objects') return toObjectEvents(change, { audience });
  return audience === null ? [] : toBelongingEvents(change, audience);
}

function toBelongingEvents(change: Change, audience: readonly string[]): LiveEvent[] {
  // Reading `after` decodes a packet, which is not needed where nobody listens.
  if (change.store === 'packets' && change.kind === 'created') {
    return [new ChangeEvent('object-packet', { change, audience }, () => change.json ?? toBytes(change.after))];
  }
  const { store, after } = change;
  if (after === null) return [];
  const name = store === 'commands' ? commandEventOf(change) : alarmEventOf(change);
  if (name === null) return [];
  const toPayload = store === 'commands' ? commandPayload : alarmPayload;
  const payload = toPayload(change.objectId as string, after);
  return [new ChangeEvent(name, { change, audience }, () => toBytes(payload))];
}

/**
 * Clients that see the object only after the change receive `object-created`; clients that see it only before, `object-removed` with
 * only its `_id`; clients that see it before and after, `object-update`. `today`: for a past change, only the current audience receives
 * data of the object.
 */
function toObjectEvents(change: Change, today: { readonly audience: readonly string[] | null } | null): LiveEvent[] {
  // Without the previous state the former audience is not known.
  if (change.kind === 'changed' && change.changed === null) return [];
  // The current audience also receives updates from before it could see the object.
  if (change.kind === 'changed' && !mayHaveChanged(change, ACCESS_FIELDS)) {
    return today === null ? toUpdates(change, null, null) : toUpdates(change, today.audience ?? [], null);
  }
  const [before, after] = [change.accessFieldsBefore, change.accessFields].map((accessFields) =>
    accessFields === null ? [] : audienceOf(accessFields),
  );
  return toAppearances(change, { before: before ?? [], after: after ?? [], still: today && (today.audience ?? []) });
}

interface Sight {
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** The current audience for a past change; null for a live one. */
  readonly still: readonly string[] | null;
}

function toAppearances(change: Change, { before, after, still }: Sight): LiveEvent[] {
  const within = still === null ? [] : [still];
  const gained = without(after, before);
  const lost = without(before, after);
  const events = toUpdates(change, after, { except: [], within: [before, ...within] });
  if (gained.length > 0 && still?.length !== 0) {
    const limits = before.length + within.length === 0 ? null : { except: before, within };
    const toJson = () => toBytes(createdPayload(change));
    events.push(new ChangeEvent('object-created', { change, audience: gained, viewers: after, limits }, toJson));
  }
  if (lost.length > 0) {
    const limits = after.length === 0 ? null : { except: after, within: [] };
    const toJson = () => toBytes(removedPayload(change));
    events.push(new ChangeEvent('object-removed', { change, audience: lost, viewers: before, limits }, toJson));
  }
  return events;
}

const without = (some: readonly string[], others: readonly string[]): readonly string[] =>
  some.filter((one) => !others.includes(one));

/** No event if no field changed. `audience` null: the audience of the change. */
function toUpdates(change: Change, audience: readonly string[] | null, limits: Limits | null): LiveEvent[] {
  const fields = changedFields(change);
  if (fields.length === 0 || audience?.length === 0) return [];
  return [new ChangeEvent('object-update', { change, audience, limits }, () => toBytes(updatePayload(change, fields)))];
}

/** Commands have events when they are created and when they end. */
function commandEventOf({ kind, before, after }: Change): EventName | null {
  if (kind === 'created') return 'object-command-req';
  if (before === null || before.status === after?.status) return null;
  return COMMAND_ENDS[String(after?.status)] ?? null;
}

/** What people do with an alarm, and what its rule does while they do not. */
const UPDATING = ['acknowledged', 'notes', 'severity', 'actions'];

/** Who sees an alarm, and how often somebody was reminded, are no events. */
function alarmEventOf({ kind, before, after, changed }: Change): EventName | null {
  if (kind === 'created') return 'alarm-raised';
  if (before === null) return null;
  if (before.status !== after?.status) return 'alarm-cleared';
  return changed?.some((name) => UPDATING.includes(name)) ? 'alarm-updated' : null;
}

const toBytes = (payload: JsonObject | null): Buffer => Buffer.from(JSON.stringify(payload));

interface Source {
  readonly change: Change;
  /** Null for the audience of the change. */
  readonly audience: readonly string[] | null;
  /** Defaults to the audience. */
  readonly viewers?: readonly string[];
  readonly limits?: Limits | null;
}

// Serialized on demand: most events have no receivers.
class ChangeEvent implements LiveEvent {
  readonly name: EventName;
  readonly toJson: () => Buffer;
  readonly limits: Limits | null;
  readonly encoded: LiveEvent['encoded'] = {};
  readonly #source: Source;

  constructor(name: EventName, source: Source, toJson: () => Buffer) {
    this.name = name;
    this.toJson = toJson;
    this.limits = source.limits ?? null;
    this.#source = source;
  }

  get objectId(): string {
    return this.#source.change.objectId as string;
  }

  get audience(): readonly string[] {
    const { audience, change } = this.#source;
    return audience ?? (change.accessFields === null ? [] : audienceOf(change.accessFields));
  }

  get viewers(): readonly string[] {
    return this.#source.viewers ?? this.audience;
  }

  get position(): string {
    return this.#source.change.position;
  }
}
