/** Packets that were stored without compression are compressed while the service runs. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { writeBackup } from '../../src/db/backup/backup.js';
import { startCompression } from '../../src/db/compression/compression.js';
import { requestCompression, withdrawCompression } from '../../src/db/compression/state.js';
import { databaseOf } from '../../src/db/driver/client.js';
import { LIMITS } from '../../src/model/limits.js';
import { ADMIN, startSecond, startTestService, type TestService, testUri } from '../support/fixture.js';
import {
  COMPRESSED,
  createUncompressed,
  findCollections,
  findCompression,
  startTraffic,
  waitForStage,
} from '../support/uncompressed.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, {
  compressionCheckMs: 50,
  compressionIdleMs: 50,
  compressionBatch: 100,
  compressionPauseRatio: 0,
});

const NO_INSERTS = { _id: { $exists: false } };
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function start(prepare: (client: MongoClient) => Promise<unknown>): Promise<TestService> {
  const uri = testUri();
  const client = await new MongoClient(uri).connect();
  await prepare(client);
  await client.close();
  const service = await startTestService({ env: { MQTT_PORT: '0' } }, uri);
  endings.push(() => service.stop());
  return service;
}

const startUncompressed = () => start((client) => createUncompressed(client.db()));
const request = ({ client }: TestService) => requestCompression(databaseOf(client));

test('compresses packets while others are stored and removed, on two instances', async () => {
  const service = await startUncompressed();
  const db = service.client.db();
  await db.collection('packets').createIndex({ text: 1 }, { name: 'of the operator', sparse: true });
  const traffic = await startTraffic(service, service.service.mqttUrl, 1_500);
  endings.push(traffic.close);
  const second = await startSecond(service, endings);
  await request(service);
  await until(async () => ((await findCompression(db))?.copied ?? 0) > 0);
  await traffic.removeSome();
  await waitForStage(service.client.db(), 'comparing');
  await traffic.removeSome();
  await waitForStage(service.client.db(), 'done');
  await traffic.stop();
  await traffic.expectKept();
  // It has nothing of before in its memory.
  const third = await startSecond(service, endings);
  for (const { url } of [second, third]) await traffic.expectReplayed(url);
  expect(await findCollections(db)).toEqual({
    ...COMPRESSED,
    kinds: Array(4).fill('zstd'),
    indexes: ['_id_', '_oid_1_time_1__ts_1', 'of the operator'],
  });
}, 120_000);

test('keeps the packets as they were when it is withdrawn', async () => {
  Object.assign(LIMITS, { compressionPauseRatio: 20 });
  endings.push(() => Object.assign(LIMITS, { compressionPauseRatio: 0 }));
  const service = await startUncompressed();
  const traffic = await startTraffic(service, null, 3_000);
  endings.push(traffic.close);
  await request(service);
  await waitForStage(service.client.db(), 'copying');
  expect(await withdrawCompression(databaseOf(service.client))).toBe(true);
  await waitForStage(service.client.db(), 'stopped');
  await traffic.stop();
  await traffic.expectKept();
  const expected = { ...COMPRESSED, kinds: Array(3).fill('snappy') };
  expect({ ...(await findCollections(service.client.db())), kinds: expected.kinds }).toEqual(expected);
  expect(await withdrawCompression(databaseOf(service.client))).toBe(false);
}, 60_000);

test('ends at once where packets are compressed', async () => {
  const service = await start(async () => undefined);
  await request(service);
  await waitForStage(service.client.db(), 'done');
  expect(await findCollections(service.client.db())).toEqual(COMPRESSED);
});

test('refuses a collection with rules of the operator, and says so', async () => {
  const validator = { text: { $ne: 'forbidden' } };
  const service = await start((client) => client.db().createCollection('packets', { validator }));
  await request(service);
  await waitForStage(service.client.db(), 'failed');
  const { problem } = (await findCompression(service.client.db())) ?? {};
  expect(problem).toBe('the collection packets has a validator');
  expect(await findCollections(service.client.db())).toMatchObject({ copies: 0, validator });
});

test('removes copies and the refusal of inserts that nobody needs, and stores packets that waited for that', async () => {
  const service = await startUncompressed();
  const db = service.client.db();
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  await db.createCollection('packets_zstd_lost');
  await db.command({ collMod: 'packets', validator: NO_INSERTS });
  expect((await service.admin('POST', 'objects/car/packets', { n: 1 })).status).toBe(200);
  await until(async () => (await findCollections(db)).copies === 0);
  const { validator } = await findCollections(db);
  expect(validator).toBeUndefined();
  expect(await db.collection('packets').countDocuments()).toBe(1);
});

test('answers 503 with Retry-After when packets are refused for too long', async () => {
  const before = { ...LIMITS };
  Object.assign(LIMITS, { compressionCheckMs: 3_600_000, compressionIdleMs: 3_600_000 });
  endings.push(() => Object.assign(LIMITS, before));
  const service = await startUncompressed();
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  const db = service.client.db();
  await db.command({ collMod: 'packets', validator: NO_INSERTS });
  Object.assign(LIMITS, { databaseAnswerMs: 1_500 });
  const { status, headers } = await service.admin('POST', 'objects/car/packets', { n: 1 });
  expect({ status, retryAfter: Number(headers['retry-after']) }).toEqual({
    status: 503,
    retryAfter: expect.any(Number),
  });
  await db.command({ collMod: 'packets', validator: {} });
  expect(await db.collection('packets').countDocuments()).toBe(0);
}, 20_000);

test('continues an export whose packets are exchanged meanwhile', async () => {
  const service = await startUncompressed();
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  const text = 'x'.repeat(8_000);
  for (let page = 0; page < 4; page++) {
    const packets = Array.from({ length: 1_000 }, (_, at) => ({ time: page * 1_000 + at + 1, text }));
    expect((await service.admin('POST', 'objects/car/packets', packets)).status).toBe(200);
  }
  const headers = { Authorization: `Bearer ${await service.tokenOf(ADMIN.login, ADMIN.password)}` };
  const { body } = await fetch(`${service.url}/api/v1/objects/car/packets?format=ndjson`, { headers });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const pieces = [(await reader.read()).value as Uint8Array];
  await request(service);
  await waitForStage(service.client.db(), 'done');
  for (let next = await reader.read(); !next.done; next = await reader.read()) pieces.push(next.value);
  const lines = Buffer.concat(pieces).toString().trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).time)).toEqual(Array.from({ length: 4_000 }, (_, at) => at + 1));
}, 60_000);

test('needs the role dbAdmin, and changes nothing without it', async () => {
  const uri = testUri();
  const client = await new MongoClient(uri).connect();
  endings.push(
    () => client.close(),
    () => client.db().dropDatabase(),
    () => client.db().command({ dropUser: 'service' }),
  );
  const db = client.db();
  await createUncompressed(db);
  const readWrite = { role: 'readWrite', db: db.databaseName };
  await db.command({ createUser: 'service', pwd: 'a password', roles: [readWrite] });
  const address = new URL(uri);
  Object.assign(address, { username: 'service', password: 'a%20password' });
  address.searchParams.set('authSource', db.databaseName);
  const own = await new MongoClient(address.href).connect();
  endings.push(() => own.close());
  const job = startCompression({ database: databaseOf(own), log: { info: () => undefined, warn: () => undefined } });
  endings.push(() => job.stop());
  await requestCompression(databaseOf(client));
  await waitForStage(db, 'failed');
  expect((await findCompression(db))?.problem).toBe('the user of MONGODB_URI needs the role dbAdmin for it');
  expect(await findCollections(db)).toMatchObject({ kinds: ['snappy', expect.any(String)], copies: 0 });
  await db.command({ grantRolesToUser: 'service', roles: [{ ...readWrite, role: 'dbAdmin' }] });
  await requestCompression(databaseOf(client));
  await waitForStage(db, 'done');
  expect(await findCollections(db)).toMatchObject({ kinds: ['zstd', 'zstd'], copies: 0 });
});

test('leaves copies and the state of the compression out of backups', async () => {
  const client = await new MongoClient(testUri()).connect();
  const folder = await mkdtemp(join(tmpdir(), 'vigil-compression-'));
  endings.push(
    () => client.close(),
    () => client.db().dropDatabase(),
    () => rm(folder, { recursive: true }),
  );
  await client.db().collection('packets').insertOne({ n: 1 });
  await client.db().collection('packets_zstd_1').insertOne({ n: 1 });
  await requestCompression(databaseOf(client));
  const { files } = await writeBackup(client, join(folder, 'backup'), 0);
  expect(files.map(({ collection, documents }) => [collection, documents])).toEqual([
    ['installation', 0],
    ['packets', 1],
  ]);
});
