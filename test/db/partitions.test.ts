/** Partitions are taken over from an instance that has died, whatever it was doing, and outputs are committed by owners alone. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Binary, MongoClient } from 'mongodb';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { createCommits, FencedError } from '../../src/processing/commit.js';
import { createPartitions, partitionsOf, renewPartitions, takePartition } from '../../src/processing/partitions.js';
import { testUri } from '../support/fixture.js';
import { positionOf } from '../support/holdings.js';

const LEASE_MS = 4_000;
const client = new MongoClient(testUri());
const database = databaseOf(client);

beforeAll(async () => {
  await client.connect();
  await client.db().createCollection('outputs');
});
beforeEach(async () => {
  await partitionsOf(database).deleteMany({});
  await createPartitions(database, { count: 1, position: 'start' });
});
afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

const renew = (owner: string, sessions: readonly Binary[]) =>
  renewPartitions(database, owner, { renewals: [], sessions, leaseMs: LEASE_MS });
async function endLeases(): Promise<void> {
  const over = { $set: { until: new Date(0) } };
  for (const name of ['processors', 'partitions']) await client.db().collection(name).updateMany({}, over);
}
const done = { rest: positionOf(7), tenants: [{ tenant: 'behind', position: positionOf(3) }] };
const advance = { index: 0, epoch: 1, commits: 0, done, lastNumber: 1 };
const writes = [{ collection: 'outputs', operations: [{ insertOne: { document: {} } }] }];

test('takes a partition at once whose owner died within a transaction', async () => {
  const session = client.startSession();
  const { id } = session.id as { id: Binary };
  await takePartition(database, 'dead', { index: 0, leaseMs: LEASE_MS });
  await renew('dead', [id]);
  await endLeases();
  session.startTransaction();
  await partitionsOf(database).updateOne({ _id: 0 }, { $set: { position: 'never' } }, { session });
  const { instances } = await renew('heir', []);
  expect(instances).toEqual(['heir']);
  const taken = await takePartition(database, 'heir', { index: 0, leaseMs: LEASE_MS });
  expect(taken).toMatchObject({ owner: 'heir', epoch: 2, position: 'start' });
  await expect(session.commitTransaction()).rejects.toThrow();
  await session.endSession();
});

test('keeps the first position of a partition until its first owner, whichever instance starts later', async () => {
  await createPartitions(database, { count: 2, position: 'later' });
  const taken = await Promise.all(
    [0, 1].map((index) => takePartition(database, 'owner', { index, leaseMs: LEASE_MS })),
  );
  expect(taken.map((one) => one?.position)).toEqual(['start', 'later']);
});

test('stores outputs and position together, once, for the owner alone', async () => {
  const commits = createCommits(database, 'owner');
  expect(await takePartition(database, 'owner', { index: 0, leaseMs: LEASE_MS })).toMatchObject({
    epoch: 1,
  });
  await commits.commit({ advances: [advance], writes });
  // As after an answer that was lost.
  await commits.commit({ advances: [advance], writes });
  await endLeases();
  // One position for those who know no tenants: nothing is left out.
  const place = { position: positionOf(3), ...done };
  expect(await takePartition(database, 'heir', { index: 0, leaseMs: LEASE_MS })).toMatchObject(place);
  const late = commits.commit({ advances: [{ ...advance, commits: 1 }], writes });
  await expect(late).rejects.toThrow(FencedError);
  expect(await client.db().collection('outputs').countDocuments()).toBe(1);
  expect(await partitionsOf(database).findOne({ _id: 0 })).toMatchObject({ owner: 'heir', commits: 1, ...place });
  await commits.stop();
});
