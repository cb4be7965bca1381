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
    const watch = arrivals.watch('a');
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
    const next = [arrivals.watch('a'), arrivals.watch('b')].map((watch) => watch.next(LONG_MS));
    arrivals.wakeAll();
    expect(await Promise.all(next)).toEqual([true, true]);
  });

  test('that was ended waits no more, and hears nothing', async () => {
    const arrivals = createArrivals();
    const watch = arrivals.watch('a');
    const next = watch.next(LONG_MS);
    watch.end();
    watch.end();
    arrivals.apply(change('a'));
    expect([await next, await watch.next(LONG_MS)]).toEqual([false, false]);
  });

  test('ends with the service, also one that begins after', async () => {
    const arrivals = createArrivals();
    const next = arrivals.watch('a').next(LONG_MS);
    arrivals.stop();
    expect([await next, await arrivals.watch('a').next(LONG_MS)]).toEqual([false, false]);
  });
});

test('there is room for so many of an object, and so many in all; who leaves makes room', () => {
  const arrivals = createArrivals();
  const watches = Array.from({ length: LIMITS.commandWaiters }, (_, n) =>
    arrivals.watch(`o${n % (LIMITS.commandWaiters / LIMITS.commandWaitersPerObject)}`),
  );
  expect(() => arrivals.watch('o0')).toThrow(expect.objectContaining({ status: 429 }));
  expect(() => arrivals.watch('another')).toThrow(expect.objectContaining({ status: 503 }));
  watches[0]?.end();
  watches[0]?.end();
  arrivals.watch('another');
  expect(() => arrivals.watch('another')).toThrow(expect.objectContaining({ status: 503 }));
});
