/** How much may wait in the memory of an instance: bounded by number and by bytes, per tenant and in total; and what is done of each tenant. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import {
  addTasks,
  findDone,
  type Holding,
  isFull,
  LIVE_FEED,
  type TenantQueue,
  takeTasks,
} from '../../../src/processing/holding.js';
import { holdAll, MIB, planned, positionOf, queueOf } from '../../support/holdings.js';

const fill = (queue: TenantQueue, bytes: number): void => addTasks(queue, positionOf(1), [planned(0, 1, bytes)]);

test('is full of a few big tasks, until they are taken', () => {
  const holdings = holdAll(0);
  const queue = queueOf(holdings, 0);
  fill(queue, LIMITS.partitionTaskBytes);
  expect(isFull(queue, holdings)).toBe(true);
  takeTasks(queue, { tasks: 1, bytes: 1 });
  expect(isFull(queue, holdings)).toBe(false);
});

test('is full of many small tasks', () => {
  const holdings = holdAll(0);
  const queue = queueOf(holdings, 0);
  addTasks(
    queue,
    positionOf(1),
    Array.from({ length: LIMITS.partitionTasks }, () => planned(0, 1)),
  );
  expect(isFull(queue, holdings)).toBe(true);
});

test('asks only about the tenant, in a partition that is held', () => {
  const holdings = holdAll(0);
  const queue = queueOf(holdings, 0);
  fill(queue, LIMITS.partitionTaskBytes);
  expect(isFull(queueOf(holdings, 0, 'other'), holdings)).toBe(false);
  holdings.delete(0);
  expect(isFull(queue, holdings)).toBe(false);
});

test('is full where all tenants together have enough, but for those who have little', () => {
  const holdings = holdAll(...Array(16).keys());
  for (const index of holdings.keys()) fill(queueOf(holdings, index), LIMITS.taskBytes / 16);
  expect(LIMITS.taskBytes / 16).toBeLessThan(LIMITS.partitionTaskBytes);
  expect(isFull(queueOf(holdings, 0), holdings)).toBe(true);
  const little = queueOf(holdings, 0, 'little');
  fill(little, LIMITS.tenantTaskBytesUnderLoad - 1);
  expect(isFull(little, holdings)).toBe(false);
  fill(queueOf(holdings, 1, 'little'), 1);
  expect(isFull(little, holdings)).toBe(true);
  expect(LIMITS.taskBytes).toBeLessThanOrEqual(64 * MIB);
});

test('names the tenants that are not where all others are, until nothing of them waits', () => {
  const holdings = holdAll(0);
  const holding = holdings.get(0) as Holding;
  holding.rest.source = LIVE_FEED;
  const slow = queueOf(holdings, 0, 'slow');
  const quick = queueOf(holdings, 0, 'quick');
  addTasks(slow, positionOf(1), [planned(0, 1, 1, 'slow')]);
  addTasks(quick, positionOf(2), [planned(0, 2, 1, 'quick')]);
  takeTasks(quick, { tasks: 1, bytes: 1 });
  quick.isCommitting = true;
  expect(findDone(holding, positionOf(5), new Map([[quick, positionOf(2)]]))).toEqual({
    rest: positionOf(5),
    tenants: [
      { tenant: 'slow', position: positionOf(0) },
      { tenant: 'quick', position: positionOf(2) },
    ],
  });
  quick.isCommitting = false;
  expect(findDone(holding, positionOf(6)).tenants).toEqual([{ tenant: 'slow', position: positionOf(0) }]);
  takeTasks(slow, { tasks: 1, bytes: 1 });
  expect(findDone(holding, positionOf(7))).toEqual({ rest: positionOf(7), tenants: [] });
});
