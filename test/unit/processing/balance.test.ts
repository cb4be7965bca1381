/** Who takes and gives partitions: whatever happens, all of them are owned soon, and their numbers differ by at most one. */
import { describe, expect, test } from '@jest/globals';
import { findBalance } from '../../../src/processing/balance.js';
import type { Membership } from '../../../src/processing/partitions.js';

const COUNT = 16;
/** The owner of each partition; null for one that is free. */
type Owners = (string | null)[];

const membershipOf = (instances: readonly string[], owners: Owners): Membership => ({
  instances,
  partitions: owners.map((owner, index) => ({
    index,
    owner,
    epoch: 1,
    position: '',
    rest: null,
    tenants: [],
    commits: 0,
    lastNumber: 0,
    isFree: owner === null,
  })),
});

/** Each instance does what it has to, in turn or all from what they saw at first. */
function round(instances: readonly string[], owners: Owners, isInTurn: boolean): void {
  const seen = membershipOf(instances, owners);
  for (const instance of instances) {
    const { take, give } = findBalance(instance, isInTurn ? membershipOf(instances, owners) : seen);
    const held = owners.flatMap((owner, index) => (owner === instance ? [index] : []));
    for (const index of give > 0 ? held.slice(-give) : []) owners[index] = null;
    // Somebody else may have been quicker.
    for (const index of take) owners[index] ??= instance;
  }
}

const countsOf = (instances: readonly string[], owners: Owners): number[] =>
  instances.map((instance) => owners.filter((owner) => owner === instance).length);

function settle(instances: readonly string[], owners: Owners, isInTurn: boolean): number {
  for (let rounds = 0; rounds < 20; rounds++) {
    const before = owners.join();
    round(instances, owners, isInTurn);
    if (owners.join() === before) return rounds;
  }
  throw new Error(`not settled: ${owners.join()}`);
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `instance-${index}`);

describe.each([true, false])('instances that act %s', (isInTurn) => {
  test.each([1, 2, 3, 5, 7, 15, 16])('share free partitions among %i', (count) => {
    const instances: string[] = names(count);
    const owners: Owners = Array(COUNT).fill(null);
    settle(instances, owners, isInTurn);
    const counts = countsOf(instances, owners);
    expect(owners).not.toContain(null);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });

  test('share anew when instances join and leave', () => {
    const owners: Owners = Array(COUNT).fill(null);
    for (const count of [1, 2, 4, 3, 9, 2, 1]) {
      const instances = names(count);
      // Those of instances that left are free when their leases are over.
      for (const [index, owner] of owners.entries()) {
        if (owner !== null && !instances.includes(owner)) owners[index] = null;
      }
      settle(instances, owners, isInTurn);
      const counts = countsOf(instances, owners);
      expect(owners).not.toContain(null);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }
  });
});

test('takes at most one each where there are more instances than partitions', () => {
  const instances: string[] = names(20);
  const owners: Owners = Array(COUNT).fill(null);
  settle(instances, owners, true);
  const counts = countsOf(instances, owners);
  expect(owners).not.toContain(null);
  expect(Math.max(...counts)).toBe(1);
});

test('leaves partitions alone whose dead owner still has its lease', () => {
  const owners: Owners = [...Array(8).fill('instance-0'), ...Array(8).fill('dead')];
  expect(findBalance('instance-0', membershipOf(['instance-0'], owners))).toEqual({ take: [], give: 0 });
});

test('gives nothing back where the shares are equal but for one', () => {
  const owners: Owners = [...Array(6).fill('a'), ...Array(5).fill('b'), ...Array(5).fill('c')];
  for (const instance of ['a', 'b', 'c']) {
    expect(findBalance(instance, membershipOf(['a', 'b', 'c'], owners))).toEqual({ take: [], give: 0 });
  }
});
