/** The job of packing on objects of which something cannot be packed, however often it is tried. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { LIMITS } from '../../../src/core/limits.js';
import { DAY_MS } from '../../../src/core/units.js';
import { createPass, type PackingOptions } from '../../../src/packets/packing.js';
import { RestingObjects } from '../../../src/packets/resting-objects.js';
import { findSpans } from '../../../src/packets/store/old-rows.js';
import { findPending } from '../../../src/packets/store/packing.js';
import { type Database, databaseOf } from '../../../src/platform/mongo/driver/client.js';
import { prepareCollections } from '../../../src/platform/mongo/schema/collections.js';
import { NO_PACKING_METRICS } from '../../../src/platform/ops/packing-metrics.js';
import { testUri } from '../../support/fixture.js';
import { readHistory, readStoredRows, HISTORY_START_MS as START_MS, storeHistory } from '../../support/packed.js';

Object.assign(LIMITS, { packingSettleMs: 0, packingPacketsPerSecond: 1e9 });
const { packingFailedObjects } = LIMITS;
const FIRST_REST_MS = 1_000;
const never = new AbortController().signal;
const commands: Document[] = [];
let database: Database;

beforeAll(async () => {
  const client = await new MongoClient(testUri(), { monitorCommands: true }).connect();
  client.on('commandStarted', ({ command }) => void commands.push(command));
  database = databaseOf(client);
  await prepareCollections(database.db);
});
beforeEach(async () => {
  await Promise.all(['packets', 'packedPackets'].map((name) => database.db.collection(name).deleteMany({})));
  failures = 0;
  nowMs = 0;
  lines.splice(0);
});
afterEach(async () => {
  Object.assign(LIMITS, { packingFailedObjects });
  await refuse({});
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

let failures = 0;
let nowMs = 0;
const lines: string[] = [];
const note = (_details: object, message: string): void => void lines.push(message);
const options: PackingOptions & { packAfterMs: number } = {
  get database() {
    return database;
  },
  packAfterMs: DAY_MS,
  log: { info: () => undefined, warn: note, error: note },
  metrics: { ...NO_PACKING_METRICS, failed: () => void failures++ },
  now: () => START_MS + 9 * DAY_MS,
};
const noFence = async (): Promise<void> => undefined;
const restingObjects = (): RestingObjects => new RestingObjects(FIRST_REST_MS, () => nowMs);
const pack = (resting: RestingObjects): Promise<void> => createPass(options, noFence, never, resting).run();

/** The database refuses buckets that do not match, as it does for good what it cannot store. */
const refuse = (validator: Document): Promise<Document> => database.db.command({ collMod: 'packedPackets', validator });

const createHistory = (): Promise<string> => storeHistory(database, 301, (nth) => ({ speed: nth }));
const isPacked = async (objectId: string): Promise<boolean> => (await findSpans(database, { objectId })).length > 0;

/** Objects in the order in which a pass meets them. */
async function createThree(): Promise<[string, string, string]> {
  return [await createHistory(), await createHistory(), await createHistory()];
}

const faults: readonly [string, (_oid: ObjectId) => Document][] = [
  ['buckets', (_oid) => ({ _oid: { $ne: _oid } })],
  ['replacement of rows', (_oid) => ({ $or: [{ _oid: { $ne: _oid } }, { isPending: true }] })],
];

test.each(faults)('packs all other objects where the database refuses the %s of one', async (_what, toValidator) => {
  const [first, second, third] = await createThree();
  const before = await readHistory(database, second);
  await refuse(toValidator(new ObjectId(second)));
  await pack(restingObjects());
  expect(await Promise.all([first, second, third].map(isPacked))).toEqual([true, false, true]);
  expect([failures, lines.length]).toEqual([1, 1]);
  expect(await findPending(database)).toEqual([]);
  expect(await readHistory(database, second)).toEqual(before);
});

test('packs the other packets of an object of which some fail', async () => {
  const objectId = await storeHistory(database, 2_501, (nth) => ({ speed: nth }));
  await refuse({ 'from.time': { $ne: START_MS + 1_000_000 } });
  await pack(restingObjects());
  expect((await findSpans(database, { objectId })).map(({ packets }) => packets)).toEqual([1_000, 500]);
  expect(await readHistory(database, objectId)).toHaveLength(2_501);
});

test('packs all objects where a foreign writer stored packets of something that is no object', async () => {
  const objects = await createThree();
  const _oid = 'car' as unknown as ObjectId;
  await database.db.collection('packets').insertMany([0, 1].map((nth) => ({ _oid, time: START_MS + nth, _ts: 1 })));
  await pack(restingObjects());
  expect(await Promise.all(objects.map(isPacked))).toEqual([true, true, true]);
});

test.each(faults)('leaves an object out for longer and longer while its %s fail', async (_what, toValidator) => {
  const [, second] = await createThree();
  await refuse(toValidator(new ObjectId(second)));
  const resting = restingObjects();
  // In quarters of the first gap.
  const attempts: number[] = [];
  for (let quarter = 0; quarter < 80; quarter++) {
    nowMs = (quarter * FIRST_REST_MS) / 4;
    const before = failures;
    await pack(resting);
    if (failures > before) attempts.push(quarter);
  }
  const gaps = attempts.slice(1).map((quarter, nth) => quarter - (attempts[nth] as number));
  expect(gaps.length).toBeGreaterThanOrEqual(3);
  for (const [nth, gap] of gaps.entries()) {
    expect(gap).toBeGreaterThanOrEqual(2 * 2 ** nth);
    expect(gap).toBeLessThanOrEqual(4 * 2 ** nth + 1);
  }
  expect(lines).toHaveLength(attempts.length);
  await refuse({});
  nowMs += LIMITS.packingRestMaxMs;
  await pack(resting);
  expect([await isPacked(second), resting.remembers(second)]).toEqual([true, false]);
});

test('ends a pass in which so many objects fail that it is not for them, and begins with others in the next one', async () => {
  Object.assign(LIMITS, { packingFailedObjects: 1 });
  const [first, second, third] = await createThree();
  const resting = restingObjects();
  await refuse({ _oid: { $nin: [first, second].map((id) => new ObjectId(id)) } });
  await expect(pack(resting)).rejects.toThrow(/validation/);
  expect(await isPacked(third)).toBe(false);
  await pack(resting);
  expect(await isPacked(third)).toBe(true);
});

test('asks nothing about an object whose packets are no smaller when packed, until it was left out for a while', async () => {
  const other = await createHistory();
  // No packet has a field of another one: their columns take more than they do.
  const loose = await storeHistory(database, 200, (nth) =>
    Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`field ${nth} ${at}`, at])),
  );
  const resting = restingObjects();
  await pack(resting);
  expect(await Promise.all([other, loose].map(isPacked))).toEqual([true, false]);
  expect(await readStoredRows(database, loose)).toHaveLength(200);

  await database.db.collection('packets').deleteMany({ _oid: new ObjectId(other) });
  commands.splice(0);
  await pack(resting);
  const [pending, oldest, ...others] = commands;
  expect([pending?.aggregate, oldest?.aggregate]).toEqual(['packedPackets', 'packets']);
  expect(others).toEqual([]);

  nowMs += FIRST_REST_MS;
  await pack(resting);
  expect(commands.map(({ find }) => find)).toContain('packets');
});

test('does not leave an object out that it has packed', async () => {
  const resting = restingObjects();
  const objectId = await createHistory();
  await pack(resting);
  expect([await isPacked(objectId), resting.remembers(objectId)]).toEqual([true, false]);
});
