/** Overruns a small oplog, as a busy database does in a longer time. */
import type { MongoClient, Timestamp } from 'mongodb';
import { until } from './until.js';

/** Writes until the oplog, of a few MB, no longer contains any earlier change; waits after each write for those that keep up. */
export async function overrunOplog(client: MongoClient, keptUp = async (): Promise<void> => undefined): Promise<void> {
  const oplog = client.db('local').collection<{ _id: never; ts: Timestamp }>('oplog.rs');
  const { operationTime } = await client.db('admin').command({ ping: 1 });
  const filler = client.db('elsewhere').collection('filler');
  const text = 'x'.repeat(500_000);
  const isForgotten = async () => {
    await filler.insertMany(Array.from({ length: 4 }, () => ({ text })));
    await keptUp();
    const oldest = await oplog.findOne({}, { sort: { $natural: 1 } });
    return oldest?.ts.greaterThan(operationTime);
  };
  await until(isForgotten, 'the oplog to be overrun', 60_000, 20);
}
