/** The watcher on a database that answers wrongly, late, or not at all: each kind of failure takes its own way, none ends it. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { startWatcher, type Watcher } from '../../src/db/changes/watcher.js';
import { createWatcherClient, type Database } from '../../src/db/driver/client.js';
import { connectDatabase } from '../../src/db/schema/connect.js';
import { LIMITS } from '../../src/model/limits.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

// Longer than it waits for an answer, the second time as well.
const BLOCKED_MS = 8_000;
Object.assign(LIMITS, { watcherPauseMaxMs: 50 });

let set: ReplicaSet;
let database: Database;
let uri: string;
const endings: (() => unknown)[] = [];

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  uri = set.uri('vigil');
  database = await connectDatabase(uri);
}, 60_000);

afterEach(async () => {
  await fail({ mode: 'off' });
  for (const end of endings.splice(0).reverse()) await end();
  await database.db.collection('packets').deleteMany({});
});

afterAll(async () => {
  await database?.client.close();
  await set?.stop();
});

/** What the server does to the commands of the service: `failCommand` of MongoDB's own tests. */
async function fail(point: object): Promise<void> {
  await (await set.primary()).command({ configureFailPoint: 'failCommand', ...point });
}

interface Watched {
  readonly watcher: Watcher;
  readonly told: number[];
  gaps: number;
  /** Starts and gaps, in their order. */
  readonly order: string[];
  write(n: number): Promise<void>;
}

async function watch(): Promise<Watched> {
  const client = createWatcherClient(uri);
  const packets = database.db.collection<{ _id: number }>('packets');
  const watched: Omit<Watched, 'watcher'> & { watcher?: Watcher } = {
    ...{ told: [], gaps: 0, order: [] },
    write: async (n) => void (await packets.insertOne({ _id: n })),
  };
  watched.watcher = await startWatcher({
    client,
    onStart: () => void watched.order.push('start'),
    onChange: ({ id }) => void watched.told.push(Number(id)),
    onGap() {
      watched.gaps++;
      watched.order.push('gap');
    },
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
])('error %i (%s): one gap, and what comes after it is told', async (errorCode) => {
  const watched = await watch();
  await fail({ mode: { times: 1 }, data: { ...getMore, errorCode } });
  await until(() => watched.gaps > 0);
  await watched.write(1);
  await until(() => watched.told.length > 0);
  expect(watched.told).toEqual([1]);
  expect(watched.watcher.stats()).toMatchObject({ gaps: 1, restarts: 0 });
  // Whoever reads the history at the start must not use what was remembered from before the gap.
  expect(watched.order).toEqual(['start', 'gap', 'start']);
});

test.each([
  // More often than the watcher bears of what is not the database being away.
  [43, 'the cursor is gone', LIMITS.watcherAttempts + 1],
  [6, 'the host is not reachable', 2],
  [91, 'a shutdown', 2],
  [189, 'the primary stepped down', 2],
  [237, 'the cursor was killed', 2],
  [10_107, 'not the primary', 2],
  [11_602, 'interrupted by an election', 2],
])(
  'error %i (%s, %i times): opened where it was, nothing lost, nothing twice',
  async (errorCode, _, times) => {
    const watched = await watch();
    await fail({ mode: { times }, data: { ...getMore, errorCode } });
    await watched.write(1);
    await until(() => watched.watcher.stats().restarts === times, 'every failure', 20_000);
    await watched.write(2);
    await until(() => watched.told.length === 2);
    expect(watched.told).toEqual([1, 2]);
    expect(watched.watcher.stats()).toMatchObject({ gaps: 0, restarts: times });
  },
  40_000,
);

test('an error that nobody knows and that stays is a gap at last, not the end of the feed', async () => {
  const watched = await watch();
  await fail({ mode: { times: LIMITS.watcherAttempts }, data: { ...getMore, errorCode: 8_000 } });
  await until(() => watched.gaps > 0, 'a gap', 25_000);
  await watched.write(1);
  await until(() => watched.told.length > 0);
  expect(watched.watcher.stats()).toMatchObject({ gaps: 1, restarts: LIMITS.watcherAttempts - 1 });
}, 90_000);

test('a connection that is cut: the same', async () => {
  const watched = await watch();
  await fail({ mode: { times: 3 }, data: { ...getMore, closeConnection: true } });
  await watched.write(1);
  await until(() => watched.told.length > 0);
  expect(watched.told).toEqual([1]);
  expect(watched.watcher.stats().gaps).toBe(0);
});

test('a stream that says nothing is left, though the server lives, and opened anew', async () => {
  const watched = await watch();
  await fail({ mode: { times: 1 }, data: { ...getMore, blockConnection: true, blockTimeMS: BLOCKED_MS } });
  await until(() => !watched.watcher.isLive(), 'it notices', 30_000);
  await watched.write(1);
  await until(() => watched.told.length > 0, 'the change', 30_000);
  expect(watched.told).toEqual([1]);
  expect(watched.watcher.isLive()).toBe(true);
  expect(watched.watcher.stats()).toMatchObject({ gaps: 0, restarts: 1 });
}, 60_000);

test('stopping does not wait for a database that hangs', async () => {
  const watched = await watch();
  await fail({ mode: 'alwaysOn', data: { ...getMore, blockConnection: true, blockTimeMS: BLOCKED_MS } });
  await until(() => watched.watcher.stats().restarts > 0, 'it was left', 30_000);
  const startMs = performance.now();
  await watched.watcher.stop();
  expect(performance.now() - startMs).toBeLessThan(20_000);
}, 90_000);
