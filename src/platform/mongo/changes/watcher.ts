/** Reads one change stream over the database, passes its changes on in order, and resumes it after errors. */

import type { Document, MongoClient } from 'mongodb';
import { backoffMs } from '../../../core/backoff.js';
import type { Change } from '../../../core/change.js';
import { toApiError } from '../../../core/errors.js';
import { LIMITS } from '../../../core/limits.js';
import { clock } from '../../clock.js';
import { isTransientError, withTimeout } from '../driver/errors.js';
import { toPosition } from './decoder.js';
import {
  closeStream,
  dropStream,
  killCursor,
  openStream,
  readStream,
  type Stream,
  type StreamBatch,
} from './stream.js';

export interface WatcherOptions {
  /** A separate client, so that a burst of requests cannot take its connections. */
  readonly client: MongoClient;
  /** Called with the start of the stream before its first change, also after a gap, and then after `onGap`. */
  readonly onStart: (position: string) => void;
  /** Called with each batch before its first change. */
  readonly onBatch?: (changes: readonly Change[]) => Promise<void>;
  readonly onChange: (change: Change) => void | Promise<void>;
  /** Called when changes were missed: all state derived from changes is invalid. */
  readonly onGap: () => void;
  /** Called when a change was skipped: nobody knows what it was. */
  readonly onSkipped: () => void;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

export interface Watcher {
  /** Whether the stream delivers: the database answered within the last `watcherSilenceMs`. */
  isLive(): boolean;
  /** By `now`: every change that was stored before is delivered. 0 before that is known. */
  deliveredToMs(): number;
  /** Every change up to it is delivered; null after a gap, until the stream begins again. */
  position(): string | null;
  stats(): WatcherStats;
  stop(): Promise<void>;
}

export interface WatcherStats {
  /** How often the stream was resumed after an error. */
  readonly restarts: number;
  /** How often it could not be resumed, so that changes were missed. */
  readonly gaps: number;
  /** Changes that were not delivered: too large for the database to report, or a fault of ours. */
  readonly skipped: number;
  /** The delay from writing the latest change to its delivery, measured with two clocks; null before the first change. */
  readonly lagMs: number | null;
  /** When the last reply of the database was completely delivered, in ms since the epoch. */
  readonly lastReplyAtMs: number;
}

/**
 * The history after the token is gone, or the token is invalid, so that resuming would always fail: NoMatchingDocument,
 * CappedPositionLost, InvalidResumeToken, ChangeStreamFatalError, ChangeStreamHistoryLost.
 */
const NOT_RESUMABLE: ReadonlySet<unknown> = new Set([47, 136, 260, 280, 286]);

interface State {
  readonly stopping: AbortController;
  /** The position of the stream: all changes up to it are delivered. */
  last: { readonly token: Document } | null;
  stream: Stream | null;
  deliveredToMs: number;
  /** Whether changes between `last` and the stream were missed, and `onGap` was not called yet. */
  gap: boolean;
  /** Consecutive failures: all of them, and the permanent ones. */
  failures: number;
  faults: number;
  stats: { -readonly [K in keyof WatcherStats]: WatcherStats[K] };
}

/** Connects and opens the stream; may be called again after a failure. When it resolves, every later change will be delivered. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const stats = { restarts: 0, gaps: 0, skipped: 0, lagMs: null, lastReplyAtMs: 0 };
  const state: State = {
    stopping: new AbortController(),
    last: null,
    stream: null,
    deliveredToMs: 0,
    gap: false,
    failures: 0,
    faults: 0,
    stats,
  };
  // A client whose first command fails never recovers; one that failed to connect can connect again.
  await options.client.connect();
  await open(options, state);
  state.stats.lastReplyAtMs = options.now();
  const running = run(options, state);
  return {
    isLive: () => state.stream !== null && options.now() - state.stats.lastReplyAtMs < LIMITS.watcherSilenceMs,
    deliveredToMs: () => state.deliveredToMs,
    position: () => state.last && toPosition(state.last.token),
    stats: () => ({ ...state.stats }),
    async stop() {
      state.stopping.abort();
      // Ends the read that waits for changes.
      if (state.stream !== null) void killCursor(state.stream);
      const left = await withTimeout(() => running, LIMITS.watcherAnswerMs).then(
        () => true,
        () => false,
      );
      if (state.stream !== null) await (left ? closeStream : dropStream)(state.stream);
    },
  };
}

async function run(options: WatcherOptions, state: State): Promise<void> {
  while (!state.stopping.signal.aborted) {
    try {
      if (state.stream === null) {
        await open(options, state);
        continue;
      }
      await readNext(options, state.stream, state);
      state.failures = 0;
      state.faults = 0;
    } catch (error) {
      if (state.stopping.signal.aborted) return;
      await recover(options, state, error);
    }
  }
}

async function open({ client, onGap, onStart }: WatcherOptions, state: State): Promise<void> {
  const opening = openStream(client, state.last?.token ?? null);
  const { stream, token } = await withTimeout(() => opening, patienceMs(state)).catch((error: unknown) => {
    // Closes a stream that opens after the timeout.
    opening.then((late) => closeStream(late.stream)).catch(() => undefined);
    throw error;
  });
  state.stream = stream;
  if (state.last === null) {
    // Only after opening: the new stream reports every change that a read after `onGap` may miss.
    if (state.gap) onGap();
    state.gap = false;
    onStart(toPosition(token));
  }
  state.last = { token };
}

// Leaves a hanging server soon, and gives a server that reads a long oplog more time at each attempt.
const patienceMs = ({ failures }: State): number =>
  Math.min(LIMITS.watcherAnswerMaxMs, LIMITS.watcherAnswerMs * 2 ** Math.min(failures, 10));

async function readNext(options: WatcherOptions, stream: Stream, state: State): Promise<void> {
  const askedMs = options.now();
  const page = { waitMs: LIMITS.watcherWaitMs, batchSize: LIMITS.watcherPage };
  const batch = await withTimeout(() => readStream(stream, page), patienceMs(state));
  // It may be anywhere in the batch: nothing from before it is used for what comes after it.
  if (batch.skipped > 0) options.onSkipped();
  await options.onBatch?.(batch.changes);
  for (const change of batch.changes) {
    await deliver(options, state, change);
    state.last = change;
  }
  state.last = { token: batch.token };
  state.deliveredToMs = batch.isFull ? Math.max(state.deliveredToMs, writtenBeforeMs(batch, askedMs)) : askedMs;
  state.stats.lastReplyAtMs = options.now();
  if (batch.writtenMs !== null) state.stats.lagMs = Math.max(0, state.stats.lastReplyAtMs - batch.writtenMs);
  if (batch.skipped > 0) {
    state.stats.skipped += batch.skipped;
    options.log.error({ changes: batch.skipped }, 'skipped changes that are too large for the database to report');
    options.onSkipped();
  }
  if (batch.ended) throw new Error('the database closed the change stream');
}

/** A full reply has what was written before its last change, by the clock of the database. */
const writtenBeforeMs = ({ writtenMs }: StreamBatch, askedMs: number): number =>
  writtenMs === null ? 0 : Math.min(askedMs, writtenMs - LIMITS.clockSkewMs);

/** Throws transient errors, so that the change is delivered again. Other errors skip the change, so that it blocks no other. */
async function deliver(options: WatcherOptions, state: State, change: Change): Promise<void> {
  try {
    await options.onChange(change);
  } catch (error) {
    if (toApiError(error).status === 503) throw error;
    state.stats.skipped++;
    options.log.error({ err: error }, 'skipped a change that could not be delivered');
    options.onSkipped();
  }
}

async function recover(options: WatcherOptions, state: State, error: unknown): Promise<void> {
  const { code } = error as { code?: unknown };
  if (state.stream !== null) await dropStream(state.stream);
  state.stream = null;
  state.failures++;
  if (!isTransientError(error)) state.faults++;
  if (NOT_RESUMABLE.has(code) || state.faults >= LIMITS.watcherAttempts) {
    options.log.error({ err: error }, 'change stream cannot be resumed: live events before now are lost');
    state.last = null;
    state.gap = true;
    state.faults = 0;
    state.stats.gaps++;
  } else {
    options.log.warn({ err: error, failures: state.failures }, 'change stream failed: resuming it');
    state.stats.restarts++;
  }
  const pauseMs = backoffMs(state.failures, LIMITS.retryPauseMs, LIMITS.watcherPauseMaxMs, clock.random());
  await clock.wait(pauseMs, { signal: state.stopping.signal }).catch(() => undefined);
}
