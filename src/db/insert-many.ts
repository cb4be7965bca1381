/** Many new documents by one command of the database: the driver's own way for groups of writes costs twice as much. */
import { BSON, type Document, MongoBulkWriteError, MongoServerSelectionError } from 'mongodb';
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { isAway } from './documents.js';

export const DUPLICATE = 11_000;

/** A document that was not inserted, by its place among those given. */
export interface Refusal {
  readonly index: number;
  readonly code: number;
  readonly keyPattern?: Document;
}

export interface Inserted {
  readonly refusals: readonly Refusal[];
  /** Whether it was asked twice: then what is refused for its `_id` may have been inserted the first time. */
  readonly isSecond: boolean;
}

/**
 * Inserts each that can be; durable when it resolves. None is larger than `mostBytes`. Throws what concerns them all: then
 * any of them may be there.
 */
export async function insertMany(
  database: Database,
  collection: string,
  documents: readonly Document[],
  mostBytes: number,
): Promise<Inserted> {
  if (documents.length * mostBytes > LIMITS.insertBytes && sizeOf(documents) > LIMITS.insertBytes) {
    // More than a command takes: the driver cuts it up.
    return { refusals: await insertCutUp(database, collection, documents), isSecond: false };
  }
  try {
    return { refusals: await insert(database, collection, documents), isSecond: false };
  } catch (error) {
    // The connection was cut, or there is another primary now: once more, as the driver does with single writes.
    if (!isAway(error) || error instanceof MongoServerSelectionError) throw error;
    return { refusals: await insert(database, collection, documents), isSecond: true };
  }
}

const sizeOf = (documents: readonly Document[]): number =>
  documents.reduce((sum, document) => sum + BSON.calculateObjectSize(document), 0);

async function insert(
  database: Database,
  collection: string,
  documents: readonly Document[],
): Promise<readonly Refusal[]> {
  const command = { insert: collection, documents, ordered: false, writeConcern: { w: 'majority', j: true } };
  const { writeErrors = [], writeConcernError } = await database.db.command(command, { readPreference: 'primary' });
  if (writeConcernError !== undefined)
    throw unavailable('the database does not say that it is stored', writeConcernError);
  return writeErrors;
}

async function insertCutUp(
  database: Database,
  collection: string,
  documents: readonly Document[],
): Promise<readonly Refusal[]> {
  try {
    await database.db.collection(collection).insertMany(documents, { ordered: false });
    return [];
  } catch (error) {
    const errors = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
    const durable = error instanceof MongoBulkWriteError && error.result.getWriteConcernError() === undefined;
    if (errors.length === 0 || !durable) throw error;
    return errors.map(({ index, code }) => ({ index, code }));
  }
}
