/** Ends the leases of a dead instance, as time does: a test need neither wait for that, nor shorten leases that a busy machine then loses. */
import type { Db } from 'mongodb';

/** Those of all partitions, and of all instances that process them. */
export async function endPartitionLeases(db: Db): Promise<void> {
  for (const leases of ['partitions', 'processors'])
    await db.collection(leases).updateMany({}, { $set: { until: new Date(0) } });
}

/** That of work which one instance does at a time. */
export async function endLease(db: Db, name: 'removals' | 'schema' | 'packing'): Promise<void> {
  const leases = db.collection<{ _id: string }>('installation');
  await leases.updateOne({ _id: `lease: ${name}` }, { $set: { until: new Date(0) } });
}
