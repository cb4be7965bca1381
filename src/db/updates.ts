/** Changes to documents: those of one turn of the event loop are one command, and each is made or refused as it would be alone. */
import { type Document, type Filter, MongoServerError } from 'mongodb';
import { tooLarge, unavailable } from '../errors.js';
import { DOCUMENT_BYTES, toBson } from './bson-writer.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { sequenceOf } from './raw-command.js';
import { type Outcome, runWrite, type Write, writeTogether } from './write-command.js';

export interface Update {
  readonly collection: string;
  readonly filter: Filter<Document>;
  readonly update: Document | Document[];
}

/** Whether a document is another one now. */
type Outcomes = ReadonlyMap<Write, Outcome<boolean>>;

/** Changes one document; durable when it resolves. Gives whether there was one to become another. Throws what the database says of it. */
export async function updateDocument(database: Database, update: Update): Promise<boolean> {
  const { collection } = update;
  const one = { bson: toOperation(update) };
  const outcomes = await database.inTurn(`update ${collection}`, [one], (all: Write[]) =>
    translated(() => updateAll(database, collection, all)),
  );
  return translated(async () => {
    const outcome = outcomes.get(one);
    if (outcome === undefined) return false;
    if ('refused' in outcome) throw outcome.refused;
    return outcome.result;
  });
}

// Those that go together are of one collection: the first of the command's `nsInfo`.
function toOperation({ filter, update }: Update): Uint8Array {
  const bson = toBson({ update: 0, filter, updateMods: update, multi: false }, DOCUMENT_BYTES);
  if (bson === null) throw tooLarge('the change is larger than the database takes');
  return bson;
}

async function updateAll(database: Database, collection: string, all: readonly Write[]): Promise<Outcomes> {
  const run = (group: readonly Write[]) => runUpdates(database, collection, group);
  const outcomes = await writeTogether(all, run);
  const tried = all.map(async (one, nth) => {
    const outcome = outcomes[nth] as Outcome<boolean>;
    // Once more by itself, so that the database says of each what it would have said.
    const [again = outcome] = 'refused' in outcome ? await writeTogether([one], run) : [];
    return [one, again] as const;
  });
  return new Map(await Promise.all(tried));
}

/** What the database says of one change of several: `ok` 0 where it was refused. */
interface Said {
  readonly idx: number;
  readonly ok: number;
  readonly nModified?: number;
}

async function runUpdates(
  { admin, db }: Database,
  collection: string,
  group: readonly Write[],
): Promise<Outcome<boolean>[]> {
  const ops = sequenceOf(
    'ops',
    group.map(({ bson }) => bson),
  );
  const nsInfo = [{ ns: `${db.databaseName}.${collection}` }];
  const { cursor } = await runWrite(admin, { bulkWrite: 1, ops, nsInfo, ordered: false });
  const said: readonly Said[] = cursor.firstBatch;
  if (said.length < group.length) throw unavailable('the database does not say what was changed');
  const outcomes: Outcome<boolean>[] = [];
  for (const one of said) {
    const { idx, ok, nModified = 0 } = one;
    outcomes[idx] = ok === 1 ? { result: nModified > 0 } : { refused: new MongoServerError(one) };
  }
  return outcomes;
}
