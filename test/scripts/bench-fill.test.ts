/** What the measurements fill a database with has the form of what the service stores. */
import { expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { databaseUri, newObject, newPacket, objectId, sizeOf } from '../../scripts/bench/data.js';
import { fill } from '../../scripts/bench/fill.js';
import { startTestService, testUri } from '../support/fixture.js';

test('fills in documents of the form that the service stores', async () => {
  const uri = testUri();
  await fill(uri, ['ours'], sizeOf(0.01));
  const service = await startTestService({}, databaseUri(uri, 'ours'));
  try {
    await service.admin('POST', 'objects', newObject('made'));
    await service.admin('POST', 'objects/made/packets', newPacket(Date.now()));
    const formOf = (value: object | null) =>
      JSON.stringify(Object.entries(value ?? {}).map(([key, member]) => [key, Object(member).constructor.name]));
    const [objects, packets] = ['objects', 'packets'].map((store) => service.client.db().collection(store));
    const filled = await objects?.findOne({ id: 'truck-0' });
    const made = await objects?.findOne({ id: 'made' });
    expect(formOf(filled ?? null)).toBe(formOf(made ?? null));
    const old = await packets?.findOne({ id: 'truck-0' });
    const fresh = await packets?.findOne({ id: 'made' });
    expect(formOf(old ?? null)).toBe(formOf(fresh ?? null));
    const { body } = await service.admin('GET', `objects/${objectId(0)}`);
    expect(body).toMatchObject({ id: 'truck-0', state: { id: 'truck-0' } });
  } finally {
    await service.stop();
  }
});

test('interleaves the packets of objects, as a fleet sends them', async () => {
  const uri = testUri();
  const size = sizeOf(0.01);
  await fill(uri, ['ours'], size);
  const client = await new MongoClient(databaseUri(uri, 'ours')).connect();
  const stored = await client
    .db()
    .collection('packets')
    .find({}, { sort: { $natural: 1 } })
    .toArray();
  await client.db().dropDatabase();
  await client.close();
  const perObject = new Map<string, number>();
  for (const { id } of stored) perObject.set(id, (perObject.get(id) ?? 0) + 1);
  const { longHistories, longPackets, histories, packets } = size;
  expect([...perObject.values()]).toEqual([
    ...Array(longHistories).fill(longPackets),
    ...Array(histories).fill(packets),
  ]);
  const alone = stored.filter(({ id }, at) => id === stored[at - 1]?.id).length;
  expect(alone / stored.length).toBeLessThan(0.1);
});
