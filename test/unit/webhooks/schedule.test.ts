/** When a message that failed is sent again. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { findRetryDelay, isTooOld } from '../../../src/webhooks/schedule.js';

const MIDDLE = 0.5;
const HOUR_MS = 3_600_000;
const delayOf = (attempts: number, random = MIDDLE) => findRetryDelay({ attempts, retryAfterMs: null }, random);

test.each([
  [1, 1_000],
  [2, 5_000],
  [3, 30_000],
  [4, 120_000],
  [5, 600_000],
  [6, 1_800_000],
  [7, HOUR_MS],
  [70, HOUR_MS],
])('waits after attempt %i: %i ms', (attempts, delayMs) => {
  expect(delayOf(attempts)).toBe(delayMs);
});

test('spreads delays by a fifth, so that objects that failed together are not tried together', () => {
  expect([delayOf(3, 0), delayOf(3, 0.999_999)]).toEqual([24_000, 36_000]);
});

describe('Retry-After', () => {
  test.each([
    [600_000, 600_000],
    [10, 1_000],
    [0, 1_000],
  ])('respects Retry-After of %i ms: waits %i ms, never less than the schedule', (retryAfterMs, delayMs) => {
    expect(findRetryDelay({ attempts: 1, retryAfterMs }, MIDDLE)).toBe(delayMs);
  });
});

test('gives up a message at the end of its life', () => {
  const nowMs = 1_700_000_000_000;
  expect(isTooOld({ timeMs: nowMs - LIMITS.webhookLifetimeMs }, nowMs)).toBe(true);
  expect(isTooOld({ timeMs: nowMs - LIMITS.webhookLifetimeMs + 1 }, nowMs)).toBe(false);
});
