/** Partitions that no instance has owned yet: what is acknowledged meanwhile reaches the receivers from their first owner. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const OBJECTS = 48;
const env = { WEBHOOK_NETWORKS: '127.0.0.0/8' };
const uri = testUri();
const client = new MongoClient(uri);
const receiver = useReceiver();
const services: TestService[] = [];

const partitions = () => client.db().collection('partitions').find().toArray();

beforeAll(async () => {
  // An instance that has joined, and dies before it takes its share of the partitions.
  const processors = client.db().collection<{ _id: string; until: Date }>('processors');
  await processors.insertOne({ _id: 'dying', until: new Date(Date.now() + 3_600_000) });
  for (let count = 0; count < 2; count++) services.push(await startTestService({ env }, uri));
});
afterAll(async () => {
  for (const { client: own, service } of services) {
    await service.stop();
    await own.close();
  }
  await client.db().dropDatabase();
  await client.close();
});

test('sends packets that were acknowledged before their partition had its first owner', async () => {
  const [first, second] = services as [TestService, TestService];
  const ids = Array.from({ length: OBJECTS }, (_, at) => `unowned-${at}`);
  for (const id of ids) await first.admin('POST', 'objects', { id, name: id });
  const handler = { url: receiver.url, objects: ids, events: ['object-packet'] };
  expect((await first.admin('POST', 'handlers', handler)).status).toBe(200);
  for (const id of ids) await second.admin('POST', `objects/${id}/packets`, { key: id });
  expect((await partitions()).filter(({ owner }) => owner === null).length).toBeGreaterThan(0);
  await client.db().collection<{ _id: string }>('processors').deleteOne({ _id: 'dying' });
  await until(async () => (await partitions()).every(({ owner }) => owner !== null), 'all partitions to have owners');
  await receiver.got(OBJECTS);
  expect(receiver.received.map(({ body }) => body.data.key).sort()).toEqual([...ids].sort());
});
