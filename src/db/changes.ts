/** The watcher: one change stream over the database becomes Changes, in order, reopened where it broke. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Document, MongoClient } from 'mongodb';
import { toApiError } from '../errors.js';
import type { Change } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { isAway, withinTime } from './documents.js';
import { closeStream, dropStream, openStream, readStream, type Stream } from './stream.js';
import { toPosition } from './stream-changes.js';

export interface WatcherOptions {
  /** A client of its own, so that a burst of requests cannot keep the feed waiting for a connection. */
  readonly client: MongoClient;
  /** Told where the stream begins, before its first change, also after a gap. */
  readonly onStart: (position: string) => void;
  /** Told of changes that came together, before the first of them. */
  readonly onBatch?: (changes: readonly Change[]) => Promise<void>;
  readonly onChange: (change: Change) => void | Promise<void>;
  /** Changes between the last one told and now are lost to this process: everything derived from them is void. */
  readonly onGap: () => void;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

export interface Watcher {
  /** Whether changes are arriving: the database answered within the last `watcherSilenceMs`. */
  isLive(): boolean;
  stats(): WatcherStats;
  stop(): Promise<void>;
}

/** What happened to the watcher since it was started. */
export interface WatcherStats {
  /** How often the stream broke and was opened where it was. */
  readonly restarts: number;
  /** How often it could not be, and changes were lost to this process. */
  readonly gaps: number;
  /** Changes that could not be told to anyone: larger than the database tells, or a fault of ours. */
  readonly skipped: number;
  /** How long after it was written the latest change was told, by two clocks; null before the first. */
  readonly lagMs: number | null;
  /** When everything that the database had told was passed on; ms since the epoch. */
  readonly heardAtMs: number;
}

/**
 * The history before the token is gone, or the token is none: resuming would fail for ever. NoMatchingDocument,
 * CappedPositionLost, InvalidResumeToken, ChangeStreamFatalError, ChangeStreamHistoryLost.
 */
const NOT_RESUMABLE: ReadonlySet<unknown> = new Set([47, 136, 260, 280, 286]);

interface State {
  readonly stopping: AbortController;
  /** Where the stream is: what was told up to here need not be told again. */
  at: { readonly token: Document } | null;
  stream: Stream | null;
  /** Whether the history between `at` and the stream was lost, and nobody was told so yet. */
  gap: boolean;
  /** Failures in a row: of any kind, and those that are not the database being away. */
  failures: number;
  faults: number;
  stats: { -readonly [K in keyof WatcherStats]: WatcherStats[K] };
}

/** Opens the stream, and resolves when every later change will be told. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const stats = { restarts: 0, gaps: 0, skipped: 0, lagMs: null, heardAtMs: 0 };
  const state: State = {
    ...{ stopping: new AbortController(), at: null, stream: null, gap: false },
    ...{ failures: 0, faults: 0, stats },
  };
  await open(options, state);
  state.stats.heardAtMs = options.now();
  const running = run(options, state);
  return {
    isLive: () => state.stream !== null && options.now() - state.stats.heardAtMs < LIMITS.watcherSilenceMs,
    stats: () => ({ ...state.stats }),
    async stop() {
      state.stopping.abort();
      const left = await withinTime(() => running, LIMITS.watcherAnswerMs).then(
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
      if (state.stream === null) await open(options, state);
      // Only now: whoever reads anew after this misses nothing that the new stream does not tell.
      if (state.gap) options.onGap();
      state.gap = false;
      await readNext(options, state);
      state.failures = 0;
      state.faults = 0;
    } catch (error) {
      if (state.stopping.signal.aborted) return;
      await recover(options, state, error);
    }
  }
}

async function open({ client, onStart }: WatcherOptions, state: State): Promise<void> {
  const opening = openStream(client, state.at?.token ?? null);
  const { stream, token } = await withinTime(() => opening, patienceMs(state)).catch((error: unknown) => {
    // One that opens after all is nobody's.
    opening.then((late) => closeStream(late.stream)).catch(() => undefined);
    throw error;
  });
  state.stream = stream;
  if (state.at === null) onStart(toPosition(token));
  state.at = { token };
}

// A server that hangs is left after a short time; one that has much to read through gets more of it every time.
const patienceMs = ({ failures }: State): number =>
  Math.min(LIMITS.watcherAnswerMaxMs, LIMITS.watcherAnswerMs * 2 ** Math.min(failures, 10));

async function readNext(options: WatcherOptions, state: State): Promise<void> {
  const stream = state.stream as Stream;
  const asked = { waitMs: LIMITS.watcherWaitMs, batchSize: LIMITS.watcherPage };
  const batch = await withinTime(() => readStream(stream, asked), patienceMs(state));
  await options.onBatch?.(batch.changes);
  for (const change of batch.changes) {
    await tell(options, state, change);
    state.at = change;
  }
  state.at = { token: batch.token };
  state.stats.heardAtMs = options.now();
  if (batch.writtenMs !== null) state.stats.lagMs = Math.max(0, state.stats.heardAtMs - batch.writtenMs);
  if (batch.skipped > 0) {
    state.stats.skipped += batch.skipped;
    options.log.error({ changes: batch.skipped }, 'changes larger than the database can tell are left out');
  }
  if (batch.ended) throw new Error('the database closed the change stream');
}

/** What failed because the database is away is told again; what never can be told must not keep back all that follows. */
async function tell(options: WatcherOptions, state: State, change: Change): Promise<void> {
  try {
    await options.onChange(change);
  } catch (error) {
    if (toApiError(error).status === 503) throw error;
    state.stats.skipped++;
    options.log.error({ err: error }, 'a change could not be told: it is left out');
  }
}

async function recover(options: WatcherOptions, state: State, error: unknown): Promise<void> {
  const { code } = error as { code?: unknown };
  if (state.stream !== null) await dropStream(state.stream);
  state.stream = null;
  state.failures++;
  if (!isAway(error)) state.faults++;
  if (NOT_RESUMABLE.has(code) || state.faults >= LIMITS.watcherAttempts) {
    options.log.error({ err: error }, 'the history of changes is gone: live events before now are lost');
    state.at = null;
    state.gap = true;
    state.faults = 0;
    state.stats.gaps++;
  } else {
    options.log.warn({ err: error, failures: state.failures }, 'the change stream broke: reopening where it was');
    state.stats.restarts++;
  }
  const longestMs = Math.min(LIMITS.watcherPauseMaxMs, 50 * 2 ** Math.min(state.failures, 10));
  const pauseMs = longestMs * (0.5 + Math.random() / 2);
  await wait(pauseMs, undefined, { signal: state.stopping.signal }).catch(() => undefined);
}
