/** The pool of buffers for long pages. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { createBufferPool } from '../../../src/platform/mongo/bson/buffer-pool.js';

const pool = createBufferPool();
const { memoryStepBytes: step, spareBuffers, spareBufferBytes } = LIMITS;

test('lends a released buffer again, to one borrower at a time', () => {
  const first = pool.acquire(step + 1);
  expect(first.length).toBe(2 * step);
  pool.release(first);
  const again = pool.acquire(2 * step);
  const other = pool.acquire(2 * step);
  expect([again, other].filter((one) => one === first)).toHaveLength(1);
  expect(other).not.toBe(again);
});

test('keeps a bounded number of buffers of a bounded size', () => {
  const lent = Array.from({ length: 2 * spareBuffers }, () => pool.acquire(3 * step));
  for (const one of lent) pool.release(one);
  const again = Array.from({ length: 2 * spareBuffers }, () => pool.acquire(3 * step));
  expect(again.filter((one) => lent.includes(one)).length).toBeLessThanOrEqual(spareBuffers);
  const large = pool.acquire(spareBufferBytes + 1);
  pool.release(large);
  expect(pool.acquire(spareBufferBytes + 1)).not.toBe(large);
});
