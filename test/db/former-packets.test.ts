/** Packets that a former version stored, under their own `_id` alone: read like all others, and not stored again. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { formerDigest, packetIdOf } from '../../src/mqtt/dedup-id.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { CONNECT, connectRaw, PUBLISH } from '../support/mqtt-device.js';
import { OLDER, writeOlderData } from '../support/older.js';
import { until } from '../support/until.js';

const STARTED_MS = Date.now();
const HOUR_MS = 3_600_000;
const SENT = '5f00000000000000000000a1';
const OTHER = '5f00000000000000000000a2';
const STRANGER = '5f00000000000000000000b1';
const uri = testUri();
let service: TestService;

/** As the former version made the `_id` of a message over MQTT. */
const formerId = (text: string, timeMs: number, messageId: number | '' = ''): string =>
  packetIdOf(timeMs, formerDigest(Buffer.from(`${OLDER.object}\n${messageId}\nbase/state\n${text}`)));

const TIMED = '{"time":1748764800000,"n":"timed"}';
const UNTIMED = '{"n":"untimed"}';
const HOUR = Math.floor(STARTED_MS / HOUR_MS) * HOUR_MS;

const packetOf = (_id: string, more: Document): Document => ({
  ...{ _id: new ObjectId(_id), _ts: STARTED_MS * 1_000, time: STARTED_MS - 60_000, online: true },
  ...{ _oid: new ObjectId(OLDER.object), id: 'older-1', _gid: new ObjectId(), ...more },
});

beforeAll(async () => {
  const client = await new MongoClient(uri).connect();
  const db = client.db();
  await writeOlderData(db, STARTED_MS - 120_000);
  await db.collection('packets').deleteMany({});
  await db
    .collection('packets')
    .insertMany([
      packetOf(SENT, { n: 'sent' }),
      packetOf(OTHER, { time: 5, n: 'early' }),
      packetOf(formerId(TIMED, 1_748_764_800_000), { time: 1_748_764_800_000, n: 'timed' }),
      packetOf(formerId(UNTIMED, HOUR, 7), { n: 'untimed' }),
      packetOf(STRANGER, { _oid: new ObjectId(), id: 'stranger', n: 'stranger' }),
    ]);
  await db.collection('objects').updateOne({ id: 'older-1' }, { $set: { config: { auth: { password: 'plain' } } } });
  await client.close();
  service = await startTestService({}, uri);
});

afterAll(() => service.stop());

const PACKETS = 'objects/older-1/packets';
const read = (query: string) => service.admin('GET', `${PACKETS}${query}`);
/** What was stored of each, but for what only tells that the device is there. */
async function values(): Promise<unknown[]> {
  const { body } = await read('');
  return body.map(({ n }: { n: unknown }) => n).filter((n: unknown) => n !== undefined);
}
const BEFORE = ['early', 'timed', 'sent', 'untimed'];

test('finds packets of a former version one by one and in lists, by time, by `_id` and page by page', async () => {
  expect(entityOf(await read(`/${SENT}`))).toMatchObject({ _id: SENT, n: 'sent', _oid: OLDER.object });
  expectRefusal(await read(`/${STRANGER}`), 404);
  expect((await values()).toSorted()).toEqual(BEFORE.toSorted());
  expect((await read(`?where._id=${SENT},${STRANGER}`)).body.map(({ n }: { n: unknown }) => n)).toEqual(['sent']);
  expect((await read(`?after=${OTHER}&limit=1`)).body).toMatchObject([{ n: 'timed' }]);
  expect((await read('?limit=1')).headers.link).toContain(`after=${OTHER}`);
  expect((await service.admin('GET', 'objects/older-1')).body.state.time).toBe(STARTED_MS - 60_000);
});

describe('a packet that is resent after the upgrade', () => {
  test('returns the stored packet over HTTP, and stores new packets of the same request', async () => {
    expect(entityOf(await service.admin('POST', PACKETS, { _id: SENT, n: 'again' }))).toMatchObject({ n: 'sent' });
    const several = [{ _id: SENT.toUpperCase(), n: 'again' }, { n: 'new' }, { _id: OTHER, time: 5, n: 'again' }];
    expect((await service.admin('POST', PACKETS, several)).body).toEqual({ success: true, count: 3 });
    expect((await values()).toSorted()).toEqual(['new', ...BEFORE].toSorted());
  });

  test('acknowledges a repeated message over MQTT, with a time or marked as duplicate, without storing it', async () => {
    const raw = await connectRaw(service.service.mqttUrl as string);
    raw.send(CONNECT('older-1', { password: Buffer.from('plain') }));
    await until(() => raw.received.length > 0, 'CONNACK');
    raw.send(
      PUBLISH('base/state', TIMED, { messageId: 3 }),
      PUBLISH('base/state', UNTIMED, { messageId: 7, dup: true }),
      PUBLISH('base/state', '{"n":"fresh"}', { messageId: 8 }),
    );
    await until(() => raw.received.length > 3, 'acknowledgements');
    raw.socket.destroy();
    const after = (await values()).filter((n) => n !== 'new');
    expect(after.toSorted()).toEqual(['fresh', ...BEFORE].toSorted());
  });

  test('stores a packet once under an `_id` that another object had before the upgrade', async () => {
    for (const n of ['mine', 'again']) {
      expect(entityOf(await service.admin('POST', PACKETS, { _id: STRANGER, n }))).toMatchObject({ n: 'mine' });
    }
    expect(entityOf(await read(`/${STRANGER}`))).toMatchObject({ _id: STRANGER, n: 'mine' });
    const count = () => service.client.db().collection('packets').countDocuments({ n: 'stranger' });
    expect(await count()).toBe(1);
  });
});
