/** Many objects at once, written straight into the database as the service stores them. */
import { type Db, type Document, ObjectId } from 'mongodb';

export interface Fleet {
  /** The `_id`s of the objects, in the order of their numbers. */
  readonly ids: readonly ObjectId[];
}

const BATCH = 5_000;

/**
 * Stores objects `device-0`, `device-1`, … of the first administrator, and `packetsOf(nth)` of each: what is not given of a
 * packet is filled in. Packets lie interleaved, as those of a fleet do: the first of every object, then the second.
 */
export async function storeFleet(
  db: Db,
  size: number,
  fields: (nth: number) => Document,
  packetsOf: (nth: number) => readonly Document[] = () => [],
): Promise<Fleet> {
  const [owner, model] = await Promise.all([
    db.collection('users').findOne({}),
    db.collection('models').findOne({ _builtin: true }),
  ]);
  const { _id: user, group, branch } = owner as Document;
  const ids = Array.from({ length: size }, () => new ObjectId());
  const objects = ids.map((_id, nth) => ({
    ...{ _id, id: `device-${nth}`, name: `Device ${nth}`, model: model?._id, status: '', active: true, config: {} },
    ...{ access: [], owner: user, group, branch, time: Date.now() },
    ...fields(nth),
  }));
  await store(db, 'objects', objects);
  const packets = ids.map((_, nth) => packetsOf(nth));
  const rounds = packets.reduce((most, { length }) => Math.max(most, length), 0);
  let stampUs = (Date.now() - rounds) * 1_000;
  for (let round = 0; round < rounds; round++) {
    const stored = packets.flatMap((of, nth) => {
      const packet = of[round];
      if (packet === undefined) return [];
      const { time = Date.now(), online = true, ...parameters } = packet;
      const source = { _oid: ids[nth], id: `device-${nth}`, _gid: group };
      return [{ _id: new ObjectId(), _ts: stampUs++, time, online, ...source, ...parameters }];
    });
    await store(db, 'packets', stored);
  }
  return { ids };
}

async function store(db: Db, collection: string, documents: readonly Document[]): Promise<void> {
  for (let from = 0; from < documents.length; from += BATCH) {
    await db.collection(collection).insertMany(documents.slice(from, from + BATCH), { ordered: false });
  }
}

/** How many questions and writes the database was asked for since it was started. */
export async function countCommands(db: Db): Promise<number> {
  const { opcounters } = await db.admin().serverStatus();
  return opcounters.command + opcounters.query + opcounters.getmore;
}
