/** Reads the documents of a command as BSON bytes, batch by batch. */
import type { ClientSession, Document } from 'mongodb';
import { LIMITS } from '../../../core/limits.js';
import { runCancellable } from '../driver/cancellable.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { runRawCommand } from '../driver/raw-command.js';
import { cursorIn, type DocumentBatch, readBatch } from './document-batch.js';

export interface BatchOptions {
  /** A batch that takes longer is a 503; null for no limit but that of the connection. */
  readonly withinMs?: number | null;
  /** Runs the read of one batch, possibly after waiting in a queue. */
  readonly schedule?: <T>(read: (reader: Database) => Promise<T>) => Promise<T>;
  /** Whether the next batch is read while the caller works on the last one: two are then in memory. */
  readonly readsAhead?: boolean;
}

/** Reads all batches of a `find` or `aggregate` command. */
export async function* rawBatches(
  database: Database,
  command: Document,
  { withinMs = LIMITS.databaseOperationMs, schedule = (read) => read(database), readsAhead = false }: BatchOptions = {},
): AsyncGenerator<DocumentBatch> {
  // A cursor belongs to the session that opened it.
  const session = database.client.startSession();
  const read = (part: Document): Promise<DocumentBatch> =>
    schedule((reader) => readRawBatch(reader, part, { withinMs, session }));
  const size = command.batchSize === undefined ? {} : { batchSize: command.batchSize };
  const readNext = ({ cursorId, namespace }: DocumentBatch): Promise<DocumentBatch> =>
    read({ getMore: cursorId, collection: collectionIn(namespace), ...size });
  let batch: DocumentBatch | null = null;
  let ahead: Promise<DocumentBatch> | null = null;
  let hasFailed = false;
  try {
    batch = await read(Object.assign({}, command, withinMs === null ? {} : { maxTimeMS: withinMs }));
    for (;;) {
      ahead = readsAhead && batch.cursorId !== 0n ? readNext(batch) : null;
      // Its error is thrown when it is awaited.
      ahead?.catch(() => undefined);
      yield batch;
      if (batch.cursorId === 0n) return;
      batch = await (ahead ?? readNext(batch));
    }
  } catch (error) {
    hasFailed = true;
    throw error;
  } finally {
    const closing = closeCursor(database, session, (await ahead?.catch(() => null)) ?? batch);
    // Waiting for an unavailable database would delay the error.
    if (!hasFailed) await closing;
  }
}

async function closeCursor({ db }: Database, session: ClientSession, batch: DocumentBatch | null): Promise<void> {
  if (batch !== null && batch.cursorId !== 0n) {
    const kill = { killCursors: collectionIn(batch.namespace), cursors: [batch.cursorId] };
    await db.command(kill, { session }).catch(() => undefined);
  }
  await session.endSession().catch(() => undefined);
}

const collectionIn = (namespace: string): string => namespace.slice(namespace.indexOf('.') + 1);

/** Runs a command once, and reads the batch in its reply. */
export async function readRawBatch(
  database: Database,
  command: Document,
  { withinMs, session }: { withinMs: number | null; session?: ClientSession },
): Promise<DocumentBatch> {
  const run = () => mapDriverErrors(() => runRawCommand(database.db, command, session), withinMs);
  const reply = session === undefined ? await run() : await runCancellable(database, session, run);
  return readBatch(cursorIn(reply));
}
