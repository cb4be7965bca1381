/** Which packets are removed: those older than their model or the installation permits, and those without an object. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { createSweeper } from '../../src/packets/retention.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { acquireLease, type Lease } from '../../src/platform/mongo/driver/lease.js';
import { expectRefusal } from '../support/answers.js';
import { startTestService, testUri, useService } from '../support/fixture.js';
import { packHistory, readHistory } from '../support/packed.js';
import { until } from '../support/until.js';

const DAY_MS = 86_400_000;
// The service's own sweeper looks once, at its start: what a test stores is left to the test's.
Object.assign(LIMITS, { sweepPauseMs: DAY_MS });
let lease: Lease | null = null;
// Before the service closes its connection.
afterAll(() => lease?.release());
const service = useService();
// It has looked by then, or finds that another one does.
beforeAll(() =>
  until(async () => {
    lease = await acquireLease(databaseOf(service.client), 'sweep', LIMITS.leaseMs);
    return lease !== null;
  }, 'the end of the first sweep'),
);
const never = new AbortController().signal;
let clockMs = Date.now();

const sweeper = (retentionDays: number | null) =>
  createSweeper({ database: databaseOf(service.client), retentionDays, now: () => clockMs });

const packets = () => service.client.db().collection('packets');

async function createObject(fields: object = {}): Promise<string> {
  return (await service.admin('POST', 'objects', { id: `o-${new ObjectId()}`, name: 'x', ...fields })).body._id;
}

async function createModel(retentionDays?: number | null): Promise<string> {
  return (await service.admin('POST', 'models', { name: 'm', ...(retentionDays !== undefined && { retentionDays }) }))
    .body._id;
}

/** Packets of so many days ago. */
async function send(object: string, ages: readonly number[]): Promise<void> {
  const body = ages.map((days) => ({ time: clockMs - days * DAY_MS, days }));
  expect((await service.admin('POST', `objects/${object}/packets`, body)).status).toBe(200);
}

async function agesOf(object: string): Promise<number[]> {
  const found = await packets()
    .find({ _oid: new ObjectId(object) }, { sort: { time: 1 } })
    .toArray();
  return found.map(({ days }) => days);
}

describe('retention by age', () => {
  test('prefers the model to the installation; 0 keeps packets for ever', async () => {
    const objects = {
      short: await createObject({ model: await createModel(2) }),
      ever: await createObject({ model: await createModel(0) }),
      none: await createObject({ model: await createModel(null) }),
      plain: await createObject(),
    };
    for (const object of Object.values(objects)) await send(object, [400, 20, 3, 1, 0]);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 3, orphaned: 0 });
    const agesNow = async () =>
      Object.fromEntries(
        await Promise.all(Object.entries(objects).map(async ([name, id]) => [name, await agesOf(id)])),
      );
    expect(await agesNow()).toEqual({
      short: [1, 0],
      ever: [400, 20, 3, 1, 0],
      none: [400, 20, 3, 1, 0],
      plain: [400, 20, 3, 1, 0],
    });
    expect(await sweeper(10).sweep(never)).toEqual({ expired: 4, orphaned: 0 });
    expect(await agesNow()).toEqual({ short: [1, 0], ever: [400, 20, 3, 1, 0], none: [3, 1, 0], plain: [3, 1, 0] });
    expect(await sweeper(10).sweep(never)).toEqual({ expired: 0, orphaned: 0 });
  });

  test('keeps the latest packet, and with it the state, until a newer one arrives', async () => {
    const object = await createObject({ model: await createModel(1) });
    await send(object, [30, 20]);
    await sweeper(null).sweep(never);
    expect((await service.admin('GET', `objects/${object}`)).body.state).toMatchObject({ days: 20 });
    expect(await agesOf(object)).toEqual([20]);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 0, orphaned: 0 });
    await send(object, [0]);
    await sweeper(null).sweep(never);
    expect(await agesOf(object)).toEqual([0]);
  });

  test('keeps the last packet with data beside a later one with only presence', async () => {
    const object = await createObject({ model: await createModel(1) });
    await send(object, [30, 20]);
    const presences = [19, 18].map((days) => ({ time: clockMs - days * DAY_MS, online: false }));
    await service.admin('POST', `objects/${object}/packets`, presences);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 2, orphaned: 0 });
    expect(await agesOf(object)).toEqual([20, undefined]);
    expect((await service.admin('GET', `objects/${object}`)).body.state).toMatchObject({ days: 20, online: false });
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 0, orphaned: 0 });
    await send(object, [0]);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 2, orphaned: 0 });
  });

  test('removes more packets than one step', async () => {
    const object = await createObject({ model: await createModel(1) });
    const many = Array.from({ length: LIMITS.packetsPerRemoval * 2 + 5 }, (_, at) => 10 + at / 100_000);
    await send(object, [...many, 0]);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: many.length, orphaned: 0 });
    expect(await agesOf(object)).toEqual([0]);
  });

  test('publishes no events', async () => {
    const object = await createObject({ model: await createModel(1) });
    await send(object, [10, 0]);
    const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
    await service.settled();
    listener.take();
    await sweeper(null).sweep(never);
    await service.settled();
    expect(listener.take()).toEqual([]);
    listener.close();
  });

  test.each([-1, 1.5, '7', LIMITS.retentionDays + 1])('refuses retentionDays %p', async (retentionDays) => {
    expectRefusal(await service.admin('POST', 'models', { name: 'm', retentionDays }), 400, 'retentionDays');
  });
});

describe('retention of packed packets', () => {
  const buckets = (object: string) =>
    service.client
      .db()
      .collection('packedPackets')
      .countDocuments({ _oid: new ObjectId(object) });
  const allAgesOf = async (object: string): Promise<number[]> =>
    (await readHistory(databaseOf(service.client), object)).map(({ days }) => days);
  /** Of so many days ago, in buckets of five but for the last one. */
  async function sendPacked(object: string, ages: readonly number[]): Promise<void> {
    await send(object, ages);
    await packHistory(databaseOf(service.client), object, { bucketPackets: 5 });
  }
  const AGES = [40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 0];

  test('removes buckets as wholes, and waits with the one that the bound divides', async () => {
    const object = await createObject({ model: await createModel(32) });
    await sendPacked(object, AGES);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 5, orphaned: 0 });
    expect(await allAgesOf(object)).toEqual(AGES.slice(5));
    expect(await agesOf(object)).toEqual([0]);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 0, orphaned: 0 });
  });

  test('divides a bucket that keeps packets for a tenth of their time longer', async () => {
    const object = await createObject({ model: await createModel(31) });
    const plain = await createObject({ model: await createModel(31) });
    const ages = [80, 40, 35, 33, 20, 0];
    await sendPacked(object, ages);
    await send(plain, ages);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 8, orphaned: 0 });
    expect(await allAgesOf(object)).toEqual([20, 0]);
    expect(await agesOf(plain)).toEqual([20, 0]);
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 0, orphaned: 0 });
  });

  test('keeps the packet of the state, also where it is in a bucket', async () => {
    const object = await createObject({ model: await createModel(5) });
    await send(object, [40, 39, 38, 37, 36]);
    const database = databaseOf(service.client);
    const presences = Array.from({ length: 3 }, (_, nth) => ({ time: clockMs - (30 - nth) * DAY_MS, online: false }));
    await service.admin('POST', `objects/${object}/packets`, presences);
    const before = (await service.admin('GET', `objects/${object}`)).body.state;
    await packHistory(database, object, { toMs: clockMs - 37 * DAY_MS });
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 6, orphaned: 0 });
    expect((await service.admin('GET', `objects/${object}`)).body.state).toEqual(before);
    expect(await buckets(object)).toBe(0);
  });

  test('removes packets of a removed object that are all in buckets', async () => {
    const object = await createObject();
    await sendPacked(object, AGES);
    await service.client
      .db()
      .collection('objects')
      .deleteOne({ _id: new ObjectId(object) });
    await packets().deleteMany({ _oid: new ObjectId(object) });
    const sweep = sweeper(null);
    await sweep.sweep(never);
    expect(await buckets(object)).toBe(3);
    clockMs += LIMITS.orphanGraceMs;
    expect(await sweep.sweep(never)).toEqual({ expired: 0, orphaned: 15 });
    expect(await buckets(object)).toBe(0);
  });
});

describe('packets without an object', () => {
  test('disappear after their object was missing for the grace period', async () => {
    const kept = await createObject();
    await send(kept, [5]);
    const gone = new ObjectId();
    await packets().insertMany([1, 2, 3].map((time) => ({ _oid: gone, time, _ts: time, online: true })));
    const one = sweeper(null);
    expect(await one.sweep(never)).toEqual({ expired: 0, orphaned: 0 });
    clockMs += LIMITS.orphanGraceMs - 1;
    expect(await one.sweep(never)).toEqual({ expired: 0, orphaned: 0 });
    clockMs += 1;
    // Another instance, which has not seen it for so long.
    expect(await sweeper(null).sweep(never)).toEqual({ expired: 0, orphaned: 0 });
    expect(await one.sweep(never)).toEqual({ expired: 0, orphaned: 3 });
    expect(await packets().countDocuments({ _oid: gone })).toBe(0);
    expect(await agesOf(kept)).toEqual([5]);
  });

  test('remain if their object returns', async () => {
    const id = new ObjectId();
    await packets().insertOne({ _oid: id, time: 1, _ts: 1, online: true });
    const one = sweeper(null);
    await one.sweep(never);
    await service.client
      .db()
      .collection('objects')
      .insertOne({ _id: id, id: 'back', name: 'x', branch: [], access: [] });
    clockMs += 2 * LIMITS.orphanGraceMs;
    expect(await one.sweep(never)).toEqual({ expired: 0, orphaned: 0 });
    expect(await packets().countDocuments({ _oid: id })).toBe(1);
  });
});

test('stops a running sweep', async () => {
  const object = await createObject({ model: await createModel(1) });
  await send(object, [10, 0]);
  expect(await sweeper(null).sweep(AbortSignal.abort())).toEqual({ expired: 0, orphaned: 0 });
  expect(await agesOf(object)).toEqual([10, 0]);
});

test('runs by itself, on one of two instances', async () => {
  const uri = testUri();
  const env = { RETENTION_DAYS: '30' };
  const first = await startTestService({}, uri);
  const { body: object } = await first.admin('POST', 'objects', { id: 'swept', name: 'x' });
  const sent = [{ time: Date.now() - 31 * DAY_MS }, { time: Date.now() - 29 * DAY_MS }];
  await first.admin('POST', `objects/${object._id}/packets`, sent);
  await first.service.stop();
  await first.client.close();
  const second = await startTestService({ env }, uri);
  await until(async () => (await second.admin('GET', 'objects/swept/packets')).body.length === 1);
  const logged = () =>
    second.logLines.filter((line) => line.includes('removed packets')).map((line) => JSON.parse(line));
  // It is said after the removal.
  await until(() => logged().length > 0, 'the log line');
  expect(logged()).toMatchObject([{ module: 'sweeper', expired: 1, orphaned: 0 }]);
  await second.stop();
});
