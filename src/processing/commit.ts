/** Outputs and the positions of their partitions, stored in one transaction that only the partitions' owner can commit. */
import type { AnyBulkWriteOperation, Binary, ClientSession, Document } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { endSessions } from '../platform/mongo/driver/sessions.js';
import { type Done, partitionsOf, toStoredDone } from './partitions.js';

/** What is written into one collection, in order. */
export interface OutputWrite {
  readonly collection: string;
  readonly operations: readonly AnyBulkWriteOperation[];
}

/** One partition goes on: from its commit of that number to the next one. */
export interface Advance {
  readonly index: number;
  readonly epoch: number;
  readonly commits: number;
  readonly done: Done;
  readonly lastNumber: number;
}

/** The partitions that were another's by then; with any of them nothing is stored. */
export class FencedError extends Error {
  constructor(readonly indexes: readonly number[]) {
    super(`partitions ${indexes.join(', ')} have another owner`);
    this.name = 'FencedError';
  }
}

/** The commits of one instance, one at a time. */
export interface Commits {
  /**
   * Commits. Throws `FencedError`; 503 when it is not known whether it was committed: the same can be asked again, and is
   * done once.
   */
  commit(given: Pick<Commit, 'advances' | 'writes'>): Promise<void>;
  /** The sessions in which a transaction may be open. */
  sessions(): readonly Binary[];
  stop(): Promise<void>;
}

export function createCommits(database: Database, owner: string): Commits {
  let session = database.client.startSession();
  const open = new Set([session]);
  const end = async (one: ClientSession): Promise<void> => {
    open.delete(one);
    await one.endSession().catch(() => undefined);
  };
  return {
    async commit({ advances, writes }) {
      const used = session;
      let isRunning = true;
      const run = async (): Promise<void> => {
        try {
          await used.withTransaction(() => commitWithin(database, used, { owner, advances, writes }), {
            readConcern: { level: 'local' },
          });
        } finally {
          isRunning = false;
          if (session !== used) void end(used);
        }
      };
      try {
        await mapDriverErrors(run, LIMITS.databaseOperationMs);
      } catch (error) {
        if (!isRunning) throw error;
        // What it has changed so far must not be in the way when it is tried again.
        void endSessions(database, sessionIdsOf([used])).catch(() => undefined);
        session = database.client.startSession();
        open.add(session);
        throw error;
      }
    },
    sessions: () => sessionIdsOf([...open]),
    stop: async () => void (await Promise.all([...open].map(end))),
  };
}

const sessionIdsOf = (sessions: readonly ClientSession[]): Binary[] => sessions.flatMap(({ id }) => id?.id ?? []);

interface Commit {
  readonly owner: string;
  readonly advances: readonly Advance[];
  readonly writes: readonly OutputWrite[];
}

async function commitWithin(
  database: Database,
  session: ClientSession,
  { owner, advances, writes }: Commit,
): Promise<void> {
  const operations = advances.map(({ index, epoch, commits, done, lastNumber }) => ({
    updateOne: {
      filter: { _id: index, owner, epoch, commits },
      update: { $set: { ...toStoredDone(done), lastNumber, commits: commits + 1 } },
    },
  }));
  const { matchedCount } = await partitionsOf(database).bulkWrite(operations, { ordered: false, session });
  if (matchedCount < advances.length && !(await checkFence(database, session, { owner, advances }))) return;
  for (const { collection, operations: all } of writes) {
    await database.db.collection<Document>(collection).bulkWrite([...all], { ordered: false, session });
  }
}

/** False where all of it was committed already, by a commit whose answer was lost. */
async function checkFence(
  database: Database,
  session: ClientSession,
  { owner, advances }: Pick<Commit, 'owner' | 'advances'>,
): Promise<boolean> {
  const found = await partitionsOf(database)
    .find({ _id: { $in: advances.map(({ index }) => index) } }, { session })
    .toArray();
  const stored = new Map(found.map((one) => [one._id, one]));
  const isOurs = ({ index, epoch }: Advance): boolean =>
    stored.get(index)?.owner === owner && stored.get(index)?.epoch === epoch;
  const lost = advances.filter((advance) => !isOurs(advance));
  if (lost.length > 0) throw new FencedError(lost.map(({ index }) => index));
  // What this transaction has changed shows the same: all of it, or the rest, was stored before.
  if (advances.every(({ index, commits }) => stored.get(index)?.commits === commits + 1)) return false;
  throw new FencedError(advances.map(({ index }) => index));
}
