/** Whoever looks after the database learns of damaged packed history: an event of the audit once an hour, and a metric for each read. */
import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { Binary, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { startSecond, type TestService, useService } from '../support/fixture.js';
import { createObject } from '../support/mqtt-device.js';
import { packHistory } from '../support/packed.js';
import { until } from '../support/until.js';

// Tests pack at once.
Object.assign(LIMITS, { bucketsKnownMs: 0, damagedInAudit: 3 });

const HOUR_MS = 3_600_000;
const OLD_MS = Date.UTC(2026, 0, 1);
const BUCKET_PACKETS = 20;
// The clock begins at a full hour, so that none ends within a test.
const AHEAD_MS = HOUR_MS - (Date.now() % HOUR_MS);
let hoursLater = 0;
const now = (): number => Date.now() + AHEAD_MS + hoursLater * HOUR_MS;
const options = { env: { OPS_PORT: '0' }, now };
const service = useService(options);
const endings: (() => unknown)[] = [];
let count = 0;

// Each test has an hour of its own, since an instance names so many buckets in one.
beforeEach(() => {
  hoursLater++;
});
afterAll(async () => {
  for (const end of endings) await end();
});

const nameOf = (nth: number): string => nth.toString(16).padStart(24, 'd');
const buckets = () => service.client.db().collection('packedPackets');

/** An object with 60 packets in three buckets, each of which has lost a bit of this column. */
async function damage(column: string): Promise<{ objectId: string; path: string }> {
  const objectId = await createObject(service.admin, `damaged-${++count}`);
  const path = `objects/${objectId}/packets`;
  const packets = Array.from({ length: 3 * BUCKET_PACKETS }, (_, nth) => ({
    _id: nameOf(nth),
    time: OLD_MS + nth * 1_000,
    speed: nth / 10,
  }));
  await service.admin('POST', path, [...packets, { speed: 1 }]);
  await packHistory(databaseOf(service.client), objectId, { bucketPackets: BUCKET_PACKETS });
  for (const { _id, columns } of await buckets()
    .find({ _oid: new ObjectId(objectId) })
    .toArray()) {
    const bytes = Buffer.from(columns[column].buffer);
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
    await buckets().updateOne({ _id }, { $set: { [`columns.${column}`]: new Binary(bytes) } });
  }
  return { objectId, path };
}

/** The interval of one bucket. */
const bucketAt = (nth: number): string =>
  `from=${OLD_MS + nth * BUCKET_PACKETS * 1_000}&to=${OLD_MS + ((nth + 1) * BUCKET_PACKETS - 1) * 1_000}`;
const reasonOf = (nth: number): string =>
  `from ${new Date(OLD_MS + nth * BUCKET_PACKETS * 1_000).toISOString()} to ${new Date(OLD_MS + ((nth + 1) * BUCKET_PACKETS - 1) * 1_000).toISOString()} is damaged`;

async function countReads({ service: { opsUrl } }: TestService = service): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^vigil_packing_damaged_reads_total (\d+)$/m.exec(text)?.[1]);
}

async function eventsOf(objectId: string) {
  const { body } = await service.admin('GET', `audit?where.entity=${objectId}&sortBy=time`);
  return body as { action: string; entity: string; fields: string[]; user: string | null; group: string }[];
}

/** Resolves when so many events are there; those that would come too often would come before the last one. */
async function waitForEvents(objectId: string, number: number) {
  await until(async () => (await eventsOf(objectId)).length >= number, `${number} events`);
  return eventsOf(objectId);
}

test('reports a bucket once to the audit, and counts all reads of it', async () => {
  const { objectId, path } = await damage('speed');
  const reads = [
    ['GET', `${path}?${bucketAt(1)}`, 500],
    ['GET', `${path}?${bucketAt(1)}&sortBy=-time`, 500],
    ['GET', `${path}?${bucketAt(1)}&sortBy=speed`, 500],
    ['GET', `${path}?${bucketAt(1)}&where.speed=2`, 500],
    ['GET', `${path}?${bucketAt(1)}&where.speed=2&meta=true`, 500],
    ['GET', `${path}?${bucketAt(1)}&format=csv`, 500],
    ['GET', `objects/${objectId}/series?params=speed&${bucketAt(1)}`, 500],
    ['GET', `${path}/${nameOf(BUCKET_PACKETS + 1)}`, 500],
  ] as const;
  for (const [method, address, status] of reads) {
    const before = await countReads();
    expect([address, (await service.admin(method, address)).status]).toEqual([address, status]);
    expect([address, (await countReads()) > before]).toEqual([address, true]);
  }
  // What needs other columns meets no damage.
  const before = await countReads();
  expect((await service.admin('GET', `${path}?${bucketAt(1)}&only=_id`)).status).toBe(200);
  expect(await countReads()).toBe(before);
  await service.admin('GET', `${path}?${bucketAt(2)}`);
  expect(await waitForEvents(objectId, 2)).toMatchObject(
    [1, 2].map((nth) => ({
      action: 'history damaged',
      entity: objectId,
      user: null,
      fields: [expect.stringContaining(reasonOf(nth))],
    })),
  );
});

test('reports it again in the next hour, and once for all instances', async () => {
  const { objectId, path } = await damage('speed');
  const second = await startSecond(service, endings, options);
  const before = await countReads(second);
  const read = () =>
    Promise.all(
      [service, second].map(({ admin }) => admin('GET', `${path}?${bucketAt(0)}`).then(({ status }) => status)),
    );
  expect(await read()).toEqual([500, 500]);
  await waitForEvents(objectId, 1);
  hoursLater++;
  expect(await read()).toEqual([500, 500]);
  expect(await waitForEvents(objectId, 2)).toHaveLength(2);
  expect(await countReads(second)).toBeGreaterThan(before + 1);
  expect(second.logLines.join('')).toContain('history damaged');
});

test('reports a bucket that a repeat cannot be looked up in, and one that is removed', async () => {
  const { objectId, path } = await damage('_id');
  // Stored, since it cannot be told that it is a repeat.
  expect((await service.admin('POST', path, { _id: nameOf(1), time: OLD_MS })).status).toBe(200);
  expect((await waitForEvents(objectId, 1)).map(({ fields }) => fields)).toEqual([
    [expect.stringContaining(reasonOf(0))],
  ]);
  const before = await countReads();
  expect([200, 202]).toContain((await service.admin('DELETE', `${path}?${bucketAt(2)}`)).status);
  await until(async () => (await countReads()) > before, 'the removal to read the bucket');
});

test('names only so many buckets in an hour, and counts the others', async () => {
  const paths = [(await damage('speed')).path, (await damage('speed')).path];
  const before = await countReads();
  const stored = service.client.db().collection('audit');
  const eventsBefore = await stored.countDocuments({ action: 'history damaged' });
  for (const path of paths) {
    for (const nth of [0, 1, 2]) expect((await service.admin('GET', `${path}?${bucketAt(nth)}`)).status).toBe(500);
  }
  expect(await countReads()).toBe(before + 6);
  hoursLater++;
  expect((await service.admin('GET', `${paths[1]}?${bucketAt(2)}`)).status).toBe(500);
  const count = () => stored.countDocuments({ action: 'history damaged' });
  await until(async () => (await count()) >= eventsBefore + 4, 'the events');
  expect(await count()).toBe(eventsBefore + 4);
});
