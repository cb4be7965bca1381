/** Groups of new documents whose answer is lost on the way: asked for again, stored once, and nobody is told otherwise. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { type Database, databaseOf } from '../../src/db/connect.js';
import { createIngest } from '../../src/db/ingest.js';
import { createEntity, newId } from '../../src/db/writes.js';
import type { Entity } from '../../src/model/entity.js';
import { createStampClock } from '../../src/model/packet.js';
import { builtInStore } from '../../src/model/stores.js';
import { useService } from '../fixture.js';

const service = useService();
const OBJECTS = builtInStore('objects');
const INSERT = Buffer.from('insert\0');
let server: Server;
let database: Database;
/** How many answers to an `insert` are still to be lost, and how many were. */
let [toLose, lost] = [0, 0];

/** A line to the database that loses answers: what was asked for reaches the database. */
function join(near: Socket): void {
  const { port, hostname } = new URL(service.mongodbUri);
  const far = connect(Number(port), hostname);
  let isLost = false;
  near.on('data', (asked) => {
    if (toLose > 0 && asked.includes(INSERT)) {
      toLose--;
      isLost = true;
    }
    far.write(asked);
  });
  far.on('data', (answer) => {
    if (!isLost) near.write(answer);
    else {
      lost++;
      near.destroy();
    }
  });
  near.on('error', () => undefined).on('close', () => far.destroy());
  far.on('error', () => undefined).on('close', () => near.destroy());
}

beforeAll(async () => {
  server = createServer(join).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const uri = new URL(service.mongodbUri);
  uri.port = String((server.address() as AddressInfo).port);
  const client = await new MongoClient(uri.href, { writeConcern: { w: 'majority', journal: true } }).connect();
  database = databaseOf(client);
});

afterAll(async () => {
  await database.client.close();
  server.close();
});

beforeEach(() => {
  [toLose, lost] = [0, 0];
});

const newEntity = (id: string, note = ''): Entity => ({
  ...{ _id: newId(), id, name: id, note, owner: newId(), group: newId(), branch: [], access: [], time: 1 },
});

const createAll = (entities: readonly Entity[]): Promise<string[]> =>
  Promise.all(
    entities.map((entity) =>
      createEntity(database, OBJECTS, entity).then(
        ({ id }) => `stored ${id}`,
        (error) => `${error.status} ${error.help}`,
      ),
    ),
  );

test('packets are stored once, and acknowledged', async () => {
  const source = { objectId: newId(), ownId: 'own', groupId: newId() };
  const messages = Array.from({ length: 20 }, (_, n) => ({ id: null, timeMs: n, online: true, parameters: { n } }));
  toLose = 1;
  const { packets } = await createIngest(database, createStampClock(Date.now))(source, messages);
  expect(lost).toBe(1);
  const stored = await service.client
    .db()
    .collection('packets')
    .find({ _oid: new ObjectId(source.objectId) })
    .sort({ time: 1 })
    .toArray();
  expect(stored.map(({ _id, n }) => [String(_id), n])).toEqual(packets.map(({ _id }, n) => [_id, n]));
});

test('entities are stored once, and whoever wants what is taken is refused all the same', async () => {
  const entities = ['a', 'b', 'a', 'c'].map((id) => newEntity(`lost-${id}`));
  toLose = 1;
  expect((await createAll(entities)).sort()).toEqual([
    ...['409 id: already taken', 'stored lost-a', 'stored lost-b', 'stored lost-c'],
  ]);
  expect(lost).toBe(1);
  expect(
    await service.client
      .db()
      .collection('objects')
      .countDocuments({ id: /^lost-/ }),
  ).toBe(3);
});

test('what is more than one command takes is stored in several', async () => {
  const entities = Array.from({ length: 20 }, (_, nth) => newEntity(`large-${nth}`, 'n'.repeat(900_000)));
  expect(await createAll(entities)).toEqual(entities.map(({ id }) => `stored ${id}`));
  expect(
    await service.client
      .db()
      .collection('objects')
      .countDocuments({ id: /^large-/ }),
  ).toBe(20);
});
