/** Waiters for commands: woken, ended and limited. */
import { describe, expect, test } from '@jest/globals';
import { createCommandWaiters } from '../../../src/commands/waiters.js';
import type { Change } from '../../../src/core/change.js';
import { LIMITS } from '../../../src/core/limits.js';

const LONG_MS = 60_000;
const change = (object: string, store = 'commands'): Change => ({
  store,
  kind: 'created',
  id: 'c',
  before: null,
  json: null,
  changed: null,
  accessFields: null,
  accessFieldsBefore: null,
  bytes: 0,
  position: 'p',
  after: { object },
  objectId: object,
});

describe('a waiter', () => {
  test('reports each change of its object’s commands once, also between waits', async () => {
    const arrivals = createCommandWaiters();
    const watch = arrivals.add('a', 'device');
    arrivals.apply(change('a'));
    arrivals.apply(change('a'));
    expect(await watch.next(LONG_MS)).toBe(true);
    const next = watch.next(LONG_MS);
    arrivals.apply(change('a'));
    expect(await next).toBe(true);
    for (const other of [change('b'), change('a', 'packets'), { ...change('a'), after: null, objectId: null }])
      arrivals.apply(other);
    expect(await watch.next(1)).toBe(false);
    watch.end();
  });

  test('wakes after a gap in the changes', async () => {
    const arrivals = createCommandWaiters();
    const next = [arrivals.add('a', 'device'), arrivals.add('b', 'device')].map((watch) => watch.next(LONG_MS));
    arrivals.wakeAll();
    expect(await Promise.all(next)).toEqual([true, true]);
  });

  test('stops waiting when it is ended', async () => {
    const arrivals = createCommandWaiters();
    const watch = arrivals.add('a', 'device');
    const next = watch.next(LONG_MS);
    watch.end();
    watch.end();
    arrivals.apply(change('a'));
    expect([await next, await watch.next(LONG_MS)]).toEqual([false, false]);
  });

  test('ends with the service, even if it is added afterwards', async () => {
    const arrivals = createCommandWaiters();
    const next = arrivals.add('a', 'device').next(LONG_MS);
    arrivals.stop();
    expect([await next, await arrivals.add('a', 'device').next(LONG_MS)]).toEqual([false, false]);
  });
});

test('limits waiters per caller and object, regardless of other callers', () => {
  const arrivals = createCommandWaiters();
  const watches = Array.from({ length: LIMITS.commandWaitersPerObject }, () => arrivals.add('o', 'viewer'));
  expect(() => arrivals.add('o', 'viewer')).toThrow(expect.objectContaining({ status: 429 }));
  arrivals.add('other', 'viewer');
  for (let at = 0; at < LIMITS.commandWaitersPerObject; at++) arrivals.add('o', 'device');
  watches[0]?.end();
  watches[0]?.end();
  arrivals.add('o', 'viewer');
  expect(() => arrivals.add('o', 'viewer')).toThrow(expect.objectContaining({ status: 429 }));
});

test('limits waiters per caller and in total, but always accepts a caller’s first one', () => {
  const arrivals = createCommandWaiters();
  const { commandWaiters, commandWaitersPerCaller } = LIMITS;
  const callers = Array.from({ length: commandWaiters / commandWaitersPerCaller }, (_, at) => `caller-${at}`);
  const watches = callers.flatMap((caller) =>
    Array.from({ length: commandWaitersPerCaller }, (_, at) => arrivals.add(`o${at}`, caller)),
  );
  expect(() => arrivals.add('another', 'caller-0')).toThrow(expect.objectContaining({ status: 429 }));
  arrivals.add('o0', 'device');
  expect(() => arrivals.add('o1', 'device')).toThrow(expect.objectContaining({ status: 503 }));
  for (const watch of watches.slice(0, 2)) watch.end();
  arrivals.add('o1', 'device');
  expect(() => arrivals.add('o2', 'device')).toThrow(expect.objectContaining({ status: 503 }));
});
