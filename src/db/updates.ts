/** Changes to documents: those of one turn of the event loop are one command, and each is made or refused as it would be alone. */
import { type ClientBulkWriteResult, type Document, type Filter, MongoClientBulkWriteError } from 'mongodb';
import type { Database } from './connect.js';
import { translated } from './documents.js';

export interface Update {
  readonly collection: string;
  readonly filter: Filter<Document>;
  readonly update: Document | Document[];
}

/** Whether a document is another one now, or why the database refused this change. */
type Outcome = { readonly isChanged: boolean } | { readonly refused: unknown };
type Outcomes = ReadonlyMap<Update, Outcome>;

/** Changes one document; durable when it resolves. Gives whether there was one to become another. Throws what the database says of it. */
export async function updateDocument(database: Database, update: Update): Promise<boolean> {
  const outcomes = await database.inTurn('update', [update], (updates: Update[]) =>
    translated(() => updateAll(database, updates)),
  );
  return translated(async () => {
    const outcome = outcomes.get(update) ?? { isChanged: false };
    if ('refused' in outcome) throw outcome.refused;
    return outcome.isChanged;
  });
}

/** Throws what concerns them all. */
async function updateAll(database: Database, updates: readonly Update[]): Promise<Outcomes> {
  if (updates.length === 1) return updateEachAlone(database, updates);
  const { databaseName } = database.db;
  const models = updates.map(({ collection, filter, update }) => ({
    ...{ name: 'updateOne' as const, namespace: `${databaseName}.${collection}`, filter, update },
  }));
  try {
    return outcomesOf(updates, await database.client.bulkWrite(models, { ordered: false, verboseResults: true }));
  } catch (error) {
    if (!(error instanceof MongoClientBulkWriteError)) throw error;
    if (error.writeErrors.size === 0 || error.writeConcernErrors.length > 0) throw error.cause ?? error;
    // Those refused are tried again by themselves, so that the database says of each what it would have said.
    const refused = updates.filter((_, at) => error.writeErrors.has(at));
    return new Map([...outcomesOf(updates, error.partialResult), ...(await updateEachAlone(database, refused))]);
  }
}

function outcomesOf(updates: readonly Update[], result: ClientBulkWriteResult | undefined): Outcomes {
  const countAt = (at: number): number => result?.updateResults?.get(at)?.modifiedCount ?? 0;
  return new Map(updates.map((update, at) => [update, { isChanged: countAt(at) > 0 }]));
}

async function updateEachAlone(database: Database, updates: readonly Update[]): Promise<Outcomes> {
  const tried = updates.map(async (one): Promise<readonly [Update, Outcome]> => {
    const { collection, filter, update } = one;
    try {
      const { modifiedCount } = await database.db.collection(collection).updateOne(filter, update);
      return [one, { isChanged: modifiedCount > 0 }];
    } catch (refused) {
      return [one, { refused }];
    }
  });
  return new Map(await Promise.all(tried));
}
