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
