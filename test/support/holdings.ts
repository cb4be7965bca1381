/** Partitions and tasks for tests of the engine without a database. */
import { createHolding, type Holding, type PlannedTask } from '../../src/processing/holding.js';
import type { Processor } from '../../src/processing/processor.js';

export const MIB = 1_024 ** 2;

/** The n-th position. */
export const positionOf = (n: number): string => {
  const bytes = Buffer.alloc(9);
  bytes.writeUInt32BE(n, 5);
  return bytes.toString('base64url');
};

/** Partitions whose leases do not expire. */
export function holdAll(...indexes: readonly number[]): Map<number, Holding> {
  const stored = { owner: 'a', epoch: 1, position: positionOf(0), commits: 0, lastNumber: 0, isFree: false };
  const holdings = indexes.map((index) => createHolding({ index, ...stored }));
  for (const holding of holdings) holding.heldUntilMs = Number.POSITIVE_INFINITY;
  return new Map(holdings.map((holding) => [holding.owned.index, holding]));
}

export const planned = (partition: number, n: number | null, bytes = 1): PlannedTask => ({
  processor: 0,
  task: { partition, position: n === null ? null : positionOf(n), bytes },
});

/** A processor whose outputs are the positions of its tasks. */
export const processor: Processor = {
  name: 'positions',
  plan: () => [],
  prepare: (_hold, tasks, nextNumber) => ({
    writes: [
      {
        collection: 'outputs',
        operations: tasks.map(({ partition, position }) => ({
          insertOne: { document: { partition, position, number: nextNumber() } },
        })),
      },
    ],
    committed: () => undefined,
  }),
  describe: ({ position }) => ({ position }),
  acquire: () => undefined,
  leave: async () => undefined,
  async *refill() {},
};
