/** Notes on objects: what people write about a moment or an interval. They are seen by those who see the object, and go with it. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';

/** A note as its readers see it. */
export interface Note {
  readonly _id: string;
  readonly object: string;
  /** What it is about: a moment, or an interval. */
  readonly time: number;
  readonly to: number | null;
  readonly text: string;
  /** The login of who wrote it. */
  readonly author: string;
  readonly created: number;
}

export const NOTES = builtInStore('notes');

export const toNote = ({ _id, object, time, to, text, author, created }: Entity): Note =>
  ({ _id, object, time, to, text, author, created }) as Note;

/** The notes of an object that touch the interval and that the scope sees, the newest first. */
export async function listNotes(
  database: Database,
  scope: Scope,
  {
    objectId,
    fromMs,
    toMs,
  }: { readonly objectId: string; readonly fromMs: number | null; readonly toMs: number | null },
): Promise<Note[]> {
  const conditions: Filter<Document>[] = [{ object: new ObjectId(objectId) }, scopeFilter(NOTES, scope)];
  if (toMs !== null) conditions.push({ time: { $lte: toMs } });
  if (fromMs !== null) conditions.push({ $or: [{ time: { $gte: fromMs } }, { to: { $gte: fromMs } }] });
  // Otherwise the database may read all notes that the caller sees.
  const hint = { object: 1, time: 1, _id: 1 };
  const options = { sort: { time: -1, _id: -1 }, limit: LIMITS.notesPerObject, hint } as const;
  const find = () => collectionOf(database, NOTES).find({ $and: conditions }, options).toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  return found.map((document) => toNote(toEntity(NOTES, document)));
}

/** Counts the notes of an object, up to the limit. */
export function countNotes(database: Database, objectId: string): Promise<number> {
  const options = { limit: LIMITS.notesPerObject };
  const count = () => collectionOf(database, NOTES).countDocuments({ object: new ObjectId(objectId) }, options);
  return mapDriverErrors(count);
}

/** Removes a note of the object that the scope sees; false where there is none. */
export async function removeNote(database: Database, scope: Scope, objectId: string, noteId: string): Promise<boolean> {
  const named = { _id: new ObjectId(noteId), object: new ObjectId(objectId) };
  const filter = { $and: [named, scopeFilter(NOTES, scope)] };
  const { deletedCount } = await mapDriverErrors(() => collectionOf(database, NOTES).deleteOne(filter));
  return deletedCount > 0;
}

/** Removes the note if its object was removed meanwhile, and says so. */
export async function removeOrphan(database: Database, { _id, object }: Note): Promise<boolean> {
  const find = () =>
    database.db.collection('objects').findOne({ _id: new ObjectId(object) }, { projection: { _id: 1 } });
  if ((await mapDriverErrors(find)) !== null) return false;
  await mapDriverErrors(() => collectionOf(database, NOTES).deleteOne({ _id: new ObjectId(_id) }));
  return true;
}
