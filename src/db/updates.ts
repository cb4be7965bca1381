/** Changes to documents: those of one turn of the event loop are one command, and each is made or refused as it would be alone. */
import type { Document, Filter } from 'mongodb';
import { unavailable } from '../errors.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { inPieces, runWrite, type Sized } from './write-command.js';

/** Its size is at most what is told: measuring it would cost as much as all else here. */
export interface Update extends Sized {
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
  const outcomes: (readonly [Update, Outcome])[] = [];
  for (const piece of inPieces(updates)) outcomes.push(...(await updateTogether(database, piece)));
  return new Map(outcomes);
}

/** What the database says of one change of several: `ok` 0 where it was refused. */
interface Said {
  readonly idx: number;
  readonly ok: number;
  readonly nModified?: number;
}

async function updateTogether(database: Database, updates: readonly Update[]): Promise<Outcomes> {
  const { admin, db } = database;
  const namespaces = [...new Set(updates.map(({ collection }) => collection))];
  const { cursor } = await runWrite(admin, {
    bulkWrite: 1,
    ops: updates.map(({ collection, filter, update }) => {
      return { update: namespaces.indexOf(collection), filter, updateMods: update, multi: false };
    }),
    nsInfo: namespaces.map((name) => ({ ns: `${db.databaseName}.${name}` })),
    ordered: false,
  });
  const said: readonly Said[] = cursor.firstBatch;
  if (said.length < updates.length) throw unavailable('the database does not say what was changed');
  // Those refused are tried again by themselves, so that the database says of each what it would have said.
  const refused = said.filter(({ ok }) => ok !== 1).map(({ idx }) => updates[idx] as Update);
  const made = said.map(({ idx, nModified = 0 }) => [updates[idx] as Update, { isChanged: nModified > 0 }] as const);
  return new Map([...made, ...(await updateEachAlone(database, refused))]);
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
