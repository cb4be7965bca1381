/** Partitions and tasks for tests of the engine without a database. */
import {
  createHolding,
  type Holding,
  type PlannedTask,
  queueFor,
  type TenantQueue,
} from '../../src/processing/holding.js';
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
  const place = { position: positionOf(0), rest: null, tenants: [] };
  const stored = { ...place, owner: 'a', epoch: 1, commits: 0, lastNumber: 0, isFree: false };
  const holdings = indexes.map((index) => createHolding({ index, ...stored }));
  for (const holding of holdings) holding.heldUntilMs = Number.POSITIVE_INFINITY;
  return new Map(holdings.map((holding) => [holding.owned.index, holding]));
}

export const TENANT = 'tenant';

export const planned = (partition: number, n: number | null, bytes = 1, tenant = TENANT): PlannedTask => ({
  processor: 0,
  task: { partition, tenant, position: n === null ? null : positionOf(n), bytes },
});

/** The queue of a tenant in a partition that is held. */
export const queueOf = (holdings: ReadonlyMap<number, Holding>, index: number, tenant = TENANT): TenantQueue =>
  queueFor(holdings.get(index) as Holding, tenant, positionOf(0));

/** A processor whose outputs are the positions of its tasks. */
export const processor: Processor = {
  name: 'positions',
  plan: () => [],
  prepare: (_hold, tasks, nextNumber) => ({
    writes: [
      {
        collection: 'outputs',
        operations: tasks.map(({ partition, tenant, position }) => ({
          insertOne: { document: { partition, tenant, position, number: nextNumber() } },
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
