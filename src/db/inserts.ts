/** New documents: those of one turn of the event loop are one write, and each is stored or refused as it would be alone. */
import type { Collection, Document } from 'mongodb';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { insertMany } from './insert-many.js';

/** Stores a document; durable when it resolves. Throws what the database says of this document. */
export async function insertDocument(database: Database, collection: Collection, document: Document): Promise<void> {
  const { collectionName } = collection;
  const failures = await database.inTurn(`insert ${collectionName}`, [document], (documents: Document[]) =>
    translated(() => insertAll(database, collection, documents)),
  );
  await translated(async () => {
    if (failures.has(document)) throw failures.get(document);
  });
}

/** The documents that were refused, and why. Throws what concerns them all. */
async function insertAll(
  database: Database,
  collection: Collection,
  documents: readonly Document[],
): Promise<Map<Document, unknown>> {
  if (documents.length === 1) return new Map(await insertAlone(collection, documents));
  const { refusals, isSecond } = await insertMany(
    database,
    collection.collectionName,
    documents,
    LIMITS.entityStoredBytes,
  );
  // Every `_id` is a new one: where it is there, it was inserted the first time.
  const refused = refusals.filter(({ keyPattern }) => !(isSecond && keyPattern?._id !== undefined));
  // Tried again by itself, so that the database says of each what it would have said.
  return new Map(
    await insertAlone(
      collection,
      refused.map(({ index }) => documents[index] as Document),
    ),
  );
}

async function insertAlone(
  collection: Collection,
  documents: readonly Document[],
): Promise<readonly (readonly [Document, unknown])[]> {
  const tried = documents.map(async (document) => {
    try {
      await collection.insertOne(document);
      return [];
    } catch (error) {
      return [[document, error]] as const;
    }
  });
  return (await Promise.all(tried)).flat();
}
