/** The watcher: one change stream over the database becomes Changes, in order, reopened where it broke. */
import { setTimeout as wait } from 'node:timers/promises';
import type { ClientSession, Document, Long, MongoClient } from 'mongodb';
import { toApiError } from '../errors.js';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { STORES } from '../model/stores.js';
import { toEntity, toPlain } from './documents.js';

export interface WatcherOptions {
  /** A client of its own, so that a burst of requests cannot keep the feed waiting for a connection. */
  readonly client: MongoClient;
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
const KINDS: Readonly<Record<string, Change['kind']>> = {
  insert: 'created',
  update: 'changed',
  replace: 'changed',
  delete: 'removed',
};
/** The history before the token is gone, or the token is none: resuming would fail for ever. */
const NOT_RESUMABLE: ReadonlySet<unknown> = new Set([47, 136, 260, 280, 286]);

interface State {
  readonly stopping: AbortController;
  /** Where the stream is: what was told up to here need not be told again. */
  token: Document | null;
  cursor: { readonly id: Long; readonly session: ClientSession } | null;
  /** Whether the history between `token` and the stream was lost, and nobody was told so yet. */
  gap: boolean;
  /** When everything that the database had told was passed on. */
  heardAtMs: number;
}

/** Opens the stream, and resolves when every later change will be told. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const state: State = { stopping: new AbortController(), token: null, cursor: null, gap: false, heardAtMs: 0 };
  await open(options, state);
  state.heardAtMs = options.now();
  const running = run(options, state);
  return {
    isLive: () => options.now() - state.heardAtMs < LIMITS.watcherSilenceMs,
    async stop() {
      state.stopping.abort();
      await running;
      await state.cursor?.session.endSession();
    },
  };
}

async function run(options: WatcherOptions, state: State): Promise<void> {
  let failures = 0;
  while (!state.stopping.signal.aborted) {
    try {
      if (state.cursor === null) await open(options, state);
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

async function open(options: WatcherOptions, state: State): Promise<void> {
  const stream = {
    fullDocument: 'whenAvailable',
    fullDocumentBeforeChange: 'whenAvailable',
    ...(state.token !== null && { resumeAfter: state.token }),
  };
  const match = {
    'ns.coll': { $in: WATCHED },
    operationType: { $in: Object.keys(KINDS) },
    // The packets of an object that was removed are many, and their end is nobody's news.
    $nor: [{ 'ns.coll': 'packets', operationType: 'delete' }],
  };
  const session = options.client.startSession();
  const reply = await options.client.db().command(
    {
      aggregate: 1,
      pipeline: [{ $changeStream: stream }, { $match: match }],
      cursor: { batchSize: 0 },
      readConcern: { level: 'majority' },
    },
    { session, promoteLongs: false },
  );
  state.cursor = { id: reply.cursor.id, session };
  state.token ??= reply.cursor.postBatchResumeToken;
}

async function readNext(options: WatcherOptions, state: State): Promise<void> {
  const { id, session } = state.cursor as NonNullable<State['cursor']>;
  const reply = await options.client
    .db()
    .command(
      { getMore: id, collection: '$cmd.aggregate', maxTimeMS: LIMITS.watcherWaitMs },
      { session, promoteLongs: false },
    );
  for (const document of reply.cursor.nextBatch) {
    await tell(options, document);
    state.token = document._id;
  }
  state.token = reply.cursor.postBatchResumeToken ?? state.token;
  state.heardAtMs = options.now();
  if (reply.cursor.id.isZero()) throw new Error('the database closed the change stream');
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
  await state.cursor?.session.endSession().catch(() => undefined);
  state.cursor = null;
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

function toChange(document: Document): Change {
  const store = document.ns.coll as string;
  return {
    store,
    kind: KINDS[document.operationType] as Change['kind'],
    id: String(toPlain(document.documentKey._id)),
    before: toImage(store, document.fullDocumentBeforeChange),
    after: toImage(store, document.fullDocument),
    position: toPosition(document._id),
  };
}

function toImage(store: string, document: Document | null | undefined): JsonObject | null {
  // What a session holds is nobody's news.
  if (document === null || document === undefined || store === 'sessions') return null;
  return toEntity(STORES.get(store) ?? { hidden: [] }, document);
}

/** The stream's resume token, its hexadecimal digits packed: opaque, URL-safe, increasing. */
function toPosition(token: Document): string {
  return Buffer.from(token._data, 'hex').toString('base64url');
}
