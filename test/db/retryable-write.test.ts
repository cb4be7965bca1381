/** Groups of writes whose answer is lost: sent again, executed once, and acknowledged to every sender. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Binary, type Document, ObjectId } from 'mongodb';
import { scopeOf } from '../../src/core/access.js';
import type { Entity } from '../../src/core/entity.js';
import { builtInStore } from '../../src/core/stores.js';
import { changeEntity, createEntity, newId } from '../../src/entities/write.js';
import { createIngest } from '../../src/packets/ingest.js';
import { createStampClock } from '../../src/packets/packet.js';
import { packetIdIn } from '../../src/platform/mongo/bson/packet-key.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';
import { type Fate, type Line, startLine } from '../support/lossy-connection.js';

const service = useService();
const OBJECTS = builtInStore('objects');
const GROUP = newId();
const WRITES = [Buffer.from('insert\0'), Buffer.from('bulkWrite\0')];
let line: Line;
let database: Database;
/** How many answers to a write are still to be lost, and how many were. */
let toLose = 0;
let lost = 0;

beforeAll(async () => {
  const decide = (asked: Buffer): Fate => {
    if (toLose === 0 || !WRITES.some((write) => asked.includes(write))) return 'passes';
    toLose--;
    lost++;
    return 'lost';
  };
  line = await startLine(service.mongodbUri, decide);
  database = databaseOf(line.client);
});

afterAll(() => line.stop());

beforeEach(() => {
  [toLose, lost] = [0, 0];
});

const newEntity = (id: string, note = ''): Entity => ({
  _id: newId(),
  id,
  name: id,
  note,
  owner: newId(),
  group: GROUP,
  branch: [GROUP],
  access: [],
  time: 1,
});

const countStored = (filter: Document): Promise<number> =>
  service.client.db().collection('objects').countDocuments(filter);

const createAll = (entities: readonly Entity[]): Promise<string[]> =>
  Promise.all(
    entities.map((entity) =>
      createEntity(database, OBJECTS, entity).then(
        ({ id }) => `stored ${id}`,
        (error) => `${error.status} ${error.help}`,
      ),
    ),
  );

test('stores packets once and acknowledges them', async () => {
  const source = { objectId: newId(), ownId: 'own', groupId: newId() };
  const messages = Array.from({ length: 20 }, (_, n) => ({
    id: null,
    timeMs: n,
    online: true,
    parameters: { n },
  }));
  toLose = 2;
  const { packets } = await createIngest(database, createStampClock(Date.now))(source, messages);
  expect(lost).toBe(2);
  const stored = await service.client
    .db()
    .collection('packets')
    .find({ _oid: new ObjectId(source.objectId) })
    .sort({ time: 1 })
    .toArray();
  expect(stored.map(({ _id, n }) => [packetIdIn(_id as unknown as Binary), n])).toEqual(
    packets.map(({ _id }, n) => [_id, n]),
  );
});

test('stores entities once, and refuses duplicates of unique values', async () => {
  const entities = ['a', 'b', 'a', 'c'].map((id) => newEntity(`lost-${id}`));
  toLose = 2;
  expect((await createAll(entities)).sort()).toEqual([
    '409 id: already taken',
    'stored lost-a',
    'stored lost-b',
    'stored lost-c',
  ]);
  expect(lost).toBe(2);
  expect(await countStored({ id: /^lost-/ })).toBe(3);
});

test('splits inserts that exceed one command', async () => {
  const entities = Array.from({ length: 20 }, (_, nth) => newEntity(`large-${nth}`, 'n'.repeat(900_000)));
  expect(await createAll(entities)).toEqual(entities.map(({ id }) => `stored ${id}`));
  expect(await countStored({ id: /^large-/ })).toBe(20);
});

test('changes entities once', async () => {
  const entities = Array.from({ length: 10 }, (_, nth) => newEntity(`changed-${nth}`));
  await createAll(entities);
  const scope = scopeOf({ userId: newId(), groupId: GROUP });
  toLose = 3;
  const changed = await Promise.all(
    entities.map(({ _id }, nth) =>
      changeEntity(database, OBJECTS, scope, _id, { patch: { status: `s-${nth}` }, nowMs: 7 }),
    ),
  );
  expect(lost).toBe(3);
  // `_at` grows with every change: two would show.
  const expected = entities.map((_, nth) => [`changed-${nth}`, `s-${nth}`, 7]);
  expect(changed).toEqual(entities.map(({ _id }) => _id));
  const documents = await service.client
    .db()
    .collection('objects')
    .find({ id: /^changed-/ })
    .sort({ _id: 1 })
    .toArray();
  expect(documents.map(({ id, status, _at }) => [id, status, _at])).toEqual(expected);
});

test('splits changes that exceed one command', async () => {
  const entities = Array.from({ length: 20 }, (_, nth) => newEntity(`grown-${nth}`));
  await createAll(entities);
  const scope = scopeOf({ userId: newId(), groupId: GROUP });
  const note = 'n'.repeat(900_000);
  await Promise.all(
    entities.map(({ _id }) => changeEntity(database, OBJECTS, scope, _id, { patch: { note }, nowMs: 7 })),
  );
  expect(await countStored({ id: /^grown-/, note })).toBe(20);
});
