/** Tenants and partitions share each commit, and none of them has to wait for another, whatever that does. */
import { expect, test } from '@jest/globals';
import { unavailable } from '../../../src/core/errors.js';
import { LIMITS } from '../../../src/core/limits.js';
import type { Advance, Commits } from '../../../src/processing/commit.js';
import { createCommitter } from '../../../src/processing/committer.js';
import { type Holding, pushTasks } from '../../../src/processing/holding.js';
import type { Outputs, Processor } from '../../../src/processing/processor.js';
import { holdAll, MIB, planned, positionOf, processor, queueOf, TENANT } from '../../support/holdings.js';
import { until } from '../../support/until.js';

interface Stored {
  readonly partition: number;
  readonly position: string | null;
  readonly number: number;
}

/** A committer whose outputs are stored in memory; `onCommit` is called before each commit, and may refuse it. */
function createTried(
  indexes: readonly number[],
  { prepare = processor.prepare, second = processor.prepare, onCommit = async () => undefined }: Partial<Parts> = {},
) {
  const holdings = holdAll(...indexes);
  const stored: Stored[] = [];
  const commits: Advance[][] = [];
  const errors: object[] = [];
  const inMemory: Commits = {
    async commit({ advances, writes }) {
      const outputs = writes
        .flatMap(({ operations }) => operations)
        .map((one) => (one as unknown as { insertOne: { document: Stored } }).insertOne.document);
      await new Promise(setImmediate);
      await onCommit(outputs);
      commits.push([...advances]);
      stored.push(...outputs);
    },
    sessions: () => [],
    stop: async () => undefined,
  };
  const committer = createCommitter({
    commits: inMemory,
    processors: [
      { ...processor, prepare },
      { ...processor, prepare: second },
    ],
    holdings,
    livePosition: () => positionOf(0),
    onLost: ({ owned }) => void holdings.delete(owned.index),
    log: { warn: () => undefined, error: (details) => void errors.push(details) },
  });
  const add = (partition: number, from: number, to: number, { bytes = 1, tenant = TENANT } = {}): void => {
    const tasks = Array.from({ length: to - from }, (_, n) => planned(partition, from + n, bytes, tenant));
    pushTasks(queueOf(holdings, partition, tenant), tasks);
    committer.wake();
  };
  const storedOf = (index: number) => stored.filter(({ partition }) => partition === index);
  return { holdings, committer, add, stored, storedOf, commits, errors };
}

interface Parts {
  readonly prepare: Processor['prepare'];
  /** Of a second processor. */
  readonly second: Processor['prepare'];
  readonly onCommit: (outputs: readonly Stored[]) => Promise<void>;
}

const numberOf = (position: string): number => Buffer.from(position, 'base64url').readUInt32BE(5);

/** Up to where the tenant is done in the first partition of a commit. */
const positionIn = (advances: readonly Advance[] = []): string | undefined => advances[0]?.done.tenants[0]?.position;

const numbersOf = (commits: readonly (readonly Advance[])[]): number[][] =>
  commits.map((advances) => advances.map(({ index }) => index));

test('gives each partition its share, however many tasks another has', async () => {
  const { add, stored, storedOf, commits } = createTried([0, 1, 2]);
  add(0, 1, 5_001);
  for (const index of [1, 2]) add(index, 1, 11);
  await until(() => stored.length === 5_020);
  expect(numbersOf(commits)[0]).toEqual([0, 1, 2]);
  // No other partition needs the rest: a commit has little left.
  expect(commits.length).toBeLessThanOrEqual(Math.ceil(5_020 / LIMITS.commitTasks) + 1);
  for (const index of [0, 1, 2]) {
    const positions = storedOf(index).map(({ position }) => position);
    expect(positions).toEqual(positions.map((_, n) => positionOf(n + 1)));
  }
});

test('gives each tenant its share of a partition, however many tasks another one has there and elsewhere', async () => {
  const { add, stored, storedOf } = createTried([0, 1, 2]);
  for (const index of [0, 1, 2]) add(index, 1, 2_001, { tenant: 'many' });
  add(1, 2_001, 2_011, { tenant: 'few' });
  await until(() => stored.length === 6_010);
  // All of them are in the first commit.
  const isFew = ({ position }: Stored): boolean => numberOf(String(position)) > 2_000;
  expect(stored.slice(0, LIMITS.commitTasks).filter(isFew)).toHaveLength(10);
  for (const index of [0, 1, 2]) {
    const numbers = storedOf(index).map(({ number }) => number);
    expect(numbers).toEqual(numbers.map((_, n) => n + 1));
  }
});

test('gives a tenant whose tasks take long a few of them each time, in order, and the others all of theirs', async () => {
  const { add, stored, storedOf } = createTried([0, 1], {
    prepare(owned, tasks, nextNumber, turn) {
      const done = tasks.filter(({ tenant }) => {
        if (turn.isOver(tenant)) return false;
        turn.spend(tenant, tenant === 'dear' ? LIMITS.commitTenantSteps / 2 : 1);
        return true;
      });
      const left = tasks.filter((task) => !done.includes(task));
      return { ...(processor.prepare(owned, done, nextNumber, turn) as Outputs), left };
    },
  });
  for (const index of [0, 1]) add(index, 1, 11, { tenant: 'dear' });
  add(1, 11, 31, { tenant: 'cheap' });
  await until(() => stored.length === 40);
  // Two of the one fit into the first transaction, with all of the other one.
  const isDear = ({ position }: Stored): boolean => numberOf(String(position)) < 11;
  expect(stored.slice(0, 22).filter(isDear)).toHaveLength(2);
  for (const index of [0, 1]) {
    const positions = storedOf(index)
      .filter(isDear)
      .map(({ position }) => position);
    expect(positions).toEqual(positions.map((_, n) => positionOf(n + 1)));
    expect(storedOf(index).map(({ number }) => number)).toEqual(storedOf(index).map((_, n) => n + 1));
  }
});

test('leaves the whole of a change, with what other processors make of it', async () => {
  const prepared: (string | null)[] = [];
  const second: Processor['prepare'] = (owned, tasks, ...others) => {
    prepared.push(...tasks.map(({ position }) => position));
    return processor.prepare(owned, tasks, ...others);
  };
  const { holdings, committer, stored } = createTried([0], {
    second,
    prepare: (owned, tasks, nextNumber, turn) => {
      const [first, ...left] = tasks;
      return { ...(processor.prepare(owned, first === undefined ? [] : [first], nextNumber, turn) as Outputs), left };
    },
  });
  const both = [1, 2, 3].flatMap((n) => [1, 0].map((of) => ({ ...planned(0, n), processor: of })));
  pushTasks(queueOf(holdings, 0), both);
  committer.wake();
  await until(() => stored.length === 6);
  expect(stored.map(({ position }) => position)).toEqual([1, 1, 2, 2, 3, 3].map(positionOf));
  expect(prepared).toEqual([1, 2, 3].map(positionOf));
});

test('begins with another partition each time, so that big tasks of one do not keep out others', async () => {
  const { add, stored, commits } = createTried([0, 1, 2]);
  for (const index of [0, 1, 2]) add(index, 1, 4, { bytes: LIMITS.commitBytes - MIB });
  await until(() => stored.length === 9);
  expect(numbersOf(commits).slice(0, 3)).toEqual([
    [0, 1],
    [1, 2],
    [2, 0],
  ]);
});

test('is idle for a partition that leaves while tasks of others keep coming', async () => {
  let isOver = false;
  const tried = createTried([0, 1], {
    // There is always one more.
    async onCommit() {
      if (!isOver) tried.add(0, 1, 3);
    },
  });
  const { add, holdings, committer, stored, storedOf } = tried;
  add(1, 1, 2_000);
  add(0, 1, 10);
  await until(() => storedOf(1).length > 0);
  const left = holdings.get(1) as Holding;
  holdings.delete(1);
  await committer.idle([left]);
  const before = storedOf(1).length;
  expect(left.isCommitting).toBe(false);
  expect(left.queues.get(TENANT)?.position).toBe(positionOf(before));
  const all = stored.length;
  await until(() => stored.length > all + 10);
  expect(storedOf(1)).toHaveLength(before);
  isOver = true;
  await committer.stop();
});

test('retries where outputs cannot be prepared, and commits the others meanwhile', async () => {
  let failures = 0;
  const { add, storedOf, holdings, errors } = createTried([0, 1], {
    prepare(owned, tasks, ...others) {
      if (owned.index === 0 && failures++ < 2) throw new Error('not now');
      return processor.prepare(owned, tasks, ...others);
    },
  });
  add(0, 1, 4);
  add(1, 1, 4);
  await until(() => storedOf(1).length === 3);
  expect(storedOf(0)).toEqual([]);
  expect(queueOf(holdings, 0)).toMatchObject({ isCommitting: false, bytes: 3, position: positionOf(0) });
  await until(() => storedOf(0).length === 3);
  expect(storedOf(0).map(({ position, number }) => [position, number])).toEqual(
    [1, 2, 3].map((n) => [positionOf(n), n]),
  );
  expect(errors).toHaveLength(2);
  expect(queueOf(holdings, 0)).toMatchObject({ isCommitting: false, bytes: 0, position: positionOf(3) });
});

test('stops while the database is away, and takes nothing for done that is not', async () => {
  let asked = 0;
  const { add, committer, holdings, stored } = createTried([0], {
    onCommit: async () => {
      asked++;
      throw unavailable('away');
    },
  });
  add(0, 1, 4);
  await until(() => asked > 1);
  const holding = holdings.get(0) as Holding;
  const queue = queueOf(holdings, 0);
  const idle = committer.idle([holding]);
  await committer.stop();
  await idle;
  expect(stored).toEqual([]);
  // Its tasks were taken: without them it must not look as if it had none.
  expect(holding.isCommitting).toBe(true);
  expect(queue).toMatchObject({ tasks: [], isCommitting: true, position: positionOf(0) });
});

test('drops only the output that can never be stored, and says which', async () => {
  const { add, storedOf, holdings, errors } = createTried([0, 1], {
    async onCommit(outputs) {
      if (outputs.some(({ partition, position }) => partition === 0 && position === positionOf(37))) throw new Error();
    },
  });
  add(0, 1, 101);
  add(1, 1, 101);
  await until(() => storedOf(0).length === 99 && storedOf(1).length === 100);
  expect(storedOf(0).map(({ position }) => position)).not.toContain(positionOf(37));
  expect(errors).toEqual([expect.objectContaining({ partition: 0, position: positionOf(37) })]);
  const numbers = storedOf(0).map(({ number }) => number);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  expect(new Set(numbers).size).toBe(99);
  await until(() => holdings.get(0)?.isCommitting === false);
  expect(queueOf(holdings, 0).position).toBe(positionOf(100));
});

test('never stores a position of a change whose tasks are not all stored', async () => {
  const { holdings, committer, storedOf, commits } = createTried([0], {
    async onCommit(outputs) {
      if (outputs.some(({ number, position }) => number > 2 && position === positionOf(2))) throw new Error();
    },
  });
  // Four tasks of the second change.
  const tasks = [planned(0, 1), ...Array.from({ length: 4 }, () => planned(0, 2)), planned(0, 3)];
  pushTasks(queueOf(holdings, 0), tasks);
  committer.wake();
  await until(() => positionIn(commits.at(-1)) === positionOf(3));
  const stored = commits.map((advances) => [positionIn(advances), advances[0]?.lastNumber]);
  // The change is done with its last task, though that is dropped.
  expect(stored.filter(([position]) => position === positionOf(2))).toHaveLength(1);
  expect(storedOf(0).map(({ position }) => position)).toEqual([1, 2, 3].map(positionOf));
});
