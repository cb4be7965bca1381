/** Engines share partitions while changes keep coming, and every task is done once; without the database they stop all the same. */
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { MongoClient } from 'mongodb';
import type { Change, HistoryPage } from '../../src/core/change.js';
import { LIMITS } from '../../src/core/limits.js';
import { createClient, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { retryUntilAvailable } from '../../src/platform/ops/lifecycle.js';
import { createEngine, type Engine } from '../../src/processing/engine.js';
import type { Task } from '../../src/processing/processor.js';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { testUri } from '../support/fixture.js';
import { planned, positionOf, processor } from '../support/holdings.js';
import { endPartitionLeases } from '../support/leases.js';
import { until } from '../support/until.js';

// An outage is soon found out; leases, which a busy machine would lose, do not end.
Object.assign(LIMITS, { databaseSelectionMs: 500 });
let line: Line;
let client: MongoClient;
/** All changes so far: the n-th has a task of the partition n modulo 16. */
const changes: Change[] = [];
const logged: string[] = [];

beforeAll(async () => {
  line = await openLine(testUri());
  client = createClient(line.uri);
  await client.connect();
});
beforeEach(async () => {
  await client.db().dropDatabase();
  await client.db().createCollection('outputs');
  changes.length = 0;
  logged.length = 0;
});
afterAll(async () => {
  await line.mend();
  await client.db().dropDatabase();
  await client.close();
  await line.cut();
});

const numberOf = (position: string): number => Buffer.from(position, 'base64url').readUInt32BE(5);

async function* readFrom(position: string): AsyncGenerator<HistoryPage, never> {
  for (let from = numberOf(position); ; ) {
    const page = changes.slice(from, from + LIMITS.historyPage);
    from += page.length;
    yield { changes: page, upTo: positionOf(from) };
    await wait(5);
  }
}

/** The tasks of the n-th change. */
let tasksOf = (n: number): readonly Task[] => [planned(n % LIMITS.partitions, n).task];

async function startEngine(): Promise<Engine> {
  const engine = createEngine({
    database: databaseOf(client),
    openHistory: async (position) => readFrom(position),
    now: Date.now,
    processors: [
      {
        ...processor,
        plan({ position }, isWanted) {
          const tasks = tasksOf(numberOf(position));
          return tasks.filter(({ partition, tenant }) => isWanted(partition, tenant));
        },
      },
    ],
    onRefill: () => undefined,
    log: { warn: (_details, message) => void logged.push(message), error: (_, message) => void logged.push(message) },
  });
  engine.begin(positionOf(changes.length));
  // As the service does: a connection may still fail that was being opened while the line was cut.
  await retryUntilAvailable(engine.start, { signal: new AbortController().signal, onUnavailable: () => undefined });
  return engine;
}

function add(count: number, ...engines: readonly Engine[]): void {
  for (let n = 0; n < count; n++) {
    const change = { position: positionOf(changes.length + 1) } as Change;
    changes.push(change);
    for (const engine of engines) void engine.apply(change);
  }
}

const hasAll = (engine: Engine, partitions: number) => () =>
  engine.stats().partitions === partitions && engine.stats().behind === 0;

test('gives partitions back while tasks of the others keep coming, and does every task once', async () => {
  const first = await startEngine();
  await until(hasAll(first, 16), 'all partitions');
  const second = await startEngine();
  let held = 16;
  const isShared = (): boolean => {
    // Less than a commit takes passes between two of them: there is always more to commit.
    add(4, first, second);
    held = Math.min(held, first.stats().partitions);
    return hasAll(second, 8)() && first.stats().partitions === 8;
  };
  await until(isShared, 'shared partitions');
  // It has not lost those that it kept.
  expect(held).toBe(8);
  const outputs = client.db().collection('outputs');
  await until(async () => (await outputs.countDocuments()) >= changes.length, 'all outputs');
  await Promise.all([first.stop(), second.stop()]);
  const stored = await outputs.find().sort({ partition: 1, number: 1 }).toArray();
  const wanted = changes.map(({ position }) => position);
  expect(stored.map(({ position }) => position).sort()).toEqual([...wanted].sort());
  for (let partition = 0; partition < 16; partition++) {
    const own = stored.filter((one) => one.partition === partition).map(({ position }) => numberOf(position));
    expect(own).toEqual([...own].sort((a, b) => a - b));
  }
  // A busy machine may need more than one try.
  expect(logged.filter((message) => !message.endsWith('; retrying'))).toEqual([]);
});

test('does what was reported before any instance took a partition', async () => {
  // Another instance that joined, and takes none of its partitions.
  const processors = client.db().collection<{ _id: string; until: Date }>('processors');
  await processors.insertOne({ _id: 'dying', until: new Date(Date.now() + 3_600_000) });
  const engine = await startEngine();
  add(16, engine);
  await until(hasAll(engine, 8), 'its share of the partitions');
  add(16, engine);
  await processors.deleteOne({ _id: 'dying' });
  const outputs = client.db().collection('outputs');
  await until(async () => (await outputs.countDocuments()) === 32, 'all outputs');
  await engine.stop();
});

test('stops while the database is unavailable, and leaves uncommitted outputs to the next owner', async () => {
  const engine = await startEngine();
  await until(hasAll(engine, 16), 'all partitions');
  const { databaseOperationMs } = LIMITS;
  Object.assign(LIMITS, { databaseOperationMs: 2_000 });
  await line.cut();
  add(16, engine);
  await until(() => logged.includes('failed to commit outputs; retrying'), 'a failure');
  await engine.stop();
  await line.mend();
  Object.assign(LIMITS, { databaseOperationMs });
  // The driver may not have found the database again.
  const areEnded = (): Promise<boolean> =>
    endPartitionLeases(client.db()).then(
      () => true,
      () => false,
    );
  await until(areEnded, 'the leases to end');
  const heir = await startEngine();
  const outputs = client.db().collection('outputs');
  await until(async () => (await outputs.countDocuments()) === 16, 'all outputs');
  expect(heir.stats().partitions).toBe(16);
  await heir.stop();
});

describe('a tenant with far more tasks than can be committed', () => {
  const SHARED = 3;
  const EACH = 100;
  const COUNT = 300;
  const usual = tasksOf;
  beforeAll(() => {
    // All of one partition: the flood has many of each change, the neighbour one of each tenth.
    tasksOf = (n) => [
      ...Array.from({ length: EACH }, () => planned(SHARED, n, 1, 'flood').task),
      ...(n % 10 === 0 ? [planned(SHARED, n, 1, 'neighbour').task] : []),
    ];
  });
  afterAll(() => {
    tasksOf = usual;
  });
  const outputsOf = (tenant: string) =>
    client.db().collection('outputs').find({ tenant }).sort({ number: 1 }).toArray();
  const countOf = (tenant: string) => client.db().collection('outputs').countDocuments({ tenant });
  const places = async (tenant: string) => (await outputsOf(tenant)).map(({ position }) => numberOf(position));
  const wantedOf = (each: number, step: number) =>
    Array.from({ length: (COUNT / step) * each }, (_, n) => (Math.floor(n / each) + 1) * step);

  test('keeps no neighbour in the same partition waiting, and is done itself, once and in order', async () => {
    const engine = await startEngine();
    await until(hasAll(engine, 16), 'all partitions');
    add(COUNT, engine);
    await until(async () => (await countOf('flood')) >= COUNT * EACH, 'the end of the flood');
    await engine.stop();
    // By their numbers, in the order in which a partition's outputs are committed.
    expect((await outputsOf('neighbour')).at(-1)?.number).toBeLessThan((COUNT * EACH) / 10);
    expect(await places('neighbour')).toEqual(wantedOf(1, 10));
    expect(await places('flood')).toEqual(wantedOf(EACH, 1));
  });

  test('is taken over where it is, and its neighbour where that is', async () => {
    const engine = await startEngine();
    await until(hasAll(engine, 16), 'all partitions');
    add(COUNT, engine);
    await until(async () => (await countOf('neighbour')) === COUNT / 10, 'the outputs of the neighbour');
    expect(await countOf('flood')).toBeLessThan(COUNT * EACH);
    await engine.stop();
    const stored = await client
      .db()
      .collection<{ _id: number; tenants: object[] }>('partitions')
      .findOne({ _id: SHARED });
    // Beside that of a neighbour whose end was not noted yet.
    expect(stored?.tenants).toContainEqual(expect.objectContaining({ tenant: 'flood' }));
    const heir = await startEngine();
    await until(async () => (await countOf('flood')) >= COUNT * EACH, 'the end of the flood');
    await heir.stop();
    expect(await places('neighbour')).toEqual(wantedOf(1, 10));
    expect(await places('flood')).toEqual(wantedOf(EACH, 1));
  });
});
