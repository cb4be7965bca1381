/** An object's `state`: its last packet with data, with `online` as it is now, however it is asked for. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const NOW = Date.now() - 1_000_000;
let count = 0;

const nextId = (): string => `state-${++count}`;
const create = async (fields: object = {}) => {
  const id = nextId();
  return (await service.admin('POST', 'objects', { id, name: 'State', ...fields })).body as { _id: string; id: string };
};
const send = async (id: string, body: object): Promise<void> => {
  expect((await service.admin('POST', `objects/${id}/packets`, body)).status).toBe(200);
};
// biome-ignore lint/suspicious/noExplicitAny: states of every shape
const stateOf = async (id: string): Promise<any> => (await service.admin('GET', `objects/${id}`)).body.state;

describe('a packet with only presence', () => {
  test.each<[how: string, ask: (object: { _id: string; id: string }) => Promise<unknown>]>([
    ['by _id', async ({ _id }) => stateOf(_id)],
    ['by its own id', async ({ id }) => stateOf(id)],
    ['in a list', async ({ id }) => (await service.admin('GET', `objects?where.id=${id}`)).body[0].state],
    [
      'as the first of a count',
      async ({ id }) => (await service.admin('GET', `objects?where.id=${id}&meta=1`)).body.first.state,
    ],
    ['with only=state', async ({ id }) => (await service.admin('GET', `objects/${id}?only=name,state`)).body.state],
    [
      'in the answer to a change',
      async ({ id }) => (await service.admin('PATCH', `objects/${id}`, { status: 'x' })).body.state,
    ],
    ['in the answer to its removal', async ({ id }) => (await service.admin('DELETE', `objects/${id}`)).body.state],
  ])('keeps earlier values in the state, requested %s', async (_, ask) => {
    const object = await create();
    await send(object.id, [
      { time: NOW, lat: 1, lon: 2 },
      { time: NOW + 1_000, lat: 3, lon: 4 },
    ]);
    await send(object.id, { time: NOW + 2_000, online: false });
    expect(await ask(object)).toMatchObject({ time: NOW + 1_000, lat: 3, lon: 4, online: false, _oid: object._id });
  });

  test.each<[only: string, state: object]>([
    ['state.lat', { lat: 3 }],
    ['state.online', { online: false }],
    ['state.lat,state.online', { lat: 3, online: false }],
    ['state.time,state.pos.x', { time: NOW, pos: { x: 1 } }],
    ['state.nothing', {}],
  ])('keeps them, of %s, in lists and single reads', async (only, state) => {
    const object = await create();
    const other = await create();
    const packet = { time: NOW, lat: 3, pos: { x: 1, y: 2 } };
    for (const { id } of [object, other]) await send(id, [packet, { time: NOW + 1, online: false }]);
    const expected = { _id: expect.any(String), ...state };
    expect((await service.admin('GET', `objects/${object.id}?only=${only}`)).body.state).toEqual(expected);
    const list = await service.admin('GET', `objects?where.id=${object.id},${other.id}&only=${only}`);
    expect(list.body.map((one: { state: object }) => one.state)).toEqual([expected, expected]);
  });

  test('remains in the history, and is published', async () => {
    const object = await create();
    // Later subscribers receive no packets of earlier tests.
    await service.settled();
    const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
    await send(object.id, { time: NOW, lat: 1 });
    await send(object.id, { time: NOW + 1, online: false });
    await service.settled();
    expect(listener.take().map(({ name, payload }) => [name, payload.online])).toEqual([
      ['object-packet', true],
      ['object-packet', false],
    ]);
    listener.close();
    const { body } = await service.admin('GET', `objects/${object.id}/packets`);
    expect(body.map(({ online }: { online: boolean }) => online)).toEqual([true, false]);
  });

  test('is the state if there is no other packet', async () => {
    const object = await create();
    await send(object.id, { time: NOW, online: true });
    await send(object.id, { time: NOW + 1, online: false });
    expect(await stateOf(object.id)).toMatchObject({ time: NOW + 1, online: false });
  });

  test.each([
    [10, true],
    [LIMITS.statePackets - 1, true],
    [LIMITS.statePackets, false],
  ])('keeps the state after %i in a row: %p', async (times, isLeft) => {
    const object = await create();
    const other = await create();
    const presences = Array.from({ length: times }, (_, at) => ({ time: NOW + 1 + at, online: at % 2 === 1 }));
    for (const { id } of [object, other]) {
      await send(id, { time: NOW, lat: 1 });
      await send(id, presences);
    }
    const expected = { time: isLeft ? NOW : NOW + times, online: times % 2 === 0, ...(isLeft && { lat: 1 }) };
    const state = await stateOf(object.id);
    expect([state, Object.hasOwn(state, 'lat')]).toMatchObject([expected, isLeft]);
    const { body } = await service.admin('GET', `objects?where.id=${object.id},${other.id}&only=state`);
    expect(body.map((one: { state: object }) => one.state)).toMatchObject([expected, expected]);
  });
});

describe('data of a clock that is years behind, below more reports of presence than are searched', () => {
  test.each([['2007-03-01T12:00:00Z'], ['2016-06-01T12:00:00Z'], ['2001-01-01T00:00:00Z']])(
    'is the state, and has the latest values, at %s',
    async (at) => {
      const object = await create();
      await send(object.id, [
        { time: Date.parse(at) - 1_000, speed: 1, fuel: 9 },
        { time: Date.parse(at), speed: 2 },
      ]);
      const presences = Array.from({ length: LIMITS.statePackets + 5 }, (_, nth) => ({
        time: NOW + nth,
        online: true,
      }));
      await send(object.id, presences);
      const expected = { time: Date.parse(at), speed: 2, online: true };
      expect(await stateOf(object.id)).toMatchObject(expected);
      const { body } = await service.admin('GET', `objects?where.id=${object.id}&state=latest-of-each`);
      expect(body[0].latest).toMatchObject({ speed: { value: 2, time: Date.parse(at) }, fuel: { value: 9 } });
    },
  );
});

describe('a packet with data', () => {
  test('is the state if it is later than presence', async () => {
    const object = await create();
    await send(object.id, [
      { time: NOW, lat: 1 },
      { time: NOW + 1, online: false },
      { time: NOW + 2, speed: 5 },
    ]);
    const state = await stateOf(object.id);
    expect([state, Object.hasOwn(state, 'lat')]).toMatchObject([{ time: NOW + 2, speed: 5, online: true }, false]);
  });

  test('is the state if it arrives late and no other one with data is later', async () => {
    const object = await create();
    await send(object.id, [
      { time: NOW, lat: 1 },
      { time: NOW + 1_000, online: true },
    ]);
    await send(object.id, { time: NOW + 500, lat: 2 });
    expect(await stateOf(object.id)).toMatchObject({ time: NOW + 500, lat: 2, online: true });
    await send(object.id, { time: NOW + 400, lat: 3 });
    expect(await stateOf(object.id)).toMatchObject({ time: NOW + 500, lat: 2 });
  });

  test('sets the object offline if it contains that', async () => {
    const object = await create();
    await send(object.id, { time: NOW, lat: 1, online: false });
    expect(await stateOf(object.id)).toMatchObject({ lat: 1, online: false });
  });
});

test('shows the position of a disconnected device as offline, and as online when it is back', async () => {
  const id = nextId();
  await createObject(service.admin, id);
  const url = service.service.mqttUrl as string;
  const device = await connectDevice(url, id);
  await device.publishAsync('base/state', '{"lat":48.1,"lon":11.6,"fuel":60}', { qos: 1 });
  await device.endAsync();
  await until(async () => (await stateOf(id)).online === false);
  const position = { lat: 48.1, lon: 11.6, fuel: 60 };
  expect(await stateOf(id)).toMatchObject(position);
  const back = await connectDevice(url, id);
  expect(await stateOf(id)).toMatchObject({ ...position, online: true });
  const { body } = await service.admin('GET', `objects?where.id=${id}`);
  expect(body[0].state).toMatchObject({ ...position, online: true });
  await back.endAsync();
});

test('belongs to its own object in a list of many', async () => {
  const objects = await Promise.all(Array.from({ length: 12 }, () => create({ status: 'many' })));
  await Promise.all(
    objects.map(({ id }, at) => {
      const data = at % 4 === 3 ? [] : [{ time: NOW, at }];
      const presence = at % 2 === 0 ? [] : [{ time: NOW + 1, online: false }];
      return send(id, [...data, ...presence]);
    }),
  );
  const { body } = await service.admin('GET', 'objects?where.status=many&only=id,state.at,state.online');
  const shown = new Map(
    body.map(({ id, state }: { id: string; state: { at?: number; online: boolean } }) => [
      id,
      [state.at, state.online],
    ]),
  );
  expect(objects.map(({ id }) => shown.get(id))).toEqual(
    objects.map((_, at) => [at % 4 === 3 ? undefined : at, at % 2 === 0]),
  );
});
