/** New documents: those of one turn of the event loop are one write, and each is stored or refused as it would be alone. */
import { type Collection, type Document, MongoBulkWriteError } from 'mongodb';
import type { Database } from './connect.js';
import { translated } from './documents.js';

/** Stores a document; durable when it resolves. Throws what the database says of this document. */
export async function insertDocument(database: Database, collection: Collection, document: Document): Promise<void> {
  const { collectionName } = collection;
  const failures = await database.inTurn(`insert ${collectionName}`, [document], (documents: Document[]) =>
    translated(() => insertAll(collection, documents)),
  );
  await translated(async () => {
    if (failures.has(document)) throw failures.get(document);
  });
}

/** The documents that were refused, and why. Throws what concerns them all. */
async function insertAll(collection: Collection, documents: readonly Document[]): Promise<Map<Document, unknown>> {
  if (documents.length === 1) return new Map(await insertAlone(collection, documents));
  try {
    await collection.insertMany(documents, { ordered: false });
    return new Map();
  } catch (error) {
    const errors = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
    const durable = error instanceof MongoBulkWriteError && error.result.getWriteConcernError() === undefined;
    if (errors.length === 0 || !durable) throw error;
    // Tried again by itself, so that the database says of each what it would have said.
    return new Map(
      await insertAlone(
        collection,
        errors.map(({ index }) => documents[index] as Document),
      ),
    );
  }
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
