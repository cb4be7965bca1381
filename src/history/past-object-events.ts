/** Converts past changes of objects to events, with the permissions of the caller at the time. */
import { type AccessFields, audienceOf } from '../core/access.js';
import type { EventName } from '../core/feed.js';
import type { JsonObject } from '../core/json.js';
import { changedFields, createdPayload, removedPayload, updatePayload } from '../core/payload.js';
import type { StreamChange } from '../platform/mongo/changes/decoder.js';

/** The requested objects, and the caller. */
export interface PastSubject {
  /** Requested objects that the caller sees now. */
  readonly objectIds: readonly string[];
  /** Whether all visible objects are requested: then removals of objects that the caller no longer sees are included. */
  readonly isAll: boolean;
  /** The addresses of the caller. */
  readonly addresses: readonly string[];
}

export interface PastObjectEvent {
  readonly name: EventName;
  readonly data: JsonObject;
}

/** The event that the caller got for a change; null without an event, or for objects that are not requested. */
export function toPastObjectEvent(
  change: StreamChange,
  requested: ReadonlySet<string>,
  { isAll, addresses }: PastSubject,
): PastObjectEvent | null {
  const isSeen = (accessFields: AccessFields | null): boolean =>
    accessFields !== null && audienceOf(accessFields).some((address) => addresses.includes(address));
  if (!requested.has(change.id) && !isAll) return null;
  const saw = isSeen(change.accessFieldsBefore);
  const sees = isSeen(change.accessFields);
  if (saw && !sees) return { name: 'object-removed', data: removedPayload(change) };
  // The content of an object is only for callers who see the object now.
  if (!requested.has(change.id)) return null;
  if (sees && !saw) return isWhole(change) ? { name: 'object-created', data: createdPayload(change) } : null;
  const fields = changedFields(change);
  return fields.length === 0 ? null : { name: 'object-update', data: updatePayload(change, fields) };
}

/** Whether the state before the change is known, so that it is certain who did not see the object. */
const isWhole = ({ kind, before }: StreamChange): boolean => kind === 'created' || before !== null;

/** The time of a change: from the object, or from the database after a removal. */
export const timeOf = ({ after, writtenMs }: StreamChange): number => Number(after?._at ?? after?.time ?? writtenMs);

/** Orders changes of one object within one millisecond, in µs. */
export const stampOf = ({ kind }: StreamChange, timeMs: number): number =>
  timeMs * 1_000 + { created: -1, changed: 0, removed: 1 }[kind];
