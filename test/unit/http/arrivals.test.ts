/** Who waits for commands: woken, ended, and never more than there is room for. */
import { describe, expect, test } from '@jest/globals';
import { createArrivals } from '../../../src/http/arrivals.js';
import type { Change } from '../../../src/model/change.js';
import { LIMITS } from '../../../src/model/limits.js';

const LONG_MS = 60_000;
const change = (object: string, store = 'commands'): Change => ({
  ...{ store, kind: 'created', id: 'c', before: null, json: null, changed: null, guard: null, bytes: 0, position: 'p' },
  after: { object },
  objectId: object,
});

describe('a watch', () => {
  test('hears of the commands of its object, each news once, also what came while nobody waited', async () => {
    const arrivals = createArrivals();
    const watch = arrivals.watch('a', 'device');
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

  test('looks for itself where changes were lost', async () => {
    const arrivals = createArrivals();
    const next = [arrivals.watch('a', 'device'), arrivals.watch('b', 'device')].map((watch) => watch.next(LONG_MS));
    arrivals.wakeAll();
    expect(await Promise.all(next)).toEqual([true, true]);
  });

  test('that was ended waits no more, and hears nothing', async () => {
    const arrivals = createArrivals();
    const watch = arrivals.watch('a', 'device');
    const next = watch.next(LONG_MS);
    watch.end();
    watch.end();
    arrivals.apply(change('a'));
    expect([await next, await watch.next(LONG_MS)]).toEqual([false, false]);
  });

  test('ends with the service, also one that begins after', async () => {
    const arrivals = createArrivals();
    const next = arrivals.watch('a', 'device').next(LONG_MS);
    arrivals.stop();
    expect([await next, await arrivals.watch('a', 'device').next(LONG_MS)]).toEqual([false, false]);
  });
});

test('there is room for so many of one caller at an object, however many others wait there', () => {
  const arrivals = createArrivals();
  const watches = Array.from({ length: LIMITS.commandWaitersPerObject }, () => arrivals.watch('o', 'viewer'));
  expect(() => arrivals.watch('o', 'viewer')).toThrow(expect.objectContaining({ status: 429 }));
  arrivals.watch('other', 'viewer');
  for (let at = 0; at < LIMITS.commandWaitersPerObject; at++) arrivals.watch('o', 'device');
  watches[0]?.end();
  watches[0]?.end();
  arrivals.watch('o', 'viewer');
  expect(() => arrivals.watch('o', 'viewer')).toThrow(expect.objectContaining({ status: 429 }));
});

test('there is room for so many of one caller, and for so many in all; then for one of each caller who has none', () => {
  const arrivals = createArrivals();
  const { commandWaiters, commandWaitersPerCaller } = LIMITS;
  const callers = Array.from({ length: commandWaiters / commandWaitersPerCaller }, (_, at) => `caller-${at}`);
  const watches = callers.flatMap((caller) =>
    Array.from({ length: commandWaitersPerCaller }, (_, at) => arrivals.watch(`o${at}`, caller)),
  );
  expect(() => arrivals.watch('another', 'caller-0')).toThrow(expect.objectContaining({ status: 429 }));
  arrivals.watch('o0', 'device');
  expect(() => arrivals.watch('o1', 'device')).toThrow(expect.objectContaining({ status: 503 }));
  for (const watch of watches.slice(0, 2)) watch.end();
  arrivals.watch('o1', 'device');
  expect(() => arrivals.watch('o2', 'device')).toThrow(expect.objectContaining({ status: 503 }));
});
