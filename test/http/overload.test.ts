/** RATE_LIMIT refuses callers that send too much, and no others. OVERLOAD_DELAY refuses the costly requests of a process that is late. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { type Answer, startTestService, type TestService } from '../support/fixture.js';
import { undisturbed } from '../support/undisturbed.js';
import { until } from '../support/until.js';

// Scaled down: how long the delay of the event loop is averaged.
const WINDOW_MS = 100;
Object.assign(LIMITS, { loadWindowMs: WINDOW_MS });

let service: TestService;
afterEach(() => service?.stop());

/** Sends packets of the object `car`, or to another path, in a body that announces no length. */
const sendChunked = (token: string, parts: readonly string[], path = 'objects/car/packets'): Promise<Response> =>
  fetch(`${service.url}/api/v1/${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: ReadableStream.from(parts).pipeThrough(new TextEncoderStream()),
    duplex: 'half',
  } as RequestInit);

describe('points of a caller', () => {
  beforeEach(async () => {
    // Ten points in ten seconds.
    service = await startTestService({ env: { RATE_LIMIT: '1', OPS_PORT: '0' } });
  });

  test('refuse a caller that spends too many with 429 and the time to wait, and no other caller', async () => {
    const { admin } = service;
    const object = entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    // All at once: one after the other they may take longer than the ten seconds.
    const asked = Array.from({ length: 12 }, () => admin('GET', `objects/${object._id}`));
    const answers = (await Promise.all(asked)).sort((a, b) => a.status - b.status);
    expect(answers.slice(0, 9).map(({ status }) => status)).toEqual(Array(9).fill(200));
    for (const refused of answers.slice(9)) {
      expectRefusal(refused, 429);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(10);
    }
    // Another token is another caller; a request without a valid token is counted for none.
    const other = service.as(await service.tokenOf('admin', 'correct horse battery'));
    expect((await other('GET', 'objects/car')).status).toBe(200);
    expectRefusal(await service.as('no token')('GET', 'objects/car'), 401);
    expect((await fetch(`${service.service.opsUrl}/health`)).status).toBe(200);
  });

  test('count more for large bodies and large lists', async () => {
    const { admin } = service;
    entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const packets = Array.from({ length: 6 }, (_, at) => ({ time: 1_700_000_000_000 + at, pad: 'x'.repeat(14_000) }));
    expect((await admin('POST', 'objects/car/packets', packets)).status).toBe(200);
    // Seven points are gone; the list is given, and what it cost is known then.
    expect((await admin('GET', 'objects/car/packets')).status).toBe(200);
    expectRefusal(await admin('GET', 'objects/car'), 429);
  });

  test.each<[way: string, pieces: number]>([
    ['in one piece', 1],
    ['in small pieces', 100],
  ])('count more for large bodies that announce no length: %s', async (_, pieces) => {
    const { admin } = service;
    entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const text = `${' '.repeat(400_000)}{"n":1}`;
    const size = Math.ceil(text.length / pieces);
    const parts = Array.from({ length: pieces }, (_part, at) => text.slice(at * size, (at + 1) * size));
    const token = await service.tokenOf('admin', 'correct horse battery');
    expect((await sendChunked(token, parts)).status).toBe(200);
    // These few cost too little to be refused otherwise.
    const answers: number[] = [];
    for (let n = 0; n < 3; n++) answers.push((await service.as(token)('GET', 'objects/car')).status);
    expect(answers).toContain(429);
  });

  test('count the first bytes of bodies that announce no length as well', async () => {
    const { admin } = service;
    entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const token = await service.tokenOf('admin', 'correct horse battery');
    // Four points each, and all of a body may have come before anybody looks.
    for (let n = 0; n < 2; n++) expect((await sendChunked(token, [`${' '.repeat(60_000)}{"n":1}`])).status).toBe(200);
    const answers: number[] = [];
    for (let n = 0; n < 3; n++) answers.push((await service.as(token)('GET', 'objects/car')).status);
    expect(answers).toContain(429);
  });

  test('count the bodies of sources that announce no length', async () => {
    const { admin } = service;
    entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const { body: source } = await admin('POST', 'sources', { id: 'gateway', name: 'Gateway', kind: 'json' });
    const body = `${' '.repeat(60_000)}{"id":"car","n":1}`;
    const statuses: number[] = [];
    for (let n = 0; n < 6; n++) statuses.push((await sendChunked(source.key, [body], 'in/gateway')).status);
    expect(statuses.slice(0, 2)).toEqual([200, 200]);
    expect(statuses).toContain(429);
  });

  test('bound nothing with RATE_LIMIT=0', async () => {
    await service.stop();
    service = await startTestService({ env: { RATE_LIMIT: '0' } });
    const answers = await Promise.all(Array.from({ length: 50 }, () => service.admin('GET', 'objects')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe('a process that is late with everything', () => {
  /** Stops the thread, and leaves its core to others. */
  function stall(ms: number): void {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  }

  /** Keeps the event loop busy, with a turn for others between, until the result is called. */
  function keepBusy(blockMs: number): () => void {
    let busy = true;
    const block = (): void => {
      stall(blockMs);
      if (busy) setImmediate(block);
    };
    block();
    return () => {
      busy = false;
    };
  }

  /** Timers that make those of the process run before the measurement of its delay in every other turn; until the result is called. */
  function disturbTimers(): () => void {
    let timer: NodeJS.Timeout;
    const again = (delayMs: number): void => {
      timer = setTimeout(() => again(delayMs === 1 ? 40 : 1), delayMs);
    };
    again(1);
    return () => clearTimeout(timer);
  }

  const askList = async (): Promise<number> => (await service.admin('GET', 'objects')).status;

  test('refuses nothing after one stall, however long', async () => {
    // More than a machine that others keep busy delays everything, less than the stall delays the turns of its window on average.
    service = await startTestService({ env: { OVERLOAD_DELAY: '150' } });
    // Further stalls, of a machine that stands still, may follow in every window: then it is late with everything.
    await undisturbed(WINDOW_MS, async () => {
      stall(30 * WINDOW_MS);
      const statuses = new Set<number>();
      let windows = 0;
      const counting = setInterval(() => windows++, WINDOW_MS);
      while (windows < 2 * LIMITS.loadWindows) statuses.add(await askList());
      clearInterval(counting);
      expect(statuses).toEqual(new Set([200]));
    });
  });

  test('refuses lists and large bodies with 503, answers the rest, and all when it has caught up', async () => {
    service = await startTestService({ env: { OVERLOAD_DELAY: '20', OPS_PORT: '0' } });
    const { admin } = service;
    entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const token = await service.tokenOf('admin', 'correct horse battery');
    const rest = keepBusy(WINDOW_MS / 2);
    try {
      await until(async () => (await askList()) === 503, 'lists are refused');
      const refused = await admin('GET', 'objects/car/packets');
      expectRefusal(refused, 503);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      const large = Array.from({ length: 30 }, () => ({ pad: 'x'.repeat(10_000) }));
      expectRefusal(await admin('POST', 'objects/car/packets', large), 503);
      expect((await sendChunked(token, [JSON.stringify(large)])).status).toBe(503);
      for (const path of ['events?from=0', 'objects/car/events?to=2026-11-23', 'account/tokens', 'geofences']) {
        expectRefusal(await admin('GET', path), 503);
      }
      expect((await admin('GET', 'events')).status).toBe(200);
      expect((await admin('GET', 'objects/car')).status).toBe(200);
      expect((await admin('POST', 'objects/car/packets', { speed: 1 })).status).toBe(200);
      expect((await admin('GET', 'auth')).status).toBe(200);
      expect((await fetch(`${service.service.opsUrl}/health`)).status).toBe(200);
    } finally {
      rest();
    }
    let counted: Answer | undefined;
    await until(async () => {
      counted = await admin('GET', 'objects/car/packets?meta=true');
      return counted.status === 200;
    }, 'lists are answered');
    // Nothing of what was refused had been done.
    expect(counted?.body.count).toBe(1);
  });

  test('refuses lists when each turn takes longer than the window of the average', async () => {
    service = await startTestService({ env: { OVERLOAD_DELAY: '40' } });
    const rest = keepBusy(1.5 * WINDOW_MS);
    try {
      await until(async () => (await askList()) === 503, 'lists are refused');
    } finally {
      rest();
    }
  });

  test('refuses lists, and goes on doing so, when a window ends before anything of it was measured', async () => {
    service = await startTestService({ env: { OVERLOAD_DELAY: '20' } });
    const rest = keepBusy(1.2 * WINDOW_MS);
    const leave = disturbTimers();
    try {
      await until(async () => (await askList()) === 503, 'lists are refused');
      const statuses: number[] = [];
      for (let nth = 0; nth < 10; nth++) statuses.push(await askList());
      expect(statuses).toEqual(statuses.map(() => 503));
    } finally {
      leave();
      rest();
    }
  });
});
