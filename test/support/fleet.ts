/** Many objects at once, written into the database as the service stores them. */
import { type Db, type Document, ObjectId } from 'mongodb';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';

export interface Fleet {
  /** The `_id`s of the objects, in the order of their numbers. */
  readonly ids: readonly ObjectId[];
  readonly group: ObjectId;
}

const BATCH = 5_000;

/** Stores objects `device-0`, `device-1`, … of the first administrator. */
export async function storeFleet(db: Db, size: number, fields: (nth: number) => Document): Promise<Fleet> {
  const [owner, model] = await Promise.all([
    db.collection('users').findOne({}),
    db.collection('models').findOne({ _builtin: true }),
  ]);
  const { _id: user, group, branch } = owner as Document;
  const ids = Array.from({ length: size }, () => new ObjectId());
  const objects = ids.map((_id, nth) => ({
    _id,
    id: `device-${nth}`,
    name: `Device ${nth}`,
    model: model?._id,
    status: '',
    active: true,
    config: {},
    access: [],
    owner: user,
    group,
    branch,
    time: Date.now(),
    ...fields(nth),
  }));
  await store(db, 'objects', objects);
  return { ids, group };
}

/** Stores a packet of each object, with defaults for missing fields. */
export async function storePackets(db: Db, { ids, group }: Fleet, packetOf: (nth: number) => Document): Promise<void> {
  const stampUs = Date.now() * 1_000;
  const packets = ids.map((_oid, nth) => {
    const { time = Date.now(), online = true, ...parameters } = packetOf(nth);
    const source = { _oid, id: `device-${nth}`, _gid: group };
    const _id = toPacketKey(new ObjectId().toHexString(), _oid);
    return { _id, _ts: stampUs + nth, time, online, ...source, ...parameters };
  });
  await store(db, 'packets', packets);
}

async function store(db: Db, collection: string, documents: readonly Document[]): Promise<void> {
  for (let from = 0; from < documents.length; from += BATCH) {
    await db.collection(collection).insertMany(documents.slice(from, from + BATCH), { ordered: false });
  }
}

/** Instances renew their leases by the clock: how often depends on how long a test takes. */
const LEASES = 'partitions';

/**
 * The number of commands on this database since its creation, without those of leases; other test files use other databases of the
 * same mongod.
 */
export async function countCommands(db: Db): Promise<number> {
  const { totals } = await db.admin().command({ top: 1 });
  return Object.entries<TopOfCollection>(totals)
    .filter(([name]) => name.startsWith(`${db.databaseName}.`) && name !== `${db.databaseName}.${LEASES}`)
    .reduce((sum, [, { commands, queries, getmore }]) => sum + commands.count + queries.count + getmore.count, 0);
}

type TopOfCollection = Record<'commands' | 'queries' | 'getmore', { count: number }>;
