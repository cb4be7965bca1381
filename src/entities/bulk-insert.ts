/** Inserts the documents of one iteration of the event loop with one command, with the same results as separate commands. */
import type { Collection } from 'mongodb';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { insertTogether, type Write, type WriteOutcome } from '../platform/mongo/driver/retryable-write.js';

/** Inserts a document; durable when the promise resolves. Throws the error of this document. */
export async function insertDocument(database: Database, collection: Collection, one: Write): Promise<void> {
  const name = collection.collectionName;
  const outcomes = await database.batch(`insert ${name}`, [one], (all: Write[]) =>
    mapDriverErrors(() => insertAll(database, name, all)),
  );
  await mapDriverErrors(async () => {
    const outcome = outcomes.get(one);
    if (outcome !== undefined && 'error' in outcome) throw outcome.error;
  });
}

async function insertAll(
  { db }: Database,
  collection: string,
  all: readonly Write[],
): Promise<Map<Write, WriteOutcome<null>>> {
  const outcomes = await insertTogether(db, collection, all);
  const tried = all.map(async (one, index) => {
    const outcome = outcomes[index] as WriteOutcome<null>;
    // A failed document is tried again alone, for the result of a separate command.
    const [again = outcome] = 'error' in outcome ? await insertTogether(db, collection, [one]) : [];
    return [one, again] as const;
  });
  return new Map(await Promise.all(tried));
}
