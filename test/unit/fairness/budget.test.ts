/** Memory that callers share. */
import { describe, expect, test } from '@jest/globals';
import { createBudget } from '../../../src/fairness/budget.js';
import { LIMITS } from '../../../src/model/limits.js';

const LIMIT = { perCaller: 60, inAll: 100, little: 10, reserve: 20 };

describe('a budget', () => {
  test('refuses a caller more than one may have with 429, until some is given back', () => {
    const budget = createBudget('answers', LIMIT);
    expect(budget.take('a', 60)).toBeNull();
    expect(budget.take('a', 1)).toMatchObject({ status: 429, headers: { 'Retry-After': '1' } });
    budget.giveBack('a', 1);
    expect(budget.take('a', 1)).toBeNull();
    expect(budget.of('a')).toBe(60);
  });

  test('refuses more than there may be in all with 503', () => {
    const budget = createBudget('answers', LIMIT);
    budget.take('a', 50);
    budget.take('b', 50);
    expect(budget.take('c', 11)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } });
    budget.giveBack('b', 20);
    expect(budget.take('c', 11)).toBeNull();
  });

  test('has a reserve for callers who take little', () => {
    const budget = createBudget('answers', LIMIT);
    budget.take('a', 50);
    budget.take('b', 50);
    expect([budget.take('c', 10), budget.take('d', 10)]).toEqual([null, null]);
    expect(budget.take('c', 1)).toMatchObject({ status: 503 });
    expect(budget.take('e', 1)).toMatchObject({ status: 503 });
  });

  test('counts what cannot be refused any more', () => {
    const budget = createBudget('answers', LIMIT);
    budget.add('a', 70);
    expect(budget.take('a', 1)).toMatchObject({ status: 429 });
  });

  test('tells when somebody has less', () => {
    let told = 0;
    const budget = createBudget('answers', LIMIT, () => told++);
    budget.take('a', 5);
    expect(told).toBe(0);
    budget.giveBack('a', 5);
    expect(told).toBe(1);
  });

  test('remembers who has something when it drops those who have nothing', () => {
    const budget = createBudget('answers', LIMIT);
    budget.take('a', 60);
    for (let nth = 0; nth < 3 * LIMITS.idleCallers; nth++) {
      budget.take(`caller ${nth}`, 1);
      budget.giveBack(`caller ${nth}`, 1);
    }
    expect(budget.take('a', 1)).toMatchObject({ status: 429 });
  });
});
