/** Partitions read the history no faster than their tasks are committed, change by change. */
import { expect, test } from '@jest/globals';
import type { Change, HistoryPage } from '../../../src/core/change.js';
import { LIMITS } from '../../../src/core/limits.js';
import { type CatchUpParts, catchUp } from '../../../src/processing/catch-up.js';
import { addTasks, areFull, type Holding, pushTasks, takeTasks } from '../../../src/processing/holding.js';
import { holdAll, MIB, planned, positionOf, processor } from '../../support/holdings.js';
import { until } from '../../support/until.js';

const COUNT = 40;
const numbers = Array.from({ length: COUNT }, (_, n) => n + 1);

/** A partition that is behind by one page of big changes, or whose history is gone. */
function createBehind({ isGone = false } = {}) {
  const holdings = holdAll(0, 1);
  const holding = holdings.get(0) as Holding;
  let mostBytes = 0;
  const note = (): void => {
    mostBytes = Math.max(mostBytes, holding.bytes);
  };
  async function* history(): AsyncGenerator<HistoryPage, never> {
    const changes = numbers.map((n) => ({ position: positionOf(n) }) as Change);
    for (;;) yield { changes, upTo: positionOf(COUNT) };
  }
  let asked = 0;
  const parts: CatchUpParts = {
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
      addTasks(holding, position, [{ processor: 0, task: { partition: 0, position, bytes: MIB } }]);
      note();
    },
    addRefill(index, tasks) {
      pushTasks(
        holding,
        tasks.map((task) => ({ processor: index, task })),
      );
      note();
    },
    isFull: (wanted) => areFull(wanted.values(), holdings),
    wake: () => undefined,
    onRefill: () => undefined,
    now: () => 0,
  };
  return { holdings, holding, parts, most: () => mostBytes };
}

test.each([false, true])('waits within a page while too many bytes wait; history gone: %s', async (isGone) => {
  const { holding, parts, most } = createBehind({ isGone });
  let isDone = false;
  const done = catchUp(parts, [holding]).then(() => {
    isDone = true;
  });
  const positions: (string | null)[] = [];
  await until(() => {
    // What is done is not beyond what was planned.
    if (!isGone && !isDone) expect(holding.planned).toBe(positionOf(positions.length + holding.tasks.length));
    positions.push(...takeTasks(holding, { tasks: 1, bytes: 1 }).map(({ task }) => task.position));
    return positions.length === COUNT;
  });
  await done;
  expect(positions).toEqual(numbers.map((n) => (isGone ? null : positionOf(n))));
  expect(most()).toBeLessThanOrEqual(LIMITS.partitionTaskBytes);
  expect(holding).toMatchObject({ isLive: true, planned: positionOf(COUNT), bytes: 0 });
});

test('does not wait for another partition that is full', async () => {
  const { holdings, holding, parts } = createBehind();
  const other = holdings.get(1) as Holding;
  pushTasks(other, [planned(1, null, LIMITS.partitionTaskBytes)]);
  const done = catchUp(parts, [holding]);
  await until(() => takeTasks(holding, { tasks: COUNT, bytes: COUNT * MIB }).length === 0 && holding.isLive);
  await done;
  expect(other.tasks).toHaveLength(1);
});

test('ends where the partition is lost while it waits', async () => {
  const { holding, parts } = createBehind();
  const done = catchUp(parts, [holding]);
  await until(() => holding.bytes >= LIMITS.partitionTaskBytes);
  holding.lose();
  await done;
  expect(holding.isLive).toBe(false);
  expect(holding.planned).toBe(positionOf(holding.tasks.length));
});
