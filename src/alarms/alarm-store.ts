/** Stored alarms: what people do with them. Each change is one atomic write. */
import { type Document, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { type Entity, isId } from '../core/entity.js';
import { badRequest, conflict, notFound } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { Severity } from '../core/rule/severity.js';
import { builtInStore } from '../core/stores.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';

export const ALARMS = builtInStore('alarms');

/** Why an alarm was cleared. */
const CLEAR_REASONS = [
  'condition',
  'user',
  'rule changed',
  'rule removed',
  'rule inactive',
  'object removed',
  'object not selected',
  'rights',
] as const;
export type ClearReason = (typeof CLEAR_REASONS)[number];

/** Who does something with an alarm. */
export interface Actor {
  readonly userId: string;
  readonly scope: Scope;
  readonly nowMs: number;
}

/** Parses the text of a note. Throws a 400 that names the field. */
export function parseNote(value: unknown, name: string, isRequired = false): string | null {
  const isBlank = (value ?? null) === null || (typeof value === 'string' && value.trim() === '');
  if (isBlank && !isRequired) return null;
  if (typeof value === 'string' && !isBlank && value.length <= LIMITS.alarmNoteCharacters) return value;
  throw badRequest(`${name}: expected text of 1 to ${LIMITS.alarmNoteCharacters} characters`);
}

/** Whether it is raised, and waits for somebody. Throws 503. */
export async function isUnacknowledged(database: Database, id: string): Promise<boolean> {
  const open = { _id: new ObjectId(id), status: 'raised', acknowledged: null };
  const find = () => collectionOf(database, ALARMS).findOne(open, { projection: { _id: 1 } });
  return (await mapDriverErrors(find, LIMITS.databaseOperationMs)) !== null;
}

/** Those of these alarms that a majority has, raised or cleared. Throws 503. */
export async function findStored(database: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const named = { _id: { $in: ids.map((id) => new ObjectId(id)) } };
  const options = { projection: { _id: 1 }, ...COMMITTED_READ };
  const find = () => collectionOf(database, ALARMS).find(named, options).toArray();
  return new Set((await mapDriverErrors(find, LIMITS.databaseOperationMs)).map(({ _id }) => String(_id)));
}

const toFilter = (id: string, { scope }: Actor): Document => ({
  $and: [{ _id: new ObjectId(id) }, scopeFilter(ALARMS, scope)],
});

async function change(database: Database, id: string, actor: Actor, update: Document[]): Promise<Entity> {
  if (!isId(id)) throw notFound();
  const options = { returnDocument: 'after' } as const;
  const found = await mapDriverErrors(() =>
    collectionOf(database, ALARMS).findOneAndUpdate(toFilter(id, actor), update, options),
  );
  if (found === null) throw notFound();
  return toEntity(ALARMS, found);
}

const changedAt = ({ nowMs }: Pick<Actor, 'nowMs'>): Document => ({
  $max: [nowMs, { $add: [{ $ifNull: ['$_at', 0] }, 1] }],
});

/** Sets fields where a condition holds; otherwise nothing changes. */
const setIf = (condition: Document, fields: Document): Document => ({
  $replaceWith: { $cond: [condition, { $mergeObjects: ['$$ROOT', fields] }, '$$ROOT'] },
});

/** The first acknowledgement counts. Throws 404. */
export function acknowledgeAlarm(database: Database, id: string, actor: Actor, note: string | null): Promise<Entity> {
  const acknowledged = { time: actor.nowMs, user: actor.userId, note };
  const isOpen = { $eq: [{ $ifNull: ['$acknowledged', null] }, null] };
  return change(database, id, actor, [
    setIf(isOpen, { acknowledged: { $literal: acknowledged }, _at: changedAt(actor) }),
  ]);
}

/** Clears a raised alarm, whatever its condition. Throws 404. */
export function clearAlarm(database: Database, id: string, actor: Actor, note: string | null): Promise<Entity> {
  const clearedBy = { user: actor.userId, note };
  const fields = {
    status: 'cleared',
    cleared: { $max: ['$raised', actor.nowMs] },
    clearReason: 'user',
    clearedBy: { $literal: clearedBy },
    _at: changedAt(actor),
  };
  return change(database, id, actor, [setIf({ $eq: ['$status', 'raised'] }, fields)]);
}

/** Gives the raised alarms of a rule the severity that it has now. */
export async function followSeverity(
  database: Database,
  ruleId: string,
  severity: Severity,
  nowMs: number,
): Promise<void> {
  const others = { rule: new ObjectId(ruleId), status: 'raised', severity: { $ne: severity } };
  const update = [{ $set: { severity, _at: changedAt({ nowMs }) } }];
  await mapDriverErrors(() => collectionOf(database, ALARMS).updateMany(others, update));
}

/** Throws 404, and 409 where there are too many. */
export async function addNote(database: Database, id: string, actor: Actor, text: string): Promise<Entity> {
  const note = { time: actor.nowMs, user: actor.userId, text };
  const notes = { $ifNull: ['$notes', []] };
  const isFree = { $lt: [{ $size: notes }, LIMITS.alarmNotes] };
  const added = { notes: { $concatArrays: [notes, [{ $literal: note }]] }, _at: changedAt(actor) };
  const alarm = await change(database, id, actor, [setIf(isFree, added)]);
  const last = (alarm.notes as { time: number; text: string }[] | undefined)?.at(-1);
  if (last?.time !== note.time || last.text !== text) throw conflict(`an alarm has at most ${LIMITS.alarmNotes} notes`);
  return alarm;
}

/** Acknowledges those of these alarms that the actor sees; returns the `_id`s of the others. */
export async function acknowledgeMany(
  database: Database,
  ids: readonly string[],
  actor: Actor,
  note: string | null,
): Promise<{ done: number; missing: string[] }> {
  const acknowledged = { time: actor.nowMs, user: actor.userId, note };
  const named = { $and: [{ _id: { $in: ids.map((id) => new ObjectId(id)) } }, scopeFilter(ALARMS, actor.scope)] };
  const alarms = collectionOf(database, ALARMS);
  const found = await mapDriverErrors(() => alarms.find(named, { projection: { _id: 1 } }).toArray());
  const seen = new Set(found.map(({ _id }) => String(_id)));
  const update = [{ $set: { acknowledged: { $literal: acknowledged }, _at: changedAt(actor) } }];
  const { modifiedCount } = await mapDriverErrors(() =>
    alarms.updateMany({ $and: [named, { acknowledged: null }] }, update),
  );
  return { done: modifiedCount, missing: ids.filter((id) => !seen.has(id)) };
}
