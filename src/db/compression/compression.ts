/**
 * Compresses the packets of an installation whose collection was created without compression: copies them into a compressed
 * collection while the service runs, applies all changes meanwhile, and exchanges the two. One instance at a time works on it, and
 * another one continues if that instance ends.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { ClientSession } from 'mongodb';
import { LIMITS } from '../../model/limits.js';
import type { Database } from '../driver/client.js';
import { isTransientError } from '../driver/errors.js';
import { acquireLease } from '../driver/lease.js';
import { endSessions } from '../driver/sessions.js';
import { COMPRESSION } from '../schema/collections.js';
import { type Catalog, readCatalog, renameCopy } from './catalog.js';
import { exchangeThem, finish } from './exchange.js';
import {
  CannotCompressError,
  type Compression,
  isUnderWay,
  OvertakenError,
  readCompression,
  takeCompression,
} from './state.js';
import { abandon, begin, compareAll, copyAll, tidy } from './steps.js';
import { isHistoryLost } from './tail.js';
import type { Work } from './work.js';

export interface CompressionOptions {
  readonly database: Database;
  readonly log: Work['log'];
}

/** The job of one instance. */
export interface CompressionJob {
  /** Which part of the packets this instance has copied, 0 to 1; 0 while it does nothing. */
  progress(): number;
  stop(): Promise<void>;
}

/** Unauthorized. */
const UNAUTHORIZED = 13;
const NEEDS_ROLE = 'the user of MONGODB_URI needs the role dbAdmin for it';

/** Looks for a request, and works on it, until it is stopped. */
export function startCompression(options: CompressionOptions): CompressionJob {
  const stopping = new AbortController();
  // One session for all work: what another instance ends in it is never anything else.
  const session = options.database.client.startSession();
  const job = { session, progress: 0, failures: 0, loggedMs: performance.now() };
  const running = run(options, job, stopping.signal);
  return {
    progress: () => job.progress,
    async stop() {
      stopping.abort();
      await running;
      await session.endSession().catch(() => undefined);
    },
  };
}

interface Job {
  readonly session: ClientSession;
  progress: number;
  /** Permanent errors in a row. */
  failures: number;
  loggedMs: number;
}

async function run(options: CompressionOptions, job: Job, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let pauseMs: number = LIMITS.compressionCheckMs;
    try {
      if ((await look(options, job, signal)) === 'idle') pauseMs = LIMITS.compressionIdleMs;
    } catch (error) {
      if (!signal.aborted) options.log.warn({ err: error }, 'failed to compress packets; retrying');
    }
    job.progress = 0;
    await wait(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

/** `idle` where there is nothing to do, and no former owner can be late with something either. */
async function look({ database, log }: CompressionOptions, job: Job, signal: AbortSignal): Promise<'idle' | 'again'> {
  const [state, catalog] = await Promise.all([readCompression(database), readCatalog(database)]);
  const isSettled = state === null || state.stage === 'done';
  const isTidy = catalog.copies.length === 0 && !catalog.packets?.refusesInserts;
  if (!isUnderWay(state) && isTidy) return isSettled ? 'idle' : 'again';
  const lease = await acquireLease(database, COMPRESSION, LIMITS.compressionLeaseMs);
  if (lease === null) return 'again';
  const onProgress: Work['onProgress'] = ({ stage, copied, total }, behindMs) => {
    job.progress = Math.min(1, copied / Math.max(1, total));
    job.failures = 0;
    if (performance.now() - job.loggedMs < LIMITS.compressionLogMs) return;
    job.loggedMs = performance.now();
    if (behindMs < LIMITS.compressionBehindMs) log.info({ stage, copied, total }, 'compressing packets');
    else log.warn({ stage, copied, total, behindMs }, 'compressing packets: more are stored than the copy can take');
  };
  const { session } = job;
  const until = { signal: AbortSignal.any([signal, lease.lost]), lost: lease.lost };
  try {
    await workOn({ database, log, session, owner: randomUUID(), ...until, onProgress }, job);
  } finally {
    await lease.release();
  }
  return 'again';
}

async function workOn(work: Work, job: Job): Promise<void> {
  await takeOver(work.database, work.owner, work.session);
  while (!work.signal.aborted) {
    const [state, catalog] = await Promise.all([readCompression(work.database), readCatalog(work.database)]);
    if (!isUnderWay(state)) return tidy(work.database, catalog);
    if (state.owner !== work.owner) return;
    try {
      await takeStep(work, state, catalog);
    } catch (error) {
      // What the operator wants, or where it has to begin again, shows in the next turn.
      if (!(error instanceof OvertakenError)) await recover(work, { job, error, catalog });
    }
  }
}

/** Ends what the former owner may still be doing: its transaction, and its exchange, for which the copy gets another name. */
async function takeOver(database: Database, owner: string, session: ClientSession): Promise<void> {
  const former = await readCompression(database);
  if (former === null) return;
  if (former.session !== null) await endSessions(database, [former.session]);
  await takeCompression(database, owner, session.id?.id ?? null);
  const { copies } = await readCatalog(database);
  const copy = copies.find(({ uuid }) => former.copy !== null && uuid.equals(former.copy));
  if (copy !== undefined) await renameCopy(database, copy);
}

async function takeStep(work: Work, state: Compression, catalog: Catalog): Promise<void> {
  const { packets, copies } = catalog;
  const isCopy = ({ uuid }: { uuid: { equals(other: never): boolean } }): boolean =>
    state.copy !== null && uuid.equals(state.copy as never);
  if (packets !== null && isCopy(packets)) return finish(work, packets, state);
  if (state.isUnwanted) return abandon(work, catalog, 'stopped', null);
  const copy = copies.find(isCopy);
  const isSource = packets !== null && state.source !== null && packets.uuid.equals(state.source);
  if (copy === undefined || !isSource || state.stage === 'requested') return begin(work, catalog);
  const move = { packets, copy };
  if (state.stage === 'copying') return copyAll(work, move, state);
  if (state.stage === 'comparing') return compareAll(work, move, state);
  return exchangeThem(work, move, state);
}

/** Begins again where the history is gone, gives up where nothing else helps; otherwise throws the error, to be tried again later. */
async function recover(
  work: Work,
  { job, error, catalog }: { job: Job; error: unknown; catalog: Catalog },
): Promise<void> {
  if (isHistoryLost(error)) {
    work.log.warn(
      { err: error },
      'the database has lost the changes since the compression of packets: it begins again',
    );
    return tidy(work.database, catalog);
  }
  const problem = problemOf(error);
  if (problem === null && (isTransientError(error) || ++job.failures < LIMITS.compressionTries)) throw error;
  const present = await readCatalog(work.database);
  const state = await readCompression(work.database);
  if (state?.copy && present.packets?.uuid.equals(state.copy)) throw error;
  job.failures = 0;
  work.log.warn({ err: error }, 'packets cannot be compressed');
  await abandon(work, present, 'failed', problem ?? (error as Error).message);
}

function problemOf(error: unknown): string | null {
  if (error instanceof CannotCompressError) return error.message;
  return (error as { code?: unknown }).code === UNAUTHORIZED ? NEEDS_ROLE : null;
}
