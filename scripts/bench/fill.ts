// Fills the databases of the measured servers with the same objects and packets, in the stored form of the service. Uses the
// driver, because filling through the API would warm the service up.
import { hash } from '@node-rs/argon2';
import { type Db, type Document, MongoClient } from 'mongodb';
import { DEFAULT_MODEL_ID, ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { builtInStore } from '../../src/core/stores.js';
import { hashKey } from '../../src/devices/sources/source-store.js';
import { type Packet, toPacket } from '../../src/packets/packet.js';
import { PACKET_LAYOUT } from '../../src/packets/store/query.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { toDocument } from '../../src/platform/mongo/schema/mapping.js';
import {
  BEGIN_MS,
  databaseName,
  databaseUri,
  LOGIN,
  newObject,
  newPacket,
  objectId,
  placeOf,
  type Size,
  SOURCE,
  STEP_MS,
} from './data.js';

const OWNER_ID = '000000000000000000000002';
const BATCH = 10_000;

const packetId = (nth: number): string => `66000000${nth.toString(16).padStart(16, '0')}`;

/** An object as the service stores it. */
export function storedObject(nth: number): Document {
  const { id, name, ...rest } = newObject(`truck-${nth}`);
  const model = DEFAULT_MODEL_ID;
  const common = { owner: OWNER_ID, group: ROOT_GROUP_ID, branch: [ROOT_GROUP_ID], access: [], time: BEGIN_MS };
  const entity = { _id: objectId(nth), id, name, model, models: { id: model }, status: '', active: true, ...rest };
  return toDocument(builtInStore('objects'), { ...entity, ...common });
}

function storedSource(): Document {
  const common = { owner: OWNER_ID, group: ROOT_GROUP_ID, branch: [ROOT_GROUP_ID], access: [], time: BEGIN_MS };
  const entity = {
    _id: objectId(0),
    id: SOURCE.id,
    name: SOURCE.id,
    kind: 'traccar',
    model: DEFAULT_MODEL_ID,
    ...common,
  };
  return { ...toDocument(builtInStore('sources'), entity), _key: hashKey(SOURCE.key) };
}

function packetOf(nth: number, at: number, number: number): Packet {
  const { time, ...values } = newPacket(BEGIN_MS + at * STEP_MS);
  const parameters = { ...values, ...placeOf(nth) };
  const source = { objectId: objectId(nth), ownId: `truck-${nth}`, groupId: ROOT_GROUP_ID };
  const message = { id: null, timeMs: time, online: true, parameters };
  return toPacket(message, packetId(number), source, time * 1_000 + 250);
}

const historyOf = ({ longHistories, longPackets, histories, packets }: Size, nth: number): number =>
  nth < longHistories ? longPackets : nth < longHistories + histories ? packets : 0;

/** Fills three databases: for the service, the usual server and the floor. */
export async function fill(uri: string, names: readonly string[], size: Size): Promise<void> {
  const [ours, ...others] = names as [string, ...string[]];
  // The service creates its collections and indexes itself.
  const { client } = await connectDatabase(databaseUri(uri, ours));
  const loader = await new MongoClient(uri, { writeConcern: { w: 1 } }).connect();
  try {
    await client.db(databaseName(uri, ours)).collection('sources').insertOne(storedSource());
    const databases = names.map((name) => loader.db(databaseName(uri, name)));
    for (const name of others) await prepare(loader.db(databaseName(uri, name)));
    const latest = await fillPackets(databases, size);
    const objects = Array.from({ length: size.objects }, (_, nth) => storedObject(nth));
    const withState = objects.map((object, nth) => ({ ...object, ...(latest[nth] && { state: latest[nth] }) }));
    await Promise.all(
      databases.map((db, at) =>
        db.collection('objects').insertMany(at === 0 ? objects : withState, { ordered: false }),
      ),
    );
  } finally {
    await Promise.all([client.close(), loader.close()]);
  }
}

// The other two servers need a user and the indexes of their queries.
async function prepare(db: Db): Promise<void> {
  const user = { login: LOGIN.login, password: await hash(LOGIN.password), group: ROOT_GROUP_ID };
  await db.collection('users').insertOne(user);
  await db.collection('objects').createIndexes([{ key: { branch: 1, _id: 1 } }, { key: { id: 1 }, unique: true }]);
  await db.collection('packets').createIndexes([{ key: { _oid: 1, time: 1, _ts: 1 } }]);
}

/**
 * The packets of all objects in the order in which a fleet sends them: interleaved, objects with more packets more often. The packets
 * of one object are then scattered in the database, as in real ones.
 */
function* interleaved(size: Size): Generator<[nth: number, at: number]> {
  const steps = Math.max(size.longPackets, size.packets);
  for (let step = 0; step < steps; step++) {
    for (let nth = 0; historyOf(size, nth) > 0; nth++) {
      const due = (done: number): number => Math.floor((done * historyOf(size, nth)) / steps);
      for (let at = due(step); at < due(step + 1); at++) yield [nth, at];
    }
  }
}

async function fillPackets(databases: readonly Db[], size: Size): Promise<Document[]> {
  const latest: Document[] = [];
  let number = 0;
  let batch = [] as Document[];
  const flush = async (): Promise<void> => {
    const keyed = batch.map((packet) => ({ ...packet, _id: toPacketKey(String(packet._id), packet._oid) }));
    const write = (db: Db, at: number) =>
      db.collection<Document>('packets').insertMany((at === 0 ? keyed : batch) as Document[], { ordered: false });
    await Promise.all(databases.map(write));
    batch = [];
  };
  for (const [nth, at] of interleaved(size)) {
    latest[nth] = toDocument(PACKET_LAYOUT, packetOf(nth, at, number++));
    batch.push(latest[nth] as Document);
    if (batch.length === BATCH) await flush();
  }
  if (batch.length > 0) await flush();
  return latest;
}
