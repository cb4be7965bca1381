/** Which instance has the commands of an object behind a source: one that stood still has them no longer. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { keepRoute, leaveRoute, recordRoute, takeRoute } from '../../src/downlinks/route-store.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { testUri } from '../support/fixture.js';

let database: Database;

beforeAll(async () => {
  database = await connectDatabase(testUri());
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

test('belongs to the next instance when the time of the first is over', async () => {
  const objectId = new ObjectId().toHexString();
  const sourceId = new ObjectId().toHexString();
  const startMs = 1_000_000;
  await recordRoute(database, { objectId, sourceId, address: 'a' }, startMs);
  const first = await takeRoute(database, objectId, startMs);
  expect(first).toMatchObject({ objectId, sourceId, address: 'a' });
  if (first === null) throw new Error('not taken');
  expect(await takeRoute(database, objectId, startMs + 1)).toBeNull();
  expect(await keepRoute(database, first, startMs + 1)).toBe(true);
  const laterMs = startMs + LIMITS.downlinkLeaseMs + 2;
  const second = await takeRoute(database, objectId, laterMs);
  if (second === null) throw new Error('not taken over');
  expect(await keepRoute(database, first, laterMs)).toBe(false);
  // What the first one still does frees nothing.
  await leaveRoute(database, first, null);
  expect(await takeRoute(database, objectId, laterMs + 1)).toBeNull();
  await leaveRoute(database, second, null);
  expect(await takeRoute(database, objectId, laterMs + 2)).not.toBeNull();
});
