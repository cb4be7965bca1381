/** New documents: those of one turn of the event loop are one write, and each is stored or refused as it would be alone. */
import type { Collection } from 'mongodb';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { insertTogether, type Outcome, type Write } from './write-command.js';

/** Stores a document; durable when it resolves. Throws what the database says of this document. */
export async function insertDocument(database: Database, collection: Collection, one: Write): Promise<void> {
  const name = collection.collectionName;
  const outcomes = await database.inTurn(`insert ${name}`, [one], (all: Write[]) =>
    translated(() => insertAll(database, name, all)),
  );
  await translated(async () => {
    const outcome = outcomes.get(one);
    if (outcome !== undefined && 'refused' in outcome) throw outcome.refused;
  });
}

async function insertAll(
  { db }: Database,
  collection: string,
  all: readonly Write[],
): Promise<Map<Write, Outcome<null>>> {
  const outcomes = await insertTogether(db, collection, all);
  const tried = all.map(async (one, nth) => {
    const outcome = outcomes[nth] as Outcome<null>;
    // Once more by itself, so that the database says of each what it would have said.
    const [again = outcome] = 'refused' in outcome ? await insertTogether(db, collection, [one]) : [];
    return [one, again] as const;
  });
  return new Map(await Promise.all(tried));
}
