/** Keeps the leases of an instance: renews them, takes partitions that are free, and gives some back when an instance joins. */

import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findBalance } from './balance.js';
import type { Commits } from './commit.js';
import { createHolding, type Holding } from './holding.js';
import {
  type Done,
  type Membership,
  type Renewal,
  releasePartitions,
  removeInstance,
  renewPartitions,
  takePartition,
} from './partitions.js';

export interface LeaseOptions {
  readonly database: Database;
  readonly owner: string;
  /** Database sessions of this instance that may hold open transactions. */
  readonly sessions: Commits['sessions'];
  readonly holdings: Map<number, Holding>;
  /** How far a partition is done; null while something of it is being committed. */
  readonly findDone: (holding: Holding) => Done | null;
  readonly onTaken: (taken: readonly Holding[]) => void;
  readonly onLost: (holding: Holding) => void;
  /** Called after each renewal: commits can continue. */
  readonly onRenewed: () => void;
  /** Resolves when no work of these partitions is in progress. */
  readonly leave: (left: readonly Holding[]) => Promise<void>;
  readonly log: { warn(details: object, message: string): void };
}

export interface Leases {
  /** Releases all partitions. */
  stop(): Promise<void>;
}

export function startLeases(options: LeaseOptions): Leases {
  const stopping = new AbortController();
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await tick(options, stopping.signal);
      } catch (error) {
        options.log.warn({ err: error }, 'failed to renew leases; retrying');
      }
      await clock.wait(LIMITS.partitionTickMs, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
      try {
        await handOver(options, options.holdings.size);
        await removeInstance(options.database, options.owner);
      } catch (error) {
        options.log.warn({ err: error }, 'failed to release partitions; their leases expire');
      }
    },
  };
}

const toRenewal = ({ owned, epoch, commits }: Holding, done: Done | null): Renewal => ({
  index: owned.index,
  epoch,
  commits,
  done,
});

async function tick(options: LeaseOptions, signal: AbortSignal): Promise<void> {
  const { database, owner, holdings } = options;
  const askedMs = clock.steadyMs();
  const held = [...holdings.values()];
  const renewals = held.map((holding) => toRenewal(holding, options.findDone(holding)));
  const renewed = { renewals, sessions: options.sessions(), leaseMs: LIMITS.partitionLeaseMs };
  const membership = await renewPartitions(database, owner, renewed);
  for (const holding of held) noteRenewed(options, membership, { holding, askedMs });
  options.onRenewed();
  const { take, give } = findBalance(owner, membership);
  if (give > 0) await handOver(options, give);
  if (take.length > 0 && !signal.aborted) await takeFree(options, take);
}

function noteRenewed(
  { owner, holdings, onLost }: LeaseOptions,
  { partitions }: Membership,
  { holding, askedMs }: { holding: Holding; askedMs: number },
): void {
  const { index } = holding.owned;
  if (holdings.get(index) !== holding) return;
  const stored = partitions.find((one) => one.index === index);
  if (stored?.owner !== owner || stored.epoch !== holding.epoch) {
    onLost(holding);
    return;
  }
  holding.heldUntilMs = askedMs + LIMITS.partitionLeaseMs - LIMITS.partitionMarginMs;
}

async function takeFree({ database, owner, holdings, onTaken }: LeaseOptions, take: readonly number[]): Promise<void> {
  const askedMs = clock.steadyMs();
  const leaseMs = LIMITS.partitionLeaseMs;
  const asked = take.map((index) => takePartition(database, owner, { index, leaseMs }));
  const found = await Promise.allSettled(asked);
  const stored = found.flatMap((one) => (one.status === 'fulfilled' && one.value !== null ? [one.value] : []));
  const taken = stored.map(createHolding);
  for (const holding of taken) {
    holding.heldUntilMs = askedMs + leaseMs - LIMITS.partitionMarginMs;
    holdings.set(holding.owned.index, holding);
  }
  if (taken.length > 0) onTaken(taken);
  const failed = found.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

async function handOver(options: LeaseOptions, count: number): Promise<void> {
  const given = count > 0 ? [...options.holdings.values()].slice(-count) : [];
  // Before they leave the feed: this instance processes no later change of them.
  const renewals = given.map((holding) => toRenewal(holding, options.findDone(holding)));
  await options.leave(given);
  await releasePartitions(options.database, options.owner, renewals);
}
