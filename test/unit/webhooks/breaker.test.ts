/** A receiver that fails receives only single probes, less and less often. */
import { afterAll, afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { type Breaker, createBreaker } from '../../../src/webhooks/breaker.js';

const original = { ...LIMITS };
Object.assign(LIMITS, { webhookProbeMs: 100, webhookProbeMaxMs: 300 });
afterAll(() => void Object.assign(LIMITS, original));

let breaker: Breaker;
let freed: number;
beforeEach(() => {
  jest.useFakeTimers();
  freed = 0;
  breaker = createBreaker(() => void freed++);
});
afterEach(() => {
  breaker.stop();
  jest.useRealTimers();
});

function fail(times: number, retryAfterMs: number | null = null): void {
  for (let count = 0; count < times; count++) {
    breaker.start().failed(retryAfterMs);
  }
}

/** How long it pauses from now on, ms. */
function measurePauseMs(): number {
  for (let pauseMs = 0; ; pauseMs++) {
    if (breaker.mayStart()) return pauseMs;
    jest.advanceTimersByTime(1);
  }
}

/** Moves the clock to the end of the pause. */
function endPause(): void {
  jest.advanceTimersByTime(LIMITS.webhookProbeMaxMs);
  expect(freed).toBe(1);
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

test('lets one probe through at a time, and reports when', () => {
  fail(5);
  endPause();
  expect(breaker.mayStart()).toBe(true);
  const probe = breaker.start();
  expect(breaker.mayStart()).toBe(false);
  // A probe that was not sent reveals nothing about the receiver.
  probe.gaveUp();
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([true, true]);
});

test('pauses longer after each probe that fails, up to a maximum', () => {
  fail(5);
  for (const pauseMs of [100, 200, 300, 300]) {
    const measuredMs = measurePauseMs();
    expect(measuredMs).toBeGreaterThanOrEqual(pauseMs * 0.8);
    expect(measuredMs).toBeLessThanOrEqual(pauseMs * 1.2 + 1);
    fail(1);
  }
});

test('ignores failures of requests that were sent before it opened', () => {
  const sent = Array.from({ length: 8 }, () => breaker.start());
  for (const attempt of sent.slice(0, 7)) attempt.failed(null);
  endPause();
  expect(breaker.mayStart()).toBe(true);
  const probe = breaker.start();
  sent[7]?.failed(null);
  // The probe is still under way: no second one begins, and the pause does not grow.
  expect(breaker.mayStart()).toBe(false);
  probe.gaveUp();
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([true, true]);
});

test('closes at the first success, and lets waiting messages start', () => {
  fail(5);
  endPause();
  breaker.start().succeeded();
  expect([breaker.isOpen(), breaker.mayStart(), freed]).toEqual([false, true, 2]);
  fail(4);
  expect(breaker.isOpen()).toBe(false);
});

test('pauses as long as the receiver asks for, even while closed', () => {
  fail(1, 60);
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([false, false]);
  expect(measurePauseMs()).toBe(60);
  jest.advanceTimersByTime(1);
  expect(freed).toBe(1);
});

test('sends again at once after a reset, and pauses anew after five more failures', () => {
  fail(5);
  expect([breaker.isOpen(), breaker.mayStart()]).toEqual([true, false]);
  breaker.reset();
  expect([breaker.isOpen(), breaker.mayStart(), freed]).toEqual([false, true, 1]);
  fail(4);
  expect(breaker.mayStart()).toBe(true);
  fail(1);
  expect(breaker.mayStart()).toBe(false);
});

test('forgets failures where a message is wanted now, but not how long the receiver wants nothing', () => {
  fail(5);
  breaker.reset();
  expect([freed, breaker.mayStart()]).toEqual([1, true]);
  fail(5, 1_000);
  breaker.reset();
  expect([freed, breaker.isOpen(), breaker.mayStart()]).toEqual([1, false, false]);
  expect(measurePauseMs()).toBe(1_000);
  jest.advanceTimersByTime(1);
  expect(freed).toBe(2);
});
