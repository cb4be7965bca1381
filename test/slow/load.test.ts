/** Callers who ask too much are told so, alone; a process that has too much to do leaves out what costs most. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { entityOf, expectRefusal } from '../support/answers.js';
import { type Answer, startTestService, type TestService } from '../support/fixture.js';
import { until } from '../support/until.js';

let service: TestService;
afterEach(() => service?.stop());

describe('points of a caller', () => {
  beforeEach(async () => {
    // Ten points in ten seconds.
    service = await startTestService({ env: { RATE_LIMIT: '1', OPS_PORT: '0' } });
  });

  test('who spends too many gets 429 with the time to come again; nobody else does', async () => {
    const { admin } = service;
    const object = entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const answers: Answer[] = [];
    for (let n = 0; n < 12; n++) answers.push(await admin('GET', `objects/${object._id}`));
    expect(answers.slice(0, 9).map(({ status }) => status)).toEqual(Array(9).fill(200));
    for (const refused of answers.slice(9)) {
      expectRefusal(refused, 429);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(10);
    }
    // Another token is another caller; who may not come in at all is not counted for anyone.
    const other = service.as(await service.tokenOf('admin', 'correct horse battery'));
    expect((await other('GET', 'objects/car')).status).toBe(200);
    expectRefusal(await service.as('no token')('GET', 'objects/car'), 401);
    expect((await fetch(`${service.service.opsUrl}/health`)).status).toBe(200);
  });

  test('large bodies and large lists cost more', async () => {
    const { admin } = service;
    entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const packets = Array.from({ length: 6 }, (_, at) => ({ time: 1_700_000_000_000 + at, pad: 'x'.repeat(14_000) }));
    expect((await admin('POST', 'objects/car/packets', packets)).status).toBe(200);
    // Seven points are gone; the list is given, and what it cost is known then.
    expect((await admin('GET', 'objects/car/packets')).status).toBe(200);
    expectRefusal(await admin('GET', 'objects/car'), 429);
  });

  test('who knows no points is not counted', async () => {
    await service.stop();
    service = await startTestService({ env: { RATE_LIMIT: '0' } });
    const answers = await Promise.all(Array.from({ length: 50 }, () => service.admin('GET', 'objects')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe('a process that is late with everything', () => {
  /** Keeps the event loop busy, with a turn for others between, until the result is called. */
  function keepBusy(blockMs: number): () => void {
    let busy = true;
    const block = (): void => {
      const untilMs = performance.now() + blockMs;
      while (performance.now() < untilMs);
      if (busy) setImmediate(block);
    };
    block();
    return () => {
      busy = false;
    };
  }

  /** The statuses of lists, asked for one after the other for so long. */
  async function askLists(durationMs: number): Promise<Set<number>> {
    const statuses = new Set<number>();
    const untilMs = performance.now() + durationMs;
    while (performance.now() < untilMs) statuses.add((await service.admin('GET', 'objects')).status);
    return statuses;
  }

  test('refuses nothing for one stall, however long', async () => {
    service = await startTestService({ env: { OVERLOAD_DELAY: '40' } });
    // What it was late with when it started is over.
    await askLists(1_200);
    const stallEndMs = performance.now() + 2_500;
    while (performance.now() < stallEndMs);
    expect(await askLists(800)).toEqual(new Set([200]));
  });

  test('refuses lists and large bodies with 503, answers the rest, and all when it has caught up', async () => {
    service = await startTestService({ env: { OVERLOAD_DELAY: '40', OPS_PORT: '0' } });
    const { admin } = service;
    entityOf(await admin('POST', 'objects', { id: 'car', name: 'Car' }));
    const rest = keepBusy(100);
    try {
      await until(async () => (await admin('GET', 'objects')).status === 503, 'lists are refused', 20_000);
      const refused = await admin('GET', 'objects/car/packets');
      expectRefusal(refused, 503);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      const large = Array.from({ length: 30 }, () => ({ pad: 'x'.repeat(10_000) }));
      expectRefusal(await admin('POST', 'objects/car/packets', large), 503);
      expect((await admin('GET', 'objects/car')).status).toBe(200);
      expect((await admin('POST', 'objects/car/packets', { speed: 1 })).status).toBe(200);
      expect((await admin('GET', 'auth')).status).toBe(200);
      expect((await fetch(`${service.service.opsUrl}/health`)).status).toBe(200);
    } finally {
      rest();
    }
    await until(async () => (await admin('GET', 'objects')).status === 200, 'lists are answered', 20_000);
    // Nothing of what was refused had been done.
    expect((await admin('GET', 'objects/car/packets?meta=true')).body.count).toBe(1);
  });

  test('refuses them too when each turn takes longer than the time over which the delay is an average', async () => {
    service = await startTestService({ env: { OVERLOAD_DELAY: '40' } });
    const rest = keepBusy(700);
    try {
      await until(async () => (await service.admin('GET', 'objects')).status === 503, 'lists are refused', 30_000);
    } finally {
      rest();
    }
  });
});
