/** Runs the updates of one iteration of the event loop with one command, with the same results as separate commands. */
import { type Document, type Filter, MongoServerError } from 'mongodb';
import { tooLarge, unavailable } from '../core/errors.js';
import { DOCUMENT_BYTES, toBson } from '../platform/mongo/bson/writer.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { sequenceOf } from '../platform/mongo/driver/raw-command.js';
import { runWrite, type Write, type WriteOutcome, writeTogether } from '../platform/mongo/driver/retryable-write.js';

export interface Update {
  readonly collection: string;
  readonly filter: Filter<Document>;
  readonly update: Document | Document[];
}

/** Whether each update changed a document. */
type Outcomes = ReadonlyMap<Write, WriteOutcome<boolean>>;

/** Updates one document; durable when the promise resolves. Returns whether it changed. Throws the error of this update. */
export async function updateDocument(database: Database, update: Update): Promise<boolean> {
  const { collection } = update;
  const one = { bson: toOperation(update) };
  const outcomes = await database.batch(`update ${collection}`, [one], (all: Write[]) =>
    mapDriverErrors(() => updateAll(database, collection, all)),
  );
  return mapDriverErrors(async () => {
    const outcome = outcomes.get(one);
    if (outcome === undefined) return false;
    if ('error' in outcome) throw outcome.error;
    return outcome.result;
  });
}

// All updates of a command are of one collection: index 0 of its `nsInfo`.
function toOperation({ filter, update }: Update): Uint8Array {
  const bson = toBson({ update: 0, filter, updateMods: update, multi: false }, DOCUMENT_BYTES);
  if (bson === null) throw tooLarge('the change is larger than the database accepts');
  return bson;
}

async function updateAll(database: Database, collection: string, all: readonly Write[]): Promise<Outcomes> {
  const run = (group: readonly Write[]) => runUpdates(database, collection, group);
  const outcomes = await writeTogether(all, run);
  const tried = all.map(async (one, index) => {
    const outcome = outcomes[index] as WriteOutcome<boolean>;
    // A failed update is tried again alone, for the result of a separate command.
    const [again = outcome] = 'error' in outcome ? await writeTogether([one], run) : [];
    return [one, again] as const;
  });
  return new Map(await Promise.all(tried));
}

/** The result of one update of a bulkWrite command; `ok` is 0 for a refused one. */
interface BulkWriteReply {
  readonly idx: number;
  readonly ok: number;
  readonly nModified?: number;
}

async function runUpdates(
  { admin, db }: Database,
  collection: string,
  group: readonly Write[],
): Promise<WriteOutcome<boolean>[]> {
  const ops = sequenceOf(
    'ops',
    group.map(({ bson }) => bson),
  );
  const nsInfo = [{ ns: `${db.databaseName}.${collection}` }];
  const { cursor } = await runWrite(admin, { bulkWrite: 1, ops, nsInfo, ordered: false });
  const replies: readonly BulkWriteReply[] = cursor.firstBatch;
  if (replies.length < group.length) throw unavailable('the database did not report what was changed');
  const outcomes: WriteOutcome<boolean>[] = [];
  for (const reply of replies) {
    const { idx, ok, nModified = 0 } = reply;
    outcomes[idx] = ok === 1 ? { result: nModified > 0 } : { error: new MongoServerError(reply) };
  }
  return outcomes;
}
