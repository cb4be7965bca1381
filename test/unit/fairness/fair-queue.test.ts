/** Who waits for whom when only so much is done at once. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { clock, replaceClock } from '../../../src/platform/clock.js';
import {
  createFairQueue,
  type FairQueue,
  type QueueCaller,
  type QueueLimits,
} from '../../../src/platform/fair-queue.js';

const LONG_MS = 60_000;
const AMPLE: QueueLimits = { atOnce: 10, perCaller: 10, waiting: 100, waitingPerCaller: 100, waitMs: LONG_MS };

const made: ReturnType<typeof createEndless>[] = [];

// What waits has a timer.
afterEach(async () => {
  for (const work of made.splice(0)) for (const name of work.begun) await work.end(name);
});

/** Work that lasts until the test ends it. */
function createWork(queue: FairQueue) {
  const work = createEndless(queue);
  made.push(work);
  return work;
}

function createEndless(queue: FairQueue) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    begun,
    begin: (caller: string | QueueCaller, name: string, signal?: AbortSignal): Promise<string> =>
      queue.run(
        caller,
        () => {
          begun.push(name);
          return new Promise((resolve) => ends.set(name, () => resolve(name)));
        },
        signal,
      ),
    async end(name: string): Promise<void> {
      ends.get(name)?.();
      await new Promise(setImmediate);
    },
  };
}

describe('the callers of one tenant', () => {
  const of = (tenantId: string | null, userId: string): QueueCaller => ({ userId, tenantId });

  test('take turns as one with the callers of others', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1 }));
    for (let user = 0; user < 30; user++) void work.begin(of('north', `n${user}`), `n${user}`);
    for (let user = 0; user < 3; user++) void work.begin(of('south', `s${user}`), `s${user}`);
    void work.begin(of(null, 'root'), 'root');
    for (let nth = 0; nth < 8; nth++) await work.end(work.begun.at(-1) as string);
    // Those that came while the first one ran are behind its tenant at most once.
    expect(
      work.begun
        .slice(0, 8)
        .filter((name) => !name.startsWith('n'))
        .sort(),
    ).toEqual(['root', 's0', 's1', 's2']);
    expect(work.begun.indexOf('root')).toBeLessThan(4);
    expect(work.begun.indexOf('s0')).toBeLessThan(4);
  });

  test('take turns with each other', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1 }));
    for (const name of ['a1', 'a2', 'a3']) void work.begin(of('north', 'a'), name);
    for (const name of ['b1', 'b2']) void work.begin(of('north', 'b'), name);
    for (let nth = 0; nth < 4; nth++) await work.end(work.begun.at(-1) as string);
    expect(work.begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2']);
  });

  test('leave places to others, which start at once', () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 3, perCaller: 1, perTenant: 2 }));
    for (let user = 0; user < 5; user++) void work.begin(of('north', `n${user}`), `n${user}`);
    void work.begin(of('south', 's'), 's');
    expect(work.begun).toEqual(['n0', 'n1', 's']);
  });

  test('use the places of a tenant again when its work ends', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 3, perCaller: 1, perTenant: 2 }));
    for (let user = 0; user < 4; user++) void work.begin(of('north', `n${user}`), `n${user}`);
    await work.end('n0');
    await work.end('n1');
    expect(work.begun).toEqual(['n0', 'n1', 'n2', 'n3']);
  });

  test('are never passed by tenants that come again and again', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1 }));
    void work.begin(of('east', 'e'), 'e1');
    void work.begin(of('north', 'n'), 'n1');
    void work.begin(of('west', 'w'), 'w1');
    for (let nth = 2; nth < 8; nth++) {
      const last = work.begun.at(-1) as string;
      await work.end(last);
      if (!last.startsWith('n'))
        void work.begin(of(last.startsWith('e') ? 'east' : 'west', last[0] as string), `${last[0]}${nth}`);
    }
    expect(work.begun.slice(0, 3).sort()).toEqual(['e1', 'n1', 'w1']);
  });
});

describe('the order of work', () => {
  test('starts work at once within the limits', () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 3, perCaller: 2 }));
    void work.begin('a', 'a1');
    void work.begin('a', 'a2');
    void work.begin('a', 'a3');
    void work.begin('b', 'b1');
    void work.begin('c', 'c1');
    expect(work.begun).toEqual(['a1', 'a2', 'b1']);
  });

  test('serves a new caller before further waiting work of another one', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1 }));
    for (const name of ['a1', 'a2', 'a3', 'a4']) void work.begin('a', name);
    void work.begin('b', 'b1');
    void work.begin('b', 'b2');
    for (let nth = 0; nth < 5; nth++) await work.end(work.begun.at(-1) as string);
    expect(work.begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4']);
  });

  test('starts work of another caller when the first one is at its limit', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 2, perCaller: 1 }));
    for (const name of ['a1', 'a2']) void work.begin('a', name);
    for (const name of ['b1', 'b2']) void work.begin('b', name);
    expect(work.begun).toEqual(['a1', 'b1']);
    await work.end('b1');
    expect(work.begun).toEqual(['a1', 'b1', 'b2']);
    await work.end('a1');
    expect(work.begun).toEqual(['a1', 'b1', 'b2', 'a2']);
  });

  test('returns the result or the error of the work and frees its slot', async () => {
    const queue = createFairQueue('lists', { ...AMPLE, atOnce: 1 });
    expect(await queue.run('a', async () => 1)).toBe(1);
    await expect(queue.run('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(await queue.run('b', async () => 2)).toBe(2);
  });

  test('keeps the accounts of busy callers when it drops idle ones', async () => {
    const queue = createFairQueue('lists', { ...AMPLE, perCaller: 1 });
    const work = createWork(queue);
    void work.begin('busy', 'first');
    for (let nth = 0; nth < 3 * LIMITS.idleCallers; nth++) await queue.run(`caller ${nth}`, async () => undefined);
    void work.begin('busy', 'second');
    expect(work.begun).toEqual(['first']);
    await work.end('first');
    expect(work.begun).toEqual(['first', 'second']);
  });
});

describe('refusals', () => {
  test('answers 429 only to the caller with too much waiting work', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 2, perCaller: 1, waitingPerCaller: 1 }));
    void work.begin('a', 'a1');
    void work.begin('a', 'a2');
    await expect(work.begin('a', 'a3')).rejects.toMatchObject({ status: 429, headers: { 'Retry-After': '1' } });
    void work.begin('b', 'b1');
    expect(work.begun).toEqual(['a1', 'b1']);
  });

  test('answers 503 when too much work waits in total', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1, waiting: 1 }));
    void work.begin('a', 'a1');
    void work.begin('b', 'b1');
    await expect(work.begin('c', 'c1')).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } });
  });

  test('answers 429 or 503 after the time limit, depending on whose work blocks', async () => {
    const own = createWork(createFairQueue('lists', { ...AMPLE, perCaller: 1, waitMs: 5 }));
    void own.begin('a', 'a1');
    await expect(own.begin('a', 'a2')).rejects.toMatchObject({ status: 429 });
    const others = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1, waitMs: 5 }));
    void others.begin('a', 'a1');
    await expect(others.begin('b', 'b1')).rejects.toMatchObject({ status: 503 });
    // Nothing of what was refused is left in the queue.
    await others.end('a1');
    void others.begin('c', 'c1');
    expect(others.begun).toEqual(['a1', 'c1']);
  });
});

describe('the rest of a caller', () => {
  const limits: QueueLimits = { ...AMPLE, atOnce: 1, waitMs: 10_000, rests: 3 };
  let stillMs = 0;
  let restore: () => void;

  /** What is ready has run. */
  const turnsPass = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  };

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate'] });
    const real = clock;
    restore = replaceClock({ ...real, steadyMs: () => real.steadyMs() + stillMs });
  });

  afterEach(() => {
    restore();
    jest.useRealTimers();
    stillMs = 0;
  });

  test('ends in time where the event loop stands still until its wait is over', async () => {
    const work = createWork(createFairQueue('checks', limits));
    void work.begin('a', 'a1');
    stillMs += 5_000;
    await work.end('a1');
    await turnsPass();
    void work.begin('a', 'a2');
    expect(work.begun).toEqual(['a1']);
    stillMs += 15_000;
    // Fires the end of the wait before that of the rest.
    jest.advanceTimersByTime(limits.waitMs);
    await turnsPass();
    expect(work.begun).toEqual(['a1', 'a2']);
  });

  test('is as long as the work by the clock that counts it', async () => {
    let cpuMs = 0;
    const work = createWork(createFairQueue('checks', { ...limits, durationClock: () => cpuMs }));
    void work.begin('a', 'a1');
    stillMs += 60_000;
    cpuMs += 100;
    await work.end('a1');
    await turnsPass();
    void work.begin('a', 'a2');
    jest.advanceTimersByTime(299);
    await turnsPass();
    expect(work.begun).toEqual(['a1']);
    jest.advanceTimersByTime(1);
    await turnsPass();
    expect(work.begun).toEqual(['a1', 'a2']);
  });
});

describe('work of a caller that leaves', () => {
  test('never starts and blocks no other work', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1 }));
    const leaving = new AbortController();
    void work.begin('a', 'a1');
    const left = work.begin('b', 'b1', leaving.signal);
    void work.begin('c', 'c1');
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await work.end('a1');
    expect(work.begun).toEqual(['a1', 'c1']);
  });

  test('rejects work of a caller that left before it was queued', async () => {
    const work = createWork(createFairQueue('lists', { ...AMPLE, atOnce: 1 }));
    void work.begin('a', 'a1');
    await expect(work.begin('b', 'b1', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  });
});

test('starts work that mayStart held back as soon as it permits it', () => {
  let isPermitted = false;
  const queue = createFairQueue('lists', AMPLE, (caller) => caller !== 'a' || isPermitted);
  const work = createWork(queue);
  void work.begin('a', 'a1');
  void work.begin('b', 'b1');
  expect(work.begun).toEqual(['b1']);
  isPermitted = true;
  queue.recheck();
  return new Promise(setImmediate).then(() => expect(work.begun).toEqual(['b1', 'a1']));
});
