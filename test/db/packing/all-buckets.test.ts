/** All packed history of an installation: checked, and turned into rows again. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import {
  type CheckedHistory,
  checkBuckets,
  type DamagedHistory,
  unpackAll,
} from '../../../src/packets/store/all-buckets.js';
import { storePending } from '../../../src/packets/store/packing.js';
import { createClient, type Database, databaseOf } from '../../../src/platform/mongo/driver/client.js';
import { prepareCollections } from '../../../src/platform/mongo/schema/collections.js';
import { testUri } from '../../support/fixture.js';
import { packHistory, readStoredRows, HISTORY_START_MS as START_MS, storeHistory } from '../../support/packed.js';

let database: Database;

beforeAll(async () => {
  database = databaseOf(await createClient(testUri()).connect());
  await prepareCollections(database.db);
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

const buckets = () => database.db.collection('packedPackets');

const createHistory = (count: number): Promise<string> => storeHistory(database, count, (nth) => ({ speed: nth / 10 }));

async function rowsOf(objectId: string): Promise<string[]> {
  return (await readStoredRows(database, objectId)).map(({ row }) => row.toString('hex'));
}

async function check(): Promise<CheckedHistory & { damaged: DamagedHistory[] }> {
  const damaged: DamagedHistory[] = [];
  return { ...(await checkBuckets(database, (one) => damaged.push(one))), damaged };
}

async function unpackEverything(): Promise<CheckedHistory & { damaged: DamagedHistory[] }> {
  const damaged: DamagedHistory[] = [];
  const fence = async (): Promise<void> => undefined;
  return { ...(await unpackAll(database, { fence, onDamaged: (one) => damaged.push(one) })), damaged };
}

test('names the interval that is damaged, turns all others into rows, and removes what does not count', async () => {
  const objects = [await createHistory(301), await createHistory(301)] as const;
  const before = await Promise.all(objects.map(rowsOf));
  for (const objectId of objects) await packHistory(database, objectId, { bucketPackets: 100 });
  expect(await check()).toEqual({ buckets: 6, packets: 600, damaged: [] });
  const third = await createHistory(200);
  await storePending(database, {
    objectId: third,
    rows: (await readStoredRows(database, third)).slice(0, 150),
    replaces: null,
  });
  expect(await check()).toMatchObject({ buckets: 6, packets: 600 });

  const second = { _oid: new ObjectId(objects[1]), 'from.time': START_MS + 100_000 };
  const bucket = await buckets().findOne(second);
  await buckets().updateOne(second, { $unset: { 'columns.speed': 1 } });
  const reason = expect.stringMatching(/2026-01-01T00:01:40.000Z to 2026-01-01T00:03:19.000Z is damaged.*speed/);
  const damaged = [{ objectId: objects[1], reason }];
  expect(await check()).toEqual({ buckets: 6, packets: 500, damaged });
  expect(await unpackEverything()).toEqual({ buckets: 5, packets: 500, damaged });
  expect(await buckets().countDocuments()).toBe(1);

  await buckets().replaceOne(second, bucket as object);
  expect(await unpackEverything()).toEqual({ buckets: 1, packets: 100, damaged: [] });
  expect(await Promise.all(objects.map(rowsOf))).toEqual(before);
  expect(await buckets().countDocuments()).toBe(0);
});
