/** The watcher on a database that answers with errors, late, or not at all: no kind of failure ends it. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { startWatcher, type Watcher } from '../../src/platform/mongo/changes/watcher.js';
import { createWatcherClient, type Database } from '../../src/platform/mongo/driver/client.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

// A stream that is slow because the machine is busy is not taken for one that hangs, except in the tests of one that hangs.
const USUAL = { watcherPauseMaxMs: 50, watcherWaitMs: 100, watcherAnswerMs: 60_000, watcherSilenceMs: 60_000 };
const IMPATIENT = { watcherAnswerMs: 600, watcherSilenceMs: 500 };
const BLOCKED_MS = 10 * 60_000;

let set: ReplicaSet;
let database: Database;
let uri: string;
const endings: (() => unknown)[] = [];

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  uri = set.uri('vigil');
  database = await connectDatabase(uri);
});

beforeEach(() => {
  Object.assign(LIMITS, USUAL);
});

afterEach(async () => {
  await killBlocked();
  await fail({ mode: 'off' });
  for (const end of endings.splice(0).reverse()) await end();
  await database.db.collection('packets').deleteMany({});
});

afterAll(async () => {
  await database?.client.close();
  await set?.stop();
});

/** Sets the fail point `failCommand` of the server, which MongoDB's own tests use. */
async function fail(point: object): Promise<void> {
  await (await set.primary()).command({ configureFailPoint: 'failCommand', ...point });
}

/** Ends the commands that a fail point blocks: until then it cannot be switched off. */
async function killBlocked(): Promise<void> {
  const primary = await set.primary();
  const { inprog } = await primary.command({ currentOp: 1, appName: 'vigil', 'command.getMore': { $exists: true } });
  for (const { opid } of inprog) await primary.command({ killOp: 1, op: opid });
}

interface Watched {
  readonly watcher: Watcher;
  readonly delivered: number[];
  gaps: number;
  /** Starts and gaps, in their order. */
  readonly order: string[];
  write(n: number): Promise<void>;
}

async function watch(): Promise<Watched> {
  const client = createWatcherClient(uri);
  const packets = database.db.collection<{ _id: number }>('packets');
  const watched: Omit<Watched, 'watcher'> & { watcher?: Watcher } = {
    delivered: [],
    gaps: 0,
    order: [],
    write: async (n) => void (await packets.insertOne({ _id: n })),
  };
  watched.watcher = await startWatcher({
    client,
    onStart: () => void watched.order.push('start'),
    onChange: ({ id }) => void watched.delivered.push(Number(id)),
    onGap() {
      watched.gaps++;
      watched.order.push('gap');
    },
    onSkipped: () => undefined,
    log: { warn: () => undefined, error: () => undefined },
    now: Date.now,
  });
  endings.push(
    () => client.close(),
    () => watched.watcher?.stop(),
  );
  return watched as Watched;
}

const getMore = { failCommands: ['getMore'], appName: 'vigil' };

test.each([
  [47, 'no such document'],
  [136, 'the capped position is lost'],
  [260, 'an invalid token'],
  [280, 'a fatal error of the stream'],
  [286, 'the history is lost'],
])('reports one gap after error %i (%s), and the changes after it', async (errorCode) => {
  const watched = await watch();
  await fail({ mode: { times: 1 }, data: { ...getMore, errorCode } });
  await until(() => watched.gaps > 0, 'a gap');
  await watched.write(1);
  await until(() => watched.delivered.length > 0);
  expect(watched.delivered).toEqual([1]);
  expect(watched.watcher.stats()).toMatchObject({ gaps: 1, restarts: 0 });
  // A reader of the history must not use positions from before the gap.
  expect(watched.order).toEqual(['start', 'gap', 'start']);
});

test.each([
  // More often than the watcher tolerates other errors.
  [43, 'the cursor is gone', LIMITS.watcherAttempts + 1],
  [6, 'the host is not reachable', 2],
  [91, 'a shutdown', 2],
  [189, 'the primary stepped down', 2],
  [237, 'the cursor was killed', 2],
  [10_107, 'not the primary', 2],
  [11_602, 'interrupted by an election', 2],
])('resumes after error %i (%s, %i times) without a lost or repeated change', async (errorCode, _, times) => {
  const watched = await watch();
  await fail({ mode: { times }, data: { ...getMore, errorCode } });
  await watched.write(1);
  await until(() => watched.watcher.stats().restarts === times, 'every restart');
  await watched.write(2);
  await until(() => watched.delivered.length === 2, 'both changes');
  expect(watched.delivered).toEqual([1, 2]);
  expect(watched.watcher.stats()).toMatchObject({ gaps: 0, restarts: times });
});

test('reports a gap after an unknown error that persists, and continues', async () => {
  const watched = await watch();
  await fail({ mode: { times: LIMITS.watcherAttempts }, data: { ...getMore, errorCode: 8_000 } });
  await until(() => watched.gaps > 0, 'a gap');
  await watched.write(1);
  await until(() => watched.delivered.length > 0, 'the change after the gap');
  expect(watched.watcher.stats()).toMatchObject({ gaps: 1, restarts: LIMITS.watcherAttempts - 1 });
});

test('resumes after a broken connection without a lost or repeated change', async () => {
  const watched = await watch();
  await fail({ mode: { times: 3 }, data: { ...getMore, closeConnection: true } });
  await watched.write(1);
  await until(() => watched.delivered.length > 0);
  expect(watched.delivered).toEqual([1]);
  expect(watched.watcher.stats().gaps).toBe(0);
});

test('opens another stream when one does not answer while the server does', async () => {
  Object.assign(LIMITS, IMPATIENT);
  const watched = await watch();
  await fail({ mode: { times: 1 }, data: { ...getMore, blockConnection: true, blockTimeMS: BLOCKED_MS } });
  await until(() => !watched.watcher.isLive(), 'the watcher not to be live');
  await watched.write(1);
  await until(() => watched.delivered.length > 0, 'the change');
  expect(watched.delivered).toEqual([1]);
  await until(() => watched.watcher.isLive(), 'the watcher to be live again');
  expect(watched.watcher.stats().gaps).toBe(0);
});

test('stops while the database does not answer', async () => {
  Object.assign(LIMITS, IMPATIENT);
  const watched = await watch();
  await fail({ mode: 'alwaysOn', data: { ...getMore, blockConnection: true, blockTimeMS: BLOCKED_MS } });
  await until(() => watched.watcher.stats().restarts > 0, 'a restart');
  // The stream would answer only after ten minutes.
  await watched.watcher.stop();
});
