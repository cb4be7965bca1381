/** The pauses between retries. */
import { expect, test } from '@jest/globals';
import { backoffMs } from '../../../src/core/backoff.js';

test('doubles the pause with each failure, up to the maximum', () => {
  expect([1, 2, 3, 4, 1_000].map((failures) => backoffMs(failures, 100, 500, 1))).toEqual([100, 200, 400, 500, 500]);
});

test('reduces the pause at random to at least half', () => {
  expect(backoffMs(2, 100, 500, 0)).toBe(100);
  for (let nth = 0; nth < 1_000; nth++) {
    const pauseMs = backoffMs(2, 100, 500, Math.random());
    expect(pauseMs).toBeGreaterThanOrEqual(100);
    expect(pauseMs).toBeLessThan(200);
  }
});
