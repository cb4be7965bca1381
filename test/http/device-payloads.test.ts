/** What devices and their platforms send: dotted names, identifiers of their own, switches, and fields that cannot be kept. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { entityOf, eventsOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Listener, useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';

const service = useService();
let listener: Listener;
let model: string;
let count = 0;
const devices: MqttClient[] = [];

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const argument = (id: string, dataType: string) => ({ id, type: 'argument', dataType });
  const children = [argument('speed', 'number'), argument('door', 'boolean'), argument('battery.voltage', 'number')];
  model = entityOf(await service.admin('POST', 'models', { name: 'typed', data: { children } }))._id;
});
afterAll(() => {
  for (const device of devices) device.end(true);
});

type Send = (body: unknown) => Promise<void>;
async function create(): Promise<string> {
  const id = `d-${++count}`;
  await createObject(service.admin, id, { model });
  return id;
}

/** Both transports; the function sends a body and resolves when it was accepted or refused. */
const WAYS: [way: string, open: (id: string) => Promise<Send>][] = [
  ['over HTTP', async (id) => async (body) => void (await service.admin('POST', `objects/${id}/packets`, body))],
  [
    'over MQTT',
    async (id) => {
      const device = await connectDevice(service.service.mqttUrl as string, id);
      devices.push(device);
      return async (body) => void (await device.publishAsync('base/state', JSON.stringify(body), { qos: 1 }));
    },
  ],
];

const COMMON = new Set(['_id', '_ts', 'time', 'online', '_oid', 'id', '_gid']);
/** The parameters of the data packets of an object, in the order of arrival. */
async function parametersOf(id: string): Promise<object[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets?sortBy=_ts`);
  const all = (body as object[]).map((packet) =>
    Object.fromEntries(Object.entries(packet).filter(([name]) => !COMMON.has(name))),
  );
  return all.filter((one) => Object.keys(one).length > 0);
}

describe.each(WAYS)('%s', (_, open) => {
  test.each<[sent: object, kept: object]>([
    [
      { 'position.latitude': 43.955_218, 'position.longitude': 37.661_918, 'battery.voltage': '3.938' },
      { position: { latitude: 43.955_218, longitude: 37.661_918 }, battery: { voltage: 3.938 } },
    ],
    [
      { gsm: { 'cell.id': 5 }, list: [{ 'a.b': 1 }] },
      { gsm: { cell: { id: 5 } }, list: [{ a: { b: 1 } }] },
    ],
    [{ position: { speed: 1 }, 'position.angle': 2 }, { position: { speed: 1, angle: 2 } }],
    [{ door: 1 }, { door: true }],
    [
      { door: 'OFF', speed: '12.50' },
      { door: false, speed: 12.5 },
    ],
    [{ time: '', t: 21.5 }, { t: 21.5 }],
    [{ time: ' ', t: 21.5 }, { t: 21.5 }],
    [{ online: 1, t: 21.5 }, { t: 21.5 }],
    [{ online: 'ON', t: 21.5 }, { t: 21.5 }],
    [{ speed: 'fast', t: 21.5, door: 'ajar' }, { t: 21.5 }],
    [{ t: 21.5, $x: 1, a: { $b: 1 }, 'c..d': 1 }, { t: 21.5 }],
    [{ _id: { $oid: 'x' }, online: 'maybe', t: 21.5 }, { t: 21.5 }],
  ])('stores %j', async (sent, kept) => {
    const id = await create();
    await (await open(id))(sent);
    expect(await parametersOf(id)).toEqual([kept]);
    const { state } = entityOf(await service.admin('GET', `objects/${id}`));
    expect(state).toMatchObject({ online: true, ...kept });
  });

  test('recognizes what is sent again by an identifier of any form', async () => {
    const id = await create();
    const send = await open(id);
    await service.settled();
    listener.take();
    for (const _id of ['2b021f63', 7, '2b021f63', 7, '7']) await send({ _id, lat: 45, lon: 9 });
    await send([
      { _id: '2b021f63', lat: 45, lon: 9 },
      { _id: 'next', lat: 46 },
    ]);
    const expected = ['2b021f63', 7, '7', 'next'];
    expect((await parametersOf(id)).map((one) => (one as { messageId: unknown }).messageId)).toEqual(expected);
    await service.settled();
    const events = eventsOf(listener.take()) as { payload: { id: string; messageId: unknown } }[];
    const own = events.filter(({ payload }) => payload.id === id && payload.messageId !== undefined);
    expect(own.map(({ payload }) => payload.messageId)).toEqual(expected);
  });

  test('stores what a counter that began anew identifies, and only repeats once', async () => {
    const id = await create();
    const send = await open(id);
    await service.settled();
    listener.take();
    const sent = [
      { _id: 1, bolt: 'open' },
      { _id: 2, bolt: 'open', time: 1_700_000_000 },
      { _id: 1, bolt: 'closed' },
      { _id: 2, bolt: 'closed', time: 1_700_000_000 },
    ];
    for (const one of sent) await send(one);
    for (const one of sent) await send(one);
    await send([...sent, { _id: 1, bolt: 'ajar' }]);
    const expected = [...sent.map(({ bolt }) => bolt), 'ajar'];
    expect((await parametersOf(id)).map((one) => (one as { bolt: unknown }).bolt)).toEqual(expected);
    await service.settled();
    const events = eventsOf(listener.take()) as { payload: { id: string; bolt: unknown } }[];
    const own = events.filter(({ payload }) => payload.id === id && payload.bolt !== undefined);
    expect(own.map(({ payload }) => payload.bolt)).toEqual(expected);
  });

  test('tells at the object which fields it left out', async () => {
    const id = await create();
    const send = await open(id);
    await send({ speed: 'fast', t: 1 });
    await send([{ t: 2 }, { t: 3, $x: 1 }, { door: 'ajar' }]);
    expect(await parametersOf(id)).toEqual([{ t: 1 }, { t: 2 }, { t: 3 }]);
    const { body } = await service.admin('GET', `objects/${id}/refused`);
    const told = body.map(({ index, reason }: { index: number | null; reason: string }) => [
      index,
      reason.split(':')[0],
    ]);
    expect(new Set(told)).toEqual(
      new Set([
        [null, 'speed'],
        [1, '"$x"'],
        [2, 'door'],
      ]),
    );
  });

  test('refuses a packet in which two fields have the same place', async () => {
    const id = await create();
    await (await open(id))({ a: 1, 'a.b': 2, t: 1 });
    expect(await parametersOf(id)).toEqual([]);
    const { body } = await service.admin('GET', `objects/${id}/refused`);
    expect(body).toMatchObject([{ index: null, reason: '"a.b": another field of the packet has this place' }]);
  });
});

test('answers which packets of an array are stored without some of their fields, and stores none with atomic=true', async () => {
  const id = await create();
  const sent = [{ t: 1, speed: 'fast', $x: 1 }, { t: 2 }, { speed: 'slow' }];
  const incomplete = [{ index: 0, reason: expect.stringMatching(/^speed: expected number.*; "\$x": a field name/) }];
  const refused = [{ index: 2, reason: expect.stringMatching(/^speed: expected number/) }];
  const atomic = await service.admin('POST', `objects/${id}/packets?atomic=true`, sent);
  expect([atomic.status, atomic.body.count, atomic.body.refused]).toEqual([400, 0, [...incomplete, ...refused]]);
  expect(await parametersOf(id)).toEqual([]);
  const { status, body } = await service.admin('POST', `objects/${id}/packets`, sent);
  expect([status, body]).toEqual([200, { success: true, count: 2, refused, incomplete }]);
  expect(await parametersOf(id)).toEqual([{ t: 1 }, { t: 2 }]);
});

test.each([
  [{ speed: 'fast' }, 'speed: expected number'],
  [{ online: 'maybe' }, 'online: expected a boolean'],
  [{ a: { $b: 1 } }, '"a.$b": a field name'],
  [{ 'a.b': 1, a: 2 }, '"a": another field of the packet has this place'],
])('refuses a packet of which nothing is left: %j', async (sent, why) => {
  const id = await create();
  expectRefusal(await service.admin('POST', `objects/${id}/packets`, sent), 400, why);
  expect(await parametersOf(id)).toEqual([]);
});
