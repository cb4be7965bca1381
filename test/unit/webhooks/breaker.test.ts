/** A receiver that fails is left alone, but for single probes, ever less often. */
import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/model/limits.js';
import { type Breaker, createBreaker } from '../../../src/webhooks/breaker.js';
import { until } from '../../support/until.js';

const original = { ...LIMITS };
Object.assign(LIMITS, { webhookProbeMs: 50, webhookProbeMaxMs: 150 });
afterAll(() => void Object.assign(LIMITS, original));

let breaker: Breaker;
let freed: number;
beforeEach(() => {
  freed = 0;
  breaker = createBreaker(() => void freed++);
});
afterEach(() => breaker.stop());

function fail(times: number, retryAfterMs: number | null = null): void {
  for (let count = 0; count < times; count++) {
    breaker.start().failed(retryAfterMs);
  }
}

/** How long it rests from now on, ms. */
async function measureRest(): Promise<number> {
  const startMs = performance.now();
  await until(() => breaker.mayStart());
  return performance.now() - startMs;
}

test('opens after five failures in a row', () => {
  fail(4);
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([false, true]);
  breaker.start().succeeded();
  fail(4);
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([false, true]);
  fail(1);
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([true, false]);
});

test('lets one probe through at a time, and says when', async () => {
  fail(5);
  await until(() => freed === 1);
  expect(breaker.mayStart()).toBe(true);
  const probe = breaker.start();
  expect(breaker.mayStart()).toBe(false);
  // It could not be sent: that says nothing of the receiver.
  probe.gaveUp();
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([true, true]);
});

test('rests longer after each probe that fails, up to a bound', async () => {
  fail(5);
  const rests: number[] = [];
  for (let probes = 0; probes < 4; probes++) {
    rests.push(await measureRest());
    fail(1);
  }
  // 50, 100, 150 and 150 ms, each ±20 %; a busy machine wakes late, never early.
  for (const [index, atLeastMs] of [40, 80, 120, 120].entries()) {
    expect(rests[index]).toBeGreaterThan(atLeastMs - 5);
  }
});

test('ignores failures of requests that were sent before it opened', async () => {
  const sent = Array.from({ length: 8 }, () => breaker.start());
  for (const attempt of sent.slice(0, 7)) attempt.failed(null);
  await until(() => freed === 1);
  expect(breaker.mayStart()).toBe(true);
  const probe = breaker.start();
  sent[7]?.failed(null);
  // The probe is still under way: no second one begins, and nothing rests longer.
  expect(breaker.mayStart()).toBe(false);
  probe.gaveUp();
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([true, true]);
});

test('closes at one success, and what waits may begin', async () => {
  fail(5);
  await until(() => freed === 1);
  breaker.start().succeeded();
  expect([breaker.isOpen(), breaker.mayStart(), freed]).toEqual([false, true, 2]);
  fail(4);
  expect(breaker.isOpen()).toBe(false);
});

test('rests as long as the receiver asks for, though it is closed', async () => {
  fail(1, 60);
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([false, false]);
  expect(await measureRest()).toBeGreaterThan(50);
  await until(() => freed === 1);
});
