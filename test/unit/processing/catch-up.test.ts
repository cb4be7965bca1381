/** Partitions read the history no faster than their tasks are committed, change by change. */
import { expect, test } from '@jest/globals';
import type { Change, HistoryPage } from '../../../src/core/change.js';
import { LIMITS } from '../../../src/core/limits.js';
import { type CatchUpParts, catchUp } from '../../../src/processing/catch-up.js';
import {
  addTasks,
  createSource,
  type Holding,
  isFull,
  LIVE_FEED,
  pushTasks,
  takeTasks,
} from '../../../src/processing/holding.js';
import { holdAll, MIB, planned, positionOf, processor, queueOf } from '../../support/holdings.js';
import { until } from '../../support/until.js';

const COUNT = 40;
const numbers = Array.from({ length: COUNT }, (_, n) => n + 1);

/** A partition that is behind by one page of big changes, or whose history is gone. */
function createBehind({ isGone = false } = {}) {
  const holdings = holdAll(0);
  const holding = holdings.get(0) as Holding;
  const reader = createSource();
  holding.rest.source = reader;
  const queue = queueOf(holdings, 0);
  let mostBytes = 0;
  const note = (): void => {
    mostBytes = Math.max(mostBytes, queue.bytes);
  };
  async function* history(): AsyncGenerator<HistoryPage, never> {
    const changes = numbers.map((n) => ({ position: positionOf(n) }) as Change);
    for (;;) yield { changes, upTo: positionOf(COUNT) };
  }
  let asked = 0;
  const parts: CatchUpParts = {
    reader,
    holdings,
    openHistory: async () => (isGone && asked++ < 1 ? null : history()),
    processors: [
      {
        ...processor,
        async *refill() {
          for (const _ of numbers) yield [planned(0, null, MIB).task];
        },
      },
    ],
    livePosition: () => positionOf(COUNT),
    plan: async ({ position }) => {
      addTasks(queue, position, [{ processor: 0, task: { ...planned(0, null, MIB).task, position } }]);
      note();
    },
    addRefill(index, tasks) {
      pushTasks(
        queue,
        tasks.map((task) => ({ processor: index, task })),
      );
      note();
    },
    waitForRoom: async () => {
      while (isFull(queue, holdings) && !holding.owned.lost.aborted) await new Promise(setImmediate);
    },
    wake: () => undefined,
    onRefill: () => undefined,
    now: () => 0,
  };
  return { holding, queue, parts, most: () => mostBytes };
}

test.each([false, true])('waits within a page while too many bytes wait; history gone: %s', async (isGone) => {
  const { holding, queue, parts, most } = createBehind({ isGone });
  let isDone = false;
  const done = catchUp(parts).then(() => {
    isDone = true;
  });
  const positions: (string | null)[] = [];
  await until(() => {
    // What is done is not beyond what was planned.
    if (!isGone && !isDone) expect(queue.planned).toBe(positionOf(positions.length + queue.tasks.length));
    positions.push(...takeTasks(queue, { tasks: 1, bytes: 1 }).map(({ task }) => task.position));
    return positions.length === COUNT;
  });
  await done;
  expect(positions).toEqual(numbers.map((n) => (isGone ? null : positionOf(n))));
  expect(most()).toBeLessThanOrEqual(LIMITS.partitionTaskBytes);
  const isLive = { source: LIVE_FEED, planned: positionOf(COUNT) };
  expect(queue).toMatchObject({ ...isLive, bytes: 0 });
  if (isGone) expect(holding.rest).toEqual(isLive);
});

test('ends where the partition is lost while it waits', async () => {
  const { holding, queue, parts } = createBehind();
  const done = catchUp(parts);
  await until(() => queue.bytes >= LIMITS.partitionTaskBytes);
  holding.lose();
  await done;
  expect(queue.source).not.toBe(LIVE_FEED);
  expect(queue.planned).toBe(positionOf(queue.tasks.length));
});

test('fills a partition once where nothing has happened since the history was lost', async () => {
  const { holding, queue, parts } = createBehind();
  let refills = 0;
  // The last change is gone from the history too: as long as nothing happens, no position is in it.
  const onRefill = (): void => {
    if (++refills > 3) throw new Error('the partition is filled again and again');
  };
  const gone = { ...parts, processors: [], openHistory: async () => null, onRefill };
  await catchUp(gone);
  expect(refills).toBe(1);
  expect(holding.rest).toEqual({ source: LIVE_FEED, planned: positionOf(COUNT) });
  expect(queue).toMatchObject({ source: LIVE_FEED, planned: positionOf(COUNT) });
});

test('misses no change that comes in the moment in which a filled partition joins the live feed', async () => {
  const { holding, parts } = createBehind();
  let live = COUNT;
  const missed: number[] = [];
  // A change comes as soon as whoever looks lets something else run; the live feed plans it for those that have joined.
  const change = (): void => {
    live++;
    if (holding.rest.source !== LIVE_FEED) missed.push(live);
  };
  let looks = 0;
  const livePosition = (): string => {
    // First where the filling begins, then whether it is over.
    if (++looks === 2) queueMicrotask(change);
    return positionOf(live);
  };
  async function* history(): AsyncGenerator<HistoryPage, never> {
    for (;;) yield { changes: [{ position: positionOf(live) } as Change], upTo: positionOf(live) };
  }
  let opened = 0;
  // The reader plans what the live feed has not planned for it.
  const plan = async ({ position }: Change): Promise<void> => {
    const at = missed.findIndex((n) => positionOf(n) === position);
    if (at >= 0) missed.splice(at, 1);
  };
  const openHistory = async () => (opened++ === 0 ? null : history());
  // It was filled before, and nothing is left to be read.
  holding.rest.planned = positionOf(COUNT);
  await catchUp({ ...parts, processors: [], openHistory, livePosition, plan });
  expect(holding.rest.source).toBe(LIVE_FEED);
  expect(missed).toEqual([]);
});
