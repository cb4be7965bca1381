/** The fair queue of users whose clients resume. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createBackfillQueue } from '../../../src/live/backfill-queue.js';
import { until } from '../../support/until.js';

interface Client {
  readonly user: string;
  readonly nth: number;
}

/** A queue whose groups are served until the test ends them. */
function createTried({ groupsAtOnce = 2, isShared = false } = {}) {
  const groups: { clients: readonly Client[]; end: (busyMs?: number) => void }[] = [];
  const queue = createBackfillQueue<Client>({
    groupsAtOnce,
    isShared,
    userOf: ({ user }) => user,
    serve: (clients) => new Promise((resolve) => groups.push({ clients, end: (busyMs = 0) => resolve(busyMs) })),
  });
  const add = (...users: string[]): void => users.forEach((user, nth) => void queue.add({ user, nth }));
  const served = () => groups.map(({ clients }) => clients.map(({ user }) => user).join(''));
  return { queue, groups, add, served };
}

test('serves all clients of one user together, and users one after the other', async () => {
  const { groups, add, served } = createTried({ groupsAtOnce: 1 });
  add('a', 'b', 'a', 'c', 'a');
  await until(() => groups.length === 1);
  expect(served()).toEqual(['aaa']);
  groups[0]?.end();
  await until(() => groups.length === 2);
  groups[1]?.end();
  await until(() => groups.length === 3);
  expect(served()).toEqual(['aaa', 'b', 'c']);
});

test('serves other users while a served user reconnects', async () => {
  const { groups, add, served, queue } = createTried();
  add('a');
  await until(() => groups.length === 1);
  add('a', 'a');
  add('b');
  await until(() => groups.length === 2);
  expect(served()).toEqual(['a', 'b']);
  expect(queue.isWaitedFor()).toBe(false);
  add('c');
  expect(queue.isWaitedFor()).toBe(true);
  groups[0]?.end();
  await until(() => groups.length === 3);
  groups[1]?.end();
  await until(() => groups.length === 4);
  expect(served().slice(2).sort()).toEqual(['aa', 'c']);
});

describe('with a replaced clock', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());
  const advance = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

  test('pauses a user for the busy time of its last group', async () => {
    const { groups, add, served } = createTried({ groupsAtOnce: 1 });
    add('a');
    await advance(1);
    groups[0]?.end(300);
    add('a', 'b');
    await advance(1);
    groups[1]?.end();
    await advance(290);
    expect(served()).toEqual(['a', 'b']);
    await advance(20);
    expect(served()).toEqual(['a', 'b', 'a']);
  });

  test('serves users together if they share one read, except pausing users', async () => {
    const { groups, add, served } = createTried({ groupsAtOnce: 1, isShared: true });
    add('a', 'b');
    await advance(1);
    add('a', 'c');
    groups[0]?.end(600);
    await advance(1);
    groups[1]?.end();
    expect(served()).toEqual(['ab', 'c']);
    await advance(600);
    expect(served()).toEqual(['ab', 'c', 'a']);
  });
});

test('serves a user whose pause ends while the queue looks for the next user', async () => {
  const read = performance.now.bind(performance);
  let readings = 0;
  // However short a pause is, it ends between some two readings of this clock.
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => read() + ++readings);
  try {
    for (let busyMs = 0.5; busyMs < 8; busyMs++) {
      const { groups, add } = createTried({ groupsAtOnce: 1 });
      add('a');
      await until(() => groups.length === 1);
      add('a');
      groups[0]?.end(busyMs);
      await until(() => groups.length === 2, `again after a pause of ${busyMs} ms`);
    }
  } finally {
    clock.mockRestore();
  }
});
