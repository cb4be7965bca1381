/** The watcher: one change stream over the database becomes Changes, in order, reopened where it broke. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Document, MongoClient } from 'mongodb';
import { toApiError } from '../errors.js';
import type { Change } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { STORES } from '../model/stores.js';
import { closeStream, dropStream, openStream, readStream, type Stream, toChange, toPosition } from './stream.js';

export interface WatcherOptions {
  /** A client of its own, so that a burst of requests cannot keep the feed waiting for a connection. */
  readonly client: MongoClient;
  /** Told where the stream begins, before its first change, also after a gap. */
  readonly onStart: (position: string) => void;
  readonly onChange: (change: Change) => void | Promise<void>;
  /** Changes between the last one told and now are lost to this process: everything derived from them is void. */
  readonly onGap: () => void;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

export interface Watcher {
  /** Whether changes are arriving: the database answered within the last `watcherSilenceMs`. */
  isLive(): boolean;
  stop(): Promise<void>;
}

// The log of security events is read, not followed.
const WATCHED = [...STORES.keys(), 'packets', 'sessions'].filter((name) => name !== 'audit');
/** The history before the token is gone, or the token is none: resuming would fail for ever. */
const NOT_RESUMABLE: ReadonlySet<unknown> = new Set([47, 136, 260, 280, 286]);

interface State {
  readonly stopping: AbortController;
  /** Where the stream is: what was told up to here need not be told again. */
  token: Document | null;
  stream: Stream | null;
  /** Whether the history between `token` and the stream was lost, and nobody was told so yet. */
  gap: boolean;
  /** When everything that the database had told was passed on. */
  heardAtMs: number;
}

/** Opens the stream, and resolves when every later change will be told. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const state: State = { stopping: new AbortController(), token: null, stream: null, gap: false, heardAtMs: 0 };
  await open(options, state);
  state.heardAtMs = options.now();
  const running = run(options, state);
  return {
    isLive: () => options.now() - state.heardAtMs < LIMITS.watcherSilenceMs,
    async stop() {
      state.stopping.abort();
      await running;
      if (state.stream !== null) await closeStream(state.stream);
    },
  };
}

async function run(options: WatcherOptions, state: State): Promise<void> {
  let failures = 0;
  while (!state.stopping.signal.aborted) {
    try {
      if (state.stream === null) await open(options, state);
      // Only now: whoever reads anew after this misses nothing that the new stream does not tell.
      if (state.gap) options.onGap();
      state.gap = false;
      await readNext(options, state);
      failures = 0;
    } catch (error) {
      if (state.stopping.signal.aborted) return;
      await recover(options, state, error, ++failures);
    }
  }
}

async function open({ client, onStart }: WatcherOptions, state: State): Promise<void> {
  const { stream, token } = await openStream(client, WATCHED, state.token);
  state.stream = stream;
  if (state.token === null) onStart(toPosition(token));
  state.token = token;
}

async function readNext(options: WatcherOptions, state: State): Promise<void> {
  const { documents, token, ended } = await readStream(state.stream as Stream, { waitMs: LIMITS.watcherWaitMs });
  for (const document of documents) {
    await tell(options, document);
    state.token = document._id;
  }
  state.token = token ?? state.token;
  state.heardAtMs = options.now();
  if (ended) throw new Error('the database closed the change stream');
}

/** What failed because the database is away is told again; what never can be told must not keep back all that follows. */
async function tell(options: WatcherOptions, document: Document): Promise<void> {
  try {
    await options.onChange(toChange(document));
  } catch (error) {
    if (toApiError(error).status === 503) throw error;
    options.log.error({ err: error }, 'a change could not be told: it is left out');
  }
}

async function recover(options: WatcherOptions, state: State, error: unknown, failures: number): Promise<void> {
  const code = (error as { code?: unknown }).code;
  state.heardAtMs = 0;
  if (state.stream !== null) await dropStream(state.stream);
  state.stream = null;
  if (NOT_RESUMABLE.has(code)) {
    options.log.error({ err: error }, 'the history of changes is gone: live events before now are lost');
    state.token = null;
    state.gap = true;
  } else {
    options.log.warn({ err: error, failures }, 'the change stream broke: reopening where it was');
  }
  const pauseMs = Math.min(LIMITS.watcherPauseMaxMs, 50 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
  await wait(pauseMs, undefined, { signal: state.stopping.signal }).catch(() => undefined);
}
