/** What kinds of sources make of payloads, and what they answer. */
import { describe, expect, test } from '@jest/globals';
import type { SourceKindName } from '../../src/core/source-kinds.js';
import { useService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';
import { ANSWERS, PAYLOADS } from '../support/payloads.js';
import { basic, useSources } from '../support/sources.js';
import { until } from '../support/until.js';

const service = useService({ env: { LOG_LEVEL: 'warn' } });
const { createSource, createObject, packetsOf, post, get, send } = useSources(service);

test('answers GET only to kinds that send queries', async () => {
  const source = await createSource();
  const { status, headers } = await get(`${source.id}/${source.key}?id=1&lat=1&lon=1`);
  expect([status, headers.allow]).toEqual([405, 'POST']);
});

describe('JSON of any form', () => {
  const map = {
    time: { path: '$.ts', unit: 's' },
    object: '$.dev.id',
    temperature: '$.t[0].v',
    speed: { path: "$['spd.kn']", unit: 'kn' },
    level: { path: '$.t[-1].v', factor: 0.1, offset: 2 },
  };

  test('becomes packets as the map says', async () => {
    const source = await createSource({ map });
    const object = await createObject();
    const body = { ts: 1_795_500_000.25, dev: { id: object.id }, t: [{ v: 21.5 }, { v: 30 }], 'spd.kn': 10, other: 1 };
    expect((await send(source, body)).body).toEqual({ success: true, count: 1 });
    const [packet] = await packetsOf(object);
    expect(packet).toMatchObject({ time: 1_795_500_000_250, temperature: 21.5, speed: 18.52, level: 5 });
    expect(packet).not.toHaveProperty('other');
  });

  test('is refused where it has nothing that the map names', async () => {
    const source = await createSource({ map });
    const answer = await send(source, { ts: 1_795_500_000 });
    expect([answer.status, answer.body.helper.message]).toEqual([
      400,
      'the body has none of the values that the map of the source names',
    ]);
  });

  test('has its times in the zone of the source, unless they name one', async () => {
    const source = await createSource({ timezone: 'Europe/Berlin', map: { time: '$.at', object: '$.id', a: '$.a' } });
    const object = await createObject();
    const times = ['2026-07-01T12:00:00', '2026-07-01 12:00:01', '2026-07-01T12:00:02Z', '2026-07-01T12:00:03+05:00'];
    for (const at of times) expect((await send(source, { id: object.id, at, a: 1 })).status).toBe(200);
    expect((await packetsOf(object)).map(({ time }) => new Date(time as number).toISOString())).toEqual([
      '2026-07-01T07:00:03.000Z',
      '2026-07-01T10:00:00.000Z',
      '2026-07-01T10:00:01.000Z',
      '2026-07-01T12:00:02.000Z',
    ]);
  });

  test('goes to the device that the URL names', async () => {
    const source = await createSource();
    const object = await createObject();
    expect((await send(source, { a: 1 }, `?device=${object.id}`)).status).toBe(200);
    expect(await packetsOf(object)).toHaveLength(1);
  });
});

describe('a sender', () => {
  test('gets an empty answer as Traccar Client, by GET and POST', async () => {
    const source = await createSource({ kind: 'osmand' });
    const object = await createObject();
    const query = `id=${object.id}&lat=52.5&lon=13.4&timestamp=1795500000&speed=10`;
    const first = await get(`${source.id}/${source.key}?${query}`);
    expect([first.status, first.text]).toEqual([200, '']);
    const again = await sendHttp(service.url, {
      method: 'POST',
      path: `/api/v1/in/${source.id}?key=${source.key}`,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      text: query,
    });
    expect([again.status, again.text]).toEqual([200, '']);
    // Sent twice, stored once.
    expect(await packetsOf(object)).toMatchObject([{ time: 1_795_500_000_000, lat: 52.5, lon: 13.4, speed: 18.52 }]);
  });

  test('gets an empty list as OwnTracks, also for what says nothing of the device', async () => {
    const source = await createSource({ kind: 'owntracks' });
    const object = await createObject();
    const headers = { ...basic('jane', source.key), 'X-Limit-U': 'jane', 'X-Limit-D': object.id };
    const body = { _type: 'location', _id: 'a1b2c3', lat: 52.5, lon: 13.4, tst: 1_795_500_000, vel: 54, tid: 'JJ' };
    for (const sent of [body, body, { _type: 'card', tid: 'JJ' }]) {
      const { status, text } = await post(source.id, sent, headers);
      expect([status, text]).toEqual([200, '[]']);
    }
    const empty = await sendHttp(service.url, { method: 'POST', path: `/api/v1/in/${source.id}`, headers });
    expect([empty.status, empty.text]).toEqual([200, '[]']);
    expect(await packetsOf(object)).toMatchObject([{ time: 1_795_500_000_000, speed: 54, messageId: 'a1b2c3' }]);
  });
});

/** What is compared of a packet: the fields that every kind has in common, and where they are members. */
const COMPARED = ['lat', 'lon', 'speed', 'angle', 'battery', 'temperature', 'position', 'switch:0', 'docker', 'event'];

const nested = (packet: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const made: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(packet)) {
    const [first = '', second] = name.split('.');
    made[first] = second === undefined ? value : { ...(made[first] as object), [second]: value };
  }
  return Object.fromEntries(Object.entries(made).filter(([name]) => COMPARED.includes(name)));
};

test.each(PAYLOADS.map((one) => [`${one.kind}: ${one.name}`, one] as const))(
  'stores %s once at its device, with its time, position and speed',
  async (_, { kind, query = {}, headers = {}, map, body, device, packets }) => {
    const source = await createSource({ kind, register: true, ...(map !== undefined && { map }) });
    const path = `/api/v1/in/${source.id}/${source.key}?${new URLSearchParams(query)}`;
    const isRead = body === '';
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const timed = packets.filter(({ time }) => time !== undefined);
    for (let sent = 0; sent < (timed.length === packets.length ? 2 : 1); sent++) {
      const answer = await sendHttp(service.url, {
        method: isRead ? 'GET' : 'POST',
        path,
        headers: { ...headers, 'Content-Type': 'text/plain' },
        ...(!isRead && { text }),
      });
      const usual = JSON.stringify({ success: true, count: packets.length });
      expect([answer.status, answer.text]).toEqual([200, ANSWERS[kind] ?? usual]);
    }
    const { status, body: object } = await service.admin('GET', `objects/${device}`);
    expect(status).toBe(packets.length === 0 ? 404 : 200);
    if (packets.length === 0) return;
    const distinct = new Map(packets.map((packet) => [JSON.stringify(packet), packet])).values();
    const expected = [...distinct].toSorted((one, other) => Number(one.time) - Number(other.time));
    const stored = await packetsOf(object);
    expect(stored.map(({ time }) => (timed.length === 0 ? undefined : time))).toEqual(expected.map(({ time }) => time));
    for (const [index, packet] of expected.entries()) expect(stored[index]).toMatchObject(nested(packet));
    await service.admin('DELETE', `objects/${object._id}`);
  },
);

test('sets to 0, false and "" what The Things Stack omits and the model declares, but no coordinates', async () => {
  const declared = { temperature: 'number', open: 'boolean', label: 'string', lat: 'number', counter: 'number' };
  const children = Object.entries(declared).map(([id, dataType]) => ({ id, name: id, type: 'argument', dataType }));
  const { body: model } = await service.admin('POST', 'models', {
    name: 'Sensor',
    data: { id: 'r', type: 'subsystem', children },
  });
  const source = await createSource({ kind: 'ttn', model: model._id, register: true });
  const uplink = { f_port: 1, decoded_payload: { temperature: 21.5 } };
  const ids = { device_id: 'sensor-with-zeros' };
  expect(
    (await send(source, { end_device_ids: ids, received_at: '2026-01-01T00:00:00Z', uplink_message: uplink })).status,
  ).toBe(200);
  const { body: object } = await service.admin('GET', 'objects/sensor-with-zeros');
  const [packet] = await packetsOf(object);
  expect(packet).toMatchObject({ temperature: 21.5, open: false, label: '', counter: 0 });
  expect(packet).not.toHaveProperty('lat');
  // A formatter that failed, or does not know the port, has measured nothing.
  for (const [minute, payload] of [{ decoded_payload: {} }, {}].entries()) {
    const received_at = `2026-01-01T00:0${minute + 1}:00Z`;
    const uplink_message = { f_port: 204, frm_payload: 'AAI=', ...payload };
    expect((await send(source, { end_device_ids: ids, received_at, uplink_message })).status).toBe(200);
    const newest = (await packetsOf(object)).at(-1);
    expect(newest).toMatchObject({ time: Date.parse(received_at), data: 'AAI=' });
    for (const name of ['temperature', 'open', 'label', 'counter']) expect(newest).not.toHaveProperty(name);
  }
});

test.each<[SourceKindName, string, object | string]>([
  ['osmand', '', 'id=broken&lat=north&lon=13.4'],
  ['osmand', '', { location: { coords: { latitude: 91, longitude: 13.4 } }, device_id: 'broken' }],
  ['owntracks', '[]', { _type: 'location', lat: 91, lon: 13.4, tst: 1_795_500_000, tid: 'JJ' }],
  ['owntracks', '[]', { _type: 'encrypted', data: 'ATTE21sd' }],
  [
    'traccar',
    '{"success":true,"count":0',
    { position: { latitude: 91, longitude: 13.4 }, device: { uniqueId: 'broken' } },
  ],
])(
  'takes a sample as done that cannot be read, if the sender would send it forever: %s %s %j',
  async (kind, text, body) => {
    const source = await createSource({ kind });
    const answer = await send(source, body);
    expect([answer.status, answer.text]).toEqual([
      200,
      expect.stringMatching(text === '' ? /^$/ : text.replace(/[[{]/g, '\\$&')),
    ]);
    const refused = async () => (await service.admin('GET', `sources/${source._id}/refused`)).body;
    await until(async () => (await refused()).length === 1, 'the refused payload');
  },
);

test.each<[SourceKindName, object | string]>([
  ['osmand', 'lat=52.5&lon=13.4'],
  ['owntracks', { lat: 52.5, lon: 13.4 }],
  ['traccar', { position: { latitude: 52.5, longitude: 13.4 } }],
])('refuses what is not of %s: %j', async (kind, body) => {
  expect((await send(await createSource({ kind }), body)).status).toBe(400);
});

test('keeps each measurement of an uplink that The Things Stack has normalized, once', async () => {
  const source = await createSource({ kind: 'ttn', register: true });
  const common = {
    end_device_ids: { device_id: 'normalized' },
    correlation_ids: ['as:up:01HX6YGQ7E0V83YRZ7K4S5J4ZN'],
    received_at: '2026-05-25T13:42:11.412Z',
  };
  const measured = [{ air: { temperature: 20 } }, { air: { temperature: 21 } }].map((normalized_payload) => ({
    ...common,
    uplink_normalized: { f_port: 1, f_cnt: 1, normalized_payload },
  }));
  const uplink = { ...common, uplink_message: { f_port: 1, f_cnt: 1, decoded_payload: { t: [20, 21] } } };
  for (const body of [uplink, ...measured, ...measured, uplink]) expect((await send(source, body)).status).toBe(200);
  const { body: object } = await service.admin('GET', 'objects/normalized');
  const packets = await packetsOf(object);
  expect(packets).toHaveLength(3);
  expect(packets.flatMap(({ air }) => air ?? []).length).toBe(2);
});

test('keeps measurements of the same value that were normalized with times of their own', async () => {
  const source = await createSource({ kind: 'ttn', register: true });
  const times = ['2026-05-25T11:00:00Z', '2026-05-25T12:00:00Z'];
  for (const time of times) {
    const answer = await send(source, {
      end_device_ids: { device_id: 'normalized-later' },
      received_at: '2026-05-25T13:42:11.412Z',
      uplink_normalized: { f_port: 1, f_cnt: 1, normalized_payload: { time, air: { temperature: 20 } } },
    });
    expect(answer.body).toEqual({ success: true, count: 1 });
  }
  const { body: object } = await service.admin('GET', 'objects/normalized-later');
  expect((await packetsOf(object)).map(({ time }) => time)).toEqual(times.map((time) => Date.parse(time)));
});

test.each<[SourceKindName, unknown, string]>([
  ['telegraf', [{ ident: 'a', timestamp: 1_795_500_000, 'position.latitude': 52.5 }], 'flespi'],
  ['telegraf', [{ bn: 'urn:dev:a:', n: 'temp', v: 20 }], 'SenML'],
  ['flespi', [{ name: 'cpu', fields: { idle: 90 }, tags: { host: 'a' }, timestamp: 1_795_500_000 }], 'Telegraf'],
  ['flespi', [{ bn: 'urn:dev:a:', n: 'temp', v: 20 }], 'SenML'],
])('refuses a list of another kind, and says which: %s %j', async (kind, body, name) => {
  const source = await createSource({ kind, register: true });
  const answer = await send(source, body as object);
  expect([answer.status, answer.body.helper?.message]).toEqual([400, expect.stringContaining(`looks like ${name}`)]);
});

test.each(['deviceOffline', 'deviceUnknown', 'deviceInactive'])('takes a device as offline after %s', async (type) => {
  const source = await createSource({ kind: 'traccar' });
  const object = await createObject();
  const device = { id: 1, uniqueId: object.id };
  const fixTime = new Date().toISOString();
  expect((await send(source, { position: { fixTime, latitude: 52.5, longitude: 13.4 }, device })).status).toBe(200);
  const event = { type, eventTime: new Date().toISOString(), positionId: 0, attributes: {} };
  expect((await send(source, { event, device })).status).toBe(200);
  expect(await packetsOf(object)).toMatchObject([{ online: true }, { event: type, online: false }]);
});

test('takes the times of Traccar Client without a zone as those of the zone of the source', async () => {
  const source = await createSource({ kind: 'osmand', timezone: 'Europe/Berlin' });
  const object = await createObject();
  for (const at of ['2014-06-04+09:10:11', '2014-06-04T09:10:12Z']) {
    expect((await get(`${source.id}/${source.key}?id=${object.id}&timestamp=${at}&lat=49.6&lon=6.1`)).status).toBe(200);
  }
  const times = (await packetsOf(object)).map(({ time }) => new Date(time as number).toISOString());
  expect(times).toEqual(['2014-06-04T07:10:11.000Z', '2014-06-04T09:10:12.000Z']);
});

test('keeps the parameters of a query that have the same name', async () => {
  const source = await createSource({ kind: 'osmand' });
  const object = await createObject();
  const query = `id=wrong&id=${object.id}&cell=257,02,16,2224&cell=257,02,16,2223,-90`;
  expect((await get(`${source.id}/${source.key}?${query}`)).status).toBe(200);
  expect(await packetsOf(object)).toMatchObject([{ cell: ['257,02,16,2224', '257,02,16,2223,-90'] }]);
});

test.each([11, '11'])('refuses SenML of a version that is not known: %j', async (bver) => {
  const answer = await send(await createSource({ kind: 'senml' }), [{ bver, bn: 'urn:dev:ow:1:', n: 'a', v: 1 }]);
  expect([answer.status, answer.body.helper.message]).toEqual([400, 'bver: a version of SenML that is not known']);
});

test('keeps a value whose name begins those of others as their member', async () => {
  const source = await createSource();
  const object = await createObject();
  const sent = {
    object: object.id,
    time: 1_795_500_000_000,
    din: 5,
    'din.1': true,
    'a.b.c': 1,
    'a.b': 2,
    plain: { x: 1 },
    'plain.y': 2,
  };
  expect((await send(source, sent)).body).toEqual({ success: true, count: 1 });
  const [packet] = await packetsOf(object);
  expect(packet).toMatchObject({ din: { value: 5, '1': true }, a: { b: { value: 2, c: 1 } }, plain: { x: 1, y: 2 } });
});

test('takes a batch as done whose samples cannot be stored, if the sender would send it forever', async () => {
  const source = await createSource({ kind: 'overland' });
  const { id } = await createObject();
  const broken = { type: 'Feature', geometry: { coordinates: [13.4, 91] }, properties: { device_id: id } };
  const answer = await send(source, { locations: [broken] });
  expect([answer.status, answer.text]).toEqual([200, '{"result":"ok"}']);
  const { body: refused } = await service.admin('GET', `sources/${source._id}/refused`);
  expect(refused).toMatchObject([{ index: 0, reason: 'latitude: expected degrees, from -90 to 90' }]);
  // But not what becomes storable when somebody adds the device.
  const unknown = { ...broken, geometry: { coordinates: [13.4, 52.5] }, properties: { device_id: 'nobody-yet' } };
  expect((await send(source, { locations: [unknown] })).status).toBe(404);
});

test('takes messages of unknown devices as done where one queue has those of all devices, and keeps each', async () => {
  const source = await createSource({ kind: 'flespi' });
  const messageOf = (ident: string, speed: number) => ({ ident, timestamp: 1_795_500_000, 'position.speed': speed });
  expect((await send(source, [messageOf('stranger-1', 50)])).body).toMatchObject({ success: true, count: 0 });
  const batch = [messageOf('stranger-1', 60), messageOf('stranger-2', 70)];
  expect((await send(source, batch)).body).toMatchObject({ success: true, count: 0 });
  const refused = await refusedOf(source);
  expect(refused.map(({ device }) => device)).toEqual(['stranger-1', 'stranger-1', 'stranger-2']);
  expect(refused.map(({ payload }) => JSON.parse(payload))).toEqual([
    [messageOf('stranger-1', 50)],
    { time: 1_795_500_000_000, 'position.speed': 60 },
    { time: 1_795_500_000_000, 'position.speed': 70 },
  ]);
});

test('keeps the samples of unknown devices beside those of known ones so that they can be stored later', async () => {
  const source = await createSource({ kind: 'telegraf' });
  const { id } = await createObject();
  const metricOf = (host: string) => ({ name: 'cpu', fields: { idle: 9.5 }, tags: { host }, timestamp: 1_795_500_000 });
  const { body } = await send(source, { metrics: [metricOf(id), metricOf('later')] });
  expect(body).toEqual({ success: true, count: 1, refused: [{ index: 1, reason: 'unknown device' }] });
  const [{ device, payload }] = await refusedOf(source);
  const { body: added } = await service.admin('POST', 'objects', { id: device, name: 'later' });
  expect((await service.admin('POST', `objects/${device}/packets`, JSON.parse(payload))).status).toBe(200);
  expect(await packetsOf(added)).toMatchObject([{ time: 1_795_500_000_000, cpu: { idle: 9.5 } }]);
});

async function refusedOf({ _id }: { readonly _id: string }) {
  const { body } = await service.admin('GET', `sources/${_id}/refused`);
  return body as [{ device: string; payload: string }, ...{ device: string; payload: string }[]];
}
