/** Work that one instance at a time does: a lease in the database, by the database's clock, renewed while it is held. */
import { randomUUID } from 'node:crypto';
import type { Database } from './connect.js';
import { translated } from './documents.js';

export interface Lease {
  /** Aborted when the lease may be another's: what goes on after that may go on twice. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

type LeaseDocument = { _id: string; holder: string | null; until: Date };

/** The lease of this name, or null while somebody else holds it. Whoever is killed with it loses it after `leaseMs`. */
export async function takeLease(database: Database, name: string, leaseMs: number): Promise<Lease | null> {
  const [leases, holder] = [database.db.collection<LeaseDocument>('installation'), randomUUID()];
  const _id = `lease: ${name}`;
  const until = { $add: ['$$NOW', leaseMs] };
  const none = { holder: null, until: new Date(0) };
  await translated(() => leases.updateOne({ _id }, { $setOnInsert: none }, { upsert: true }));
  const free = { _id, $expr: { $lt: ['$until', '$$NOW'] } };
  const { modifiedCount } = await translated(() => leases.updateOne(free, [{ $set: { holder, until } }]));
  if (modifiedCount === 0) return null;
  const lost = new AbortController();
  let heldUntilMs = performance.now() + leaseMs;
  const renew = async (): Promise<void> => {
    const askedMs = performance.now();
    const renewed = await leases.updateOne({ _id, holder }, [{ $set: { until } }]).catch(() => null);
    if (renewed?.matchedCount === 1) heldUntilMs = askedMs + leaseMs;
    if (renewed?.matchedCount === 0 || performance.now() > heldUntilMs) lost.abort();
  };
  const timer = setInterval(() => void renew(), leaseMs / 3).unref();
  return {
    lost: lost.signal,
    async release() {
      clearInterval(timer);
      await translated(() => leases.updateOne({ _id, holder }, { $set: none }));
    },
  };
}
