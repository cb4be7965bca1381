/** How much may wait in the memory of an instance: bounded by number and by bytes, per partition and in total. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { addTasks, areFull, type Holding, takeTasks } from '../../../src/processing/holding.js';
import { holdAll, MIB, planned, positionOf } from '../../support/holdings.js';

const fill = (holding: Holding | undefined, bytes: number): void =>
  addTasks(holding as Holding, positionOf(1), [planned(0, 1, bytes)]);

test('is full of a few big tasks, until they are taken', () => {
  const holdings = holdAll(0);
  const [holding] = holdings.values();
  fill(holding, LIMITS.partitionTaskBytes);
  expect(areFull(holdings.values(), holdings)).toBe(true);
  takeTasks(holding as Holding, { tasks: 1, bytes: 1 });
  expect(areFull(holdings.values(), holdings)).toBe(false);
});

test('is full of many small tasks', () => {
  const holdings = holdAll(0);
  const many = Array.from({ length: LIMITS.partitionTasks }, () => planned(0, 1));
  addTasks(holdings.get(0) as Holding, positionOf(1), many);
  expect(areFull(holdings.values(), holdings)).toBe(true);
});

test('asks only about the partitions that want more, and that are held', () => {
  const holdings = holdAll(0, 1);
  fill(holdings.get(0), LIMITS.partitionTaskBytes);
  expect(areFull([holdings.get(1) as Holding], holdings)).toBe(false);
  const lost = [...holdings.values()];
  holdings.delete(0);
  expect(areFull(lost, holdings)).toBe(false);
});

test('is full where all partitions together have enough', () => {
  const holdings = holdAll(...Array(16).keys());
  for (const holding of holdings.values()) fill(holding, LIMITS.taskBytes / 16);
  expect(LIMITS.taskBytes / 16).toBeLessThan(LIMITS.partitionTaskBytes);
  expect(areFull([holdings.get(0) as Holding], holdings)).toBe(true);
  expect(LIMITS.taskBytes).toBeLessThanOrEqual(64 * MIB);
});
