/** Memory that callers share. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { createBudget } from '../../../src/platform/budget.js';

const LIMIT = { perCaller: 60, inAll: 100, reservePerCaller: 10, reserve: 20 };

describe('a budget', () => {
  test('refuses bytes beyond the bound of a caller with 429 until some are released', () => {
    const budget = createBudget('answers', LIMIT);
    expect(budget.take('a', 60)).toBeNull();
    expect(budget.take('a', 1)).toMatchObject({ status: 429, headers: { 'Retry-After': '1' } });
    budget.release('a', 1);
    expect(budget.take('a', 1)).toBeNull();
    expect(budget.of('a')).toBe(60);
  });

  test('refuses bytes beyond the total with 503', () => {
    const budget = createBudget('answers', LIMIT);
    budget.take('a', 50);
    budget.take('b', 50);
    expect(budget.take('c', 11)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } });
    budget.release('b', 20);
    expect(budget.take('c', 11)).toBeNull();
  });

  test('keeps a reserve for callers that hold few bytes', () => {
    const budget = createBudget('answers', LIMIT);
    budget.take('a', 50);
    budget.take('b', 50);
    expect([budget.take('c', 10), budget.take('d', 10)]).toEqual([null, null]);
    expect(budget.take('c', 1)).toMatchObject({ status: 503 });
    expect(budget.take('e', 1)).toMatchObject({ status: 503 });
  });

  test('counts bytes that can no longer be refused', () => {
    const budget = createBudget('answers', LIMIT);
    budget.add('a', 70);
    expect(budget.take('a', 1)).toMatchObject({ status: 429 });
  });

  test('calls back when bytes are released', () => {
    let calls = 0;
    const budget = createBudget('answers', LIMIT, () => calls++);
    budget.take('a', 5);
    expect(calls).toBe(0);
    budget.release('a', 5);
    expect(calls).toBe(1);
  });

  test('keeps the accounts of callers that hold bytes when it drops idle ones', () => {
    const budget = createBudget('answers', LIMIT);
    budget.take('a', 60);
    for (let nth = 0; nth < 3 * LIMITS.idleCallers; nth++) {
      budget.take(`caller ${nth}`, 1);
      budget.release(`caller ${nth}`, 1);
    }
    expect(budget.take('a', 1)).toMatchObject({ status: 429 });
  });
});
