/** New documents: those of one turn of the event loop are one write, and each is stored or refused as it would be alone. */
import type { Collection } from 'mongodb';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { insertMany, type NewDocument } from './write-command.js';

/** Stores a document; durable when it resolves. Throws what the database says of this document. */
export async function insertDocument(database: Database, collection: Collection, one: NewDocument): Promise<void> {
  const failures = await database.inTurn(`insert ${collection.collectionName}`, [one], (all: NewDocument[]) =>
    translated(() => insertAll(database, collection, all)),
  );
  await translated(async () => {
    if (failures.has(one)) throw failures.get(one);
  });
}

/** The documents that were refused, and why. Throws what concerns them all. */
async function insertAll(
  { db }: Database,
  collection: Collection,
  all: readonly NewDocument[],
): Promise<Map<NewDocument, unknown>> {
  const refused = await insertMany(db, collection.collectionName, all);
  // Tried again by itself, so that the database says of each what it would have said.
  const tried = refused.map(async ({ index }) => {
    const one = all[index] as NewDocument;
    try {
      await collection.insertOne(one.document);
      return [];
    } catch (error) {
      return [[one, error]] as const;
    }
  });
  return new Map((await Promise.all(tried)).flat());
}
