/** Presence: `state.online` follows the connections of a device, on all instances, and its `offlineAfter`. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { Long } from 'mongodb';
import type { IClientOptions, MqttClient } from 'mqtt';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, startSecond, useService } from '../support/fixture.js';
import { CONNECT, connectDevice, connectRaw, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

/** A device whose connection was closed is set offline after this time. */
const GRACE_MS = 500;
const HOUR_MS = 3_600_000;
Object.assign(LIMITS, { presenceGraceMs: GRACE_MS });
const service = useService();
const endings: (() => unknown)[] = [];
let count = 0;

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function connect(id: string, options: IClientOptions = {}, url = service.service.mqttUrl): Promise<MqttClient> {
  const client = await connectDevice(url as string, id, options);
  endings.push(() => client.end(true));
  return client;
}

async function create(fields: object = {}): Promise<string> {
  const id = `present-${++count}`;
  await createObject(service.admin, id, fields);
  return id;
}

const onlineOf = async (id: string): Promise<unknown> =>
  (await service.admin('GET', `objects/${id}`)).body.state?.online;

/** `online` of every packet of the object, in order. */
async function onlinesOf(id: string): Promise<boolean[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.map(({ online }: { online: boolean }) => online);
}

const startOther = () => startSecond(service, endings);

test('sets a device online when it connects and offline after it disconnected, with an event for each', async () => {
  const id = await create();
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  endings.push(() => listener.close());
  const device = await connect(id);
  expect(await onlineOf(id)).toBe(true);
  await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  await device.endAsync();
  await until(async () => (await onlineOf(id)) === false, 'id to be offline');
  expect(await onlinesOf(id)).toEqual([true, true, false]);
  await service.settled();
  const packets = listener.take().filter(({ name, payload }) => name === 'object-packet' && payload.id === id);
  expect(packets.map(({ payload }) => payload.online)).toEqual([true, true, false]);
});

test('sets a device offline whose connection breaks, and one that stays silent', async () => {
  const id = await create();
  const silent = await create();
  const device = await connect(id);
  const raw = await connectRaw(service.service.mqttUrl as string);
  endings.push(() => raw.socket.destroy());
  raw.send(CONNECT(silent, { keepalive: 1 }));
  await until(() => raw.received.length > 0, 'CONNACK');
  device.stream.destroy();
  await until(async () => (await onlineOf(id)) === false, 'id to be offline');
  await until(async () => (await onlineOf(silent)) === false, 'silent to be offline');
  expect([await onlinesOf(id), await onlinesOf(silent)]).toEqual(Array(2).fill([true, false]));
});

test('keeps a device online that reconnects at once', async () => {
  const graceMs = 2_000;
  Object.assign(LIMITS, { presenceGraceMs: graceMs });
  endings.push(() => Object.assign(LIMITS, { presenceGraceMs: GRACE_MS }));
  let onlines: boolean[] = [];
  // On a busy machine a reconnection may take longer: then the device is rightly set offline.
  await until(async () => {
    const id = await create();
    let device = await connect(id);
    let longestMs = 0;
    for (let at = 0; at < 5; at++) {
      const startMs = performance.now();
      device.stream.destroy();
      device = await connect(id);
      longestMs = Math.max(longestMs, performance.now() - startMs);
    }
    // This device is set offline after the grace time of every connection before.
    const witness = await create();
    (await connect(witness)).stream.destroy();
    await until(async () => (await onlineOf(witness)) === false, 'witness to be offline');
    await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
    onlines = await onlinesOf(id);
    return longestMs < graceMs;
  }, 'five reconnections that each take less than the grace time');
  expect(onlines).toEqual([true, true]);
});

test('sets a device whose clock is ahead offline and online again', async () => {
  const id = await create();
  const device = await connect(id);
  const time = Date.now() + 240_000;
  await device.publishAsync('base/state', JSON.stringify({ time }), { qos: 1 });
  await device.endAsync();
  await until(async () => (await onlineOf(id)) === false, 'id to be offline');
  await connect(id);
  expect(await onlineOf(id)).toBe(true);
});

test('keeps the newest connection of a device, on any instance', async () => {
  const id = await create();
  const other = await startOther();
  const first = await connect(id);
  const second = await connect(id, {}, other.service.mqttUrl);
  await until(() => !first.connected, 'the first connection to be closed');
  const third = await connect(id);
  await until(() => !second.connected, 'the second connection to be closed');
  await third.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  const witness = await create();
  (await connect(witness, {}, other.service.mqttUrl)).stream.destroy();
  await until(async () => (await onlineOf(witness)) === false, 'witness to be offline');
  expect(await onlinesOf(id)).toEqual([true, true]);
});

test('sets devices of an instance online again that another one took for dead', async () => {
  const id = await create();
  const device = await connect(id);
  const records = service.client.db().collection('presence');
  const held = await records.findOne({}, { sort: { since: -1 } });
  // As another instance does that cannot see the renewals of this one.
  await records.updateOne({ _id: held?._id }, { $set: { ended: Date.now() } });
  await until(async () => (await records.findOne({ _id: held?._id }))?.ended === null, 'the record to be renewed');
  await until(async () => (await onlineOf(id)) === true, 'id to be online');
  expect(device.connected).toBe(true);
});

test('sets a device offline once each time it has been silent for its offlineAfter', async () => {
  await startOther();
  const id = await create({ config: { offlineAfter: '1s' } });
  await service.admin('POST', `objects/${id}/packets`, { speed: 1 });
  await until(async () => (await onlineOf(id)) === false, 'id to be offline');
  await service.admin('POST', `objects/${id}/packets`, { speed: 2 });
  await until(async () => (await onlineOf(id)) === false, 'id to be offline');
  expect(await onlinesOf(id)).toEqual([true, false, true, false]);
});

test('finds a device silent whose offlineAfter is over at the start, but not one whose packets are of the past', async () => {
  const agoMs = 2 * HOUR_MS;
  const store = async (parameters: object): Promise<string> => {
    const id = await create({ config: { offlineAfter: '1 minute' } });
    await service.admin('POST', `objects/${id}/packets`, { time: Date.now() - agoMs, online: true, ...parameters });
    const _ts = Long.fromNumber((Date.now() - agoMs) * 1_000);
    await service.client.db().collection('packets').updateMany({ id }, { $set: { _ts } });
    return id;
  };
  // A device with a clock in 2007, which was reported online, and sends: nothing is later than that report.
  const sending = await store({});
  const silent = await store({ speed: 1 });
  await service.admin('POST', `objects/${sending}/packets`, { time: Date.UTC(2007), speed: 2 });
  await startOther();
  await until(async () => (await onlineOf(silent)) === false, 'silent to be offline');
  expect(await onlinesOf(sending)).toEqual([true, true]);
});

test('sets a device offline that was silent since an older packet that reports it offline', async () => {
  const id = await create({ config: { offlineAfter: '1 hour' } });
  const nowMs = Date.now();
  await service.admin('POST', `objects/${id}/packets`, { time: nowMs, speed: 1 });
  await service.admin('POST', `objects/${id}/packets`, { time: nowMs - 10_000, online: false });
  expect(await onlineOf(id)).toBe(true);
  await service.admin('PATCH', `objects/${id}`, { config: { offlineAfter: '1s' } });
  await until(async () => (await onlineOf(id)) === false, 'id to be offline');
  expect(await onlinesOf(id)).toEqual([false, true, false]);
});

test('keeps a device with offlineAfter online after it disconnected, until that time is over', async () => {
  const auth = { username: 'truck', password: 'a key of the machine' };
  const id = await create({ config: { auth, offlineAfter: '1 hour' } });
  const device = await connect(id);
  await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
  await device.endAsync();
  // Disconnected later, and set offline.
  const witness = await create();
  (await connect(witness)).stream.destroy();
  await until(async () => (await onlineOf(witness)) === false, 'witness to be offline');
  expect([await onlineOf(id), await onlinesOf(id)]).toEqual([true, [true, true]]);
  await service.admin('PATCH', `objects/${id}`, { config: { auth, offlineAfter: '1s' } });
  await until(async () => (await onlineOf(id)) === false, 'id to be offline');
  expect(await onlinesOf(id)).toEqual([true, true, false]);
});

/** How the packets of a device arrive. */
const TRANSPORTS: readonly (readonly [string, (id: string, body: object) => Promise<unknown>])[] = [
  ['HTTP', (id, body) => service.admin('POST', `objects/${id}/packets`, body)],
  [
    'MQTT',
    async (id, body) => {
      const device = devices.get(id) ?? (await connect(id));
      devices.set(id, device);
      return device.publishAsync('base/state', JSON.stringify(body), { qos: 1 });
    },
  ],
];
const devices = new Map<string, MqttClient>();
const AGO: readonly (readonly [string, readonly number[]])[] = [
  ['a second old', [1_000]],
  ['an hour old', [HOUR_MS, HOUR_MS - 1, HOUR_MS - 2]],
  ['of last year', [366 * 24 * HOUR_MS]],
];

describe.each(TRANSPORTS)('a silent device that sends over %s', (_, send) => {
  test.each(AGO)('is online again, in every view, with packets that are %s', async (_what, ago) => {
    const config = { auth: { username: 'truck', password: 'a key of the machine' } };
    const id = await create({ config });
    const nowMs = Date.now();
    await service.admin('POST', `objects/${id}/packets`, [
      { time: nowMs - 2_000, speed: 1 },
      { time: nowMs, online: false },
    ]);
    expect(await onlineOf(id)).toBe(false);
    await service.settled();
    const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
    endings.push(() => listener.close());
    for (const agoMs of ago) await send(id, { time: nowMs - agoMs - 3_000, speed: 2 });
    const { body } = await service.admin('GET', `objects/${id}`);
    expect(body.state).toMatchObject({ speed: 1, time: nowMs - 2_000, online: true });
    const list = async (query: string) => (await service.admin('GET', `objects?where.id=${id}&${query}`)).body.length;
    expect([await list('where.state.online=true'), await list('where.state.online=false')]).toEqual([1, 0]);
    await service.settled();
    const packets = listener.take().filter(({ payload }) => payload.id === id);
    // What a page shows: of the packets in the order of arrival, the latest by time counts.
    const latest = packets.reduce((state, { payload }) => (payload.time >= state.time ? payload : state), {
      time: nowMs,
      online: false,
    });
    expect(latest.online).toBe(true);
    const reports = packets.filter(({ payload }) => payload.online && payload.speed === undefined);
    expect(reports).toHaveLength(1);
    const events = await service.admin('GET', `objects/${id}/events?from=${nowMs}&events=object-online`);
    expect(events.body.map(({ event }: { event: string }) => event)).toEqual(['object-online']);
  });
});

test('reports once that a device is online again, although many of its packets come at once', async () => {
  const id = await create();
  const nowMs = Date.now();
  await service.admin('POST', `objects/${id}/packets`, [
    { time: nowMs, speed: 1 },
    { time: nowMs, online: false },
  ]);
  await Promise.all(
    Array.from({ length: 20 }, (_, nth) =>
      service.admin('POST', `objects/${id}/packets`, { time: nowMs - 10_000 - nth, speed: nth }),
    ),
  );
  expect((await onlinesOf(id)).slice(-2)).toEqual([false, true]);
  expect(await onlinesOf(id)).toHaveLength(23);
});

test.each<[what: string, timeMs: (nowMs: number, offlineMs: number) => number]>([
  ['older packets', (nowMs) => nowMs - 1_000],
  ['packets of the same time', (_nowMs, offlineMs) => offlineMs],
])('sets a device online that an instance with a clock ahead reported offline, with %s', async (_what, timeOf) => {
  const id = await create();
  const nowMs = Date.now();
  const offlineMs = nowMs + 120_000;
  await service.admin('POST', `objects/${id}/packets`, { time: offlineMs, online: false });
  const packets = service.client.db().collection('packets');
  // As the other instance stores it, whose clock is a minute ahead.
  await packets.updateOne({ id, online: false }, { $set: { _ts: Long.fromNumber((nowMs + 60_000) * 1_000) } });
  await service.settled();
  await service.admin('POST', `objects/${id}/packets`, { time: timeOf(nowMs, offlineMs), speed: 1 });
  expect(await onlineOf(id)).toBe(true);
});

test('answers that packets are stored if only the report that their device is online fails', async () => {
  const id = await create();
  const nowMs = Date.now();
  await service.admin('POST', `objects/${id}/packets`, { time: nowMs, online: false });
  const db = service.client.db();
  const restore = () => db.command({ collMod: 'packets', validator: {} });
  endings.push(restore);
  // The database refuses the report, and nothing else.
  const isReport = { id, online: true, speed: { $exists: false } };
  await db.command({ collMod: 'packets', validator: { $nor: [isReport] } });
  const answer = await service.admin('POST', `objects/${id}/packets`, { time: nowMs - 1_000, speed: 1 });
  expect([answer.status, await onlinesOf(id)]).toEqual([200, [true, false]]);
  expect(service.logLines.join('')).toContain('failed to report that a device that sends is online');
  await restore();
  await service.admin('POST', `objects/${id}/packets`, { time: nowMs - 500, speed: 2 });
  expect(await onlineOf(id)).toBe(true);
});

test('leaves a device offline that says so, with late packets before', async () => {
  const id = await create();
  const nowMs = Date.now();
  await service.admin('POST', `objects/${id}/packets`, { time: nowMs, online: false });
  await service.admin('POST', `objects/${id}/packets`, [
    { time: nowMs - 10_000, speed: 1 },
    { time: nowMs - 9_000, online: false },
  ]);
  expect(await onlineOf(id)).toBe(false);
});

test('keeps the values in the state behind many reports of presence', async () => {
  const id = await create();
  const nowMs = Date.now();
  const reports = Array.from({ length: 500 }, (_, nth) => ({ time: nowMs - 600 + nth, online: nth % 2 === 0 }));
  await service.admin('POST', `objects/${id}/packets`, reports);
  await service.admin('POST', `objects/${id}/packets`, { time: nowMs - HOUR_MS, speed: 7 });
  expect((await service.admin('GET', `objects/${id}`)).body.state).toMatchObject({ speed: 7, online: true });
});

test.each(['soon', -1, 0, true, []])('refuses the invalid offlineAfter %j', async (offlineAfter) => {
  const { status, body } = await service.admin('POST', 'objects', { id: 'x', name: 'x', config: { offlineAfter } });
  expect([status, body.helper.message]).toEqual([400, expect.stringContaining('config.offlineAfter')]);
});
