/** How long a request waits for a database that does not answer. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { mapDriverErrors } from '../../../src/platform/mongo/driver/errors.js';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

/** An operation that the database never answers, and the status that ended it. */
function startSilent(withinMs?: number | null): { status: () => number | null } {
  let status: number | null = null;
  mapDriverErrors(() => new Promise<never>(() => undefined), withinMs).catch((error) => {
    status = error.status;
  });
  return { status: () => status };
}

test.each([
  ['five seconds', undefined, 5_000],
  ['the time that the caller gives', 200, 200],
])('answers 503 after %s, and not before', async (_name, withinMs, boundMs) => {
  expect(LIMITS.databaseAnswerMs).toBe(5_000);
  const silent = startSilent(withinMs);
  await jest.advanceTimersByTimeAsync(boundMs - 1);
  expect(silent.status()).toBeNull();
  await jest.advanceTimersByTimeAsync(1);
  expect(silent.status()).toBe(503);
});

test('waits without end only where the caller says so', async () => {
  const silent = startSilent(null);
  await jest.advanceTimersByTimeAsync(10 * LIMITS.databaseAnswerMs);
  expect(silent.status()).toBeNull();
});

test('leaves no timer behind after an answer', async () => {
  await expect(mapDriverErrors(async () => 1)).resolves.toBe(1);
  expect(jest.getTimerCount()).toBe(0);
});
