/** Leases for work of one instance at a time: stored in the database, by the database's clock, renewed while held. */
import type { ClientSession } from 'mongodb';
import { unavailable } from '../../../core/errors.js';
import { clock } from '../../clock.js';
import type { Database } from './client.js';
import { mapDriverErrors } from './errors.js';

export interface Lease {
  /** Aborted when another instance may hold the lease; work must stop then. */
  readonly lost: AbortSignal;
  /** Within a transaction: throws where another instance may hold the lease, and keeps others from it until the transaction ends. */
  fence(session: ClientSession): Promise<void>;
  release(): Promise<void>;
}

type LeaseDocument = { _id: string; holder: string | null; until: Date; fenced?: Date };

/** Returns null while another instance holds the lease. The lease of a killed instance expires after `leaseMs`. */
export async function acquireLease(database: Database, name: string, leaseMs: number): Promise<Lease | null> {
  const leases = database.db.collection<LeaseDocument>('installation');
  const holder = clock.randomId();
  const _id = `lease: ${name}`;
  const until = { $add: ['$$NOW', leaseMs] };
  const none = { holder: null, until: new Date(0) };
  await mapDriverErrors(() => leases.updateOne({ _id }, { $setOnInsert: none }, { upsert: true }));
  const free = { _id, $expr: { $lt: ['$until', '$$NOW'] } };
  // From the question on, not from the answer: a process that stands still in between has less of it.
  let heldUntilMs = clock.steadyMs() + leaseMs;
  const { modifiedCount } = await mapDriverErrors(() => leases.updateOne(free, [{ $set: { holder, until } }]));
  if (modifiedCount === 0) return null;
  const lost = new AbortController();
  const renew = async (): Promise<void> => {
    const sentMs = clock.steadyMs();
    const renewed = await leases.updateOne({ _id, holder }, [{ $set: { until } }]).catch(() => null);
    if (renewed?.matchedCount === 1) heldUntilMs = sentMs + leaseMs;
    if (renewed?.matchedCount === 0 || clock.steadyMs() > heldUntilMs) lost.abort();
  };
  const timer = clock.setInterval(() => void renew(), leaseMs / 3).unref();
  return {
    lost: lost.signal,
    async fence(session) {
      const fenced = await leases.updateOne({ _id, holder }, [{ $set: { fenced: '$$NOW' } }], { session });
      if (fenced.matchedCount === 0) throw unavailable(`another instance has the lease ${name}`);
    },
    async release() {
      clock.clearTimer(timer);
      await mapDriverErrors(() => leases.updateOne({ _id, holder }, { $set: none }));
    },
  };
}
