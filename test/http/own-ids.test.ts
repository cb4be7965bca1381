/** An object's own id names that object and no other: not all of them, not the one with that `_id`, not nothing. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEVICE_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf, eventsOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { startTestService, type TestService, useService } from '../support/fixture.js';
import { AUTH, connectDevice } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const create = async (id: string, more: object = {}) =>
  entityOf(await service.admin('POST', 'objects', { id, name: id, ...more }));
const deviceOf = (object: string | null) =>
  createPerson(service, { role: DEVICE_ROLE_ID, ...(object !== null && { object }) });
const objects = () => service.client.db().collection('objects');

const HEX = '65a0000000000000000000ab';
const NAMELESS = [
  '*',
  HEX,
  HEX.toUpperCase(),
  '',
  ' ',
  '\u00a0\u2003 ',
  '\ufeff',
  '.',
  '..',
  ' .. ',
  ` ${HEX}\u3000`,
  '\u200b',
  '\u00ad\u2060',
  '\u3164',
  '\u2800',
  'a\ud800',
  // Looking for the blanks at its end must not take the square of its length.
  `a${'\u00a0'.repeat(250_000)}b`,
];

test.each(NAMELESS)('refuses %j for a new object, and for one that is there', async (id) => {
  expectRefusal(await service.admin('POST', 'objects', { id, name: 'x' }), 400, 'id');
  const { _id } = await create(`renamed-${new ObjectId()}`);
  expectRefusal(await service.admin('PATCH', `objects/${_id}`, { id }), 400, 'id');
});

test('refuses a long id with blanks inside, without a search for those at its end that takes the square of its length', async () => {
  const id = `a${'\u00a0'.repeat(250_000)}b`;
  expectRefusal(await service.admin('POST', 'objects', { id, name: 'x' }), 400, 'id');
});

test.each(['a+b', '+', '**', 'a*', 'Wagen 7', ':object', HEX.slice(1), `${HEX}0`, '@home', '車'])(
  'accepts %j, and finds the object by it',
  async (id) => {
    const { _id } = await create(id);
    const path = `objects/${encodeURIComponent(id)}`;
    expect((await service.admin('GET', path)).body._id).toBe(_id);
    expect((await service.admin('PATCH', path, { status: 'x' })).body._id).toBe(_id);
    expect((await service.admin('POST', `${path}/packets`, {})).body._oid).toBe(_id);
    expect((await service.admin('GET', `objects?where.id=${encodeURIComponent(id)}`)).body).toHaveLength(1);
    const device = await deviceOf(_id);
    expect((await device.call('GET', path)).body._id).toBe(_id);
  },
);

test.each([
  [' truck 9\u00a0', 'truck 9'],
  ['Zu\u0308rich', 'Zürich'],
  ['\u212bngstro\u0308m', 'Ångström'],
  ['\u3000\u30ab\u3099\ufeff', 'ガ'],
  ['\u200btruck 10\u200e', 'truck 10'],
  ['\u2068סמל\u2069', 'סמל'],
])('stores %j in NFC without outer blanks, and finds the object by each form of it', async (given, id) => {
  const { _id, ...stored } = await create(given, { config: { auth: AUTH } });
  expect(stored.id).toBe(id);
  expectRefusal(await service.admin('POST', 'objects', { id, name: 'x' }), 409);
  const device = await deviceOf(_id);
  for (const form of [given, id, id.normalize('NFD'), ` ${id}`]) {
    const segment = encodeURIComponent(form);
    expect((await service.admin('GET', `objects/${segment}`)).body._id).toBe(_id);
    expect((await service.admin('GET', `objects?where.id=${segment}`)).body).toHaveLength(1);
    expect((await service.admin('PATCH', `objects/${_id}`, { id: form })).body.id).toBe(id);
    if (form === form.trim()) expect((await device.call('GET', `objects/${segment}`)).body._id).toBe(_id);
    const client = await connectDevice(service.service.mqttUrl as string, form);
    client.end(true);
  }
});

test.each(['.', '..'])('refuses the command %j, which no address can name', async (name) => {
  const { _id } = await create(`commanded-${new ObjectId()}`);
  expectRefusal(await service.admin('POST', `objects/${_id}/commands/${name}`, {}), 400, 'command');
  const data = { children: [{ id: name, type: 'action' }] };
  expectRefusal(await service.admin('POST', 'models', { name: 'x', data }), 400, 'data');
});

describe('an invalid id that another program stored', () => {
  let victim: { _id: string };
  /** By the own id of each: its `_id`, and the user of its device. */
  const invalid = new Map<string, { _id: string; device: Person }>();

  beforeAll(async () => {
    victim = await create('victim', { config: { auth: AUTH } });
    for (const id of ['*', victim._id, HEX, ' ']) {
      const { _id } = await create(`invalid-${invalid.size}`, { config: { auth: AUTH } });
      await objects().updateOne({ _id: new ObjectId(_id) }, { $set: { id } });
      invalid.set(id, { _id, device: await deviceOf(_id) });
    }
  });

  test('names no object in any path', async () => {
    for (const [id, { _id }] of invalid) {
      const path = `objects/${encodeURIComponent(id)}`;
      for (const [method, below, body] of [
        ['GET', ''],
        ['PATCH', '', { note: 'taken' }],
        ['GET', '/packets'],
        ['POST', '/packets', { note: 'taken' }],
        ['POST', '/commands/stop', {}],
        ['POST', '/access', { user: 'f'.repeat(24) }],
        ['DELETE', ''],
      ] as const) {
        // The victim is found by its `_id`, as ever.
        if (id === victim._id) continue;
        expect([id, method, below, (await service.admin(method, path + below, body)).status]).toEqual([
          id,
          method,
          below,
          404,
        ]);
      }
      expect((await service.admin('GET', `objects/${_id}`)).body).toMatchObject({ _id, id });
    }
    expect((await service.admin('GET', `objects/${victim._id}`)).body).toMatchObject({ _id: victim._id, id: 'victim' });
  });

  test('gives its device no access to another object: no reads, events or commands', async () => {
    // Later listeners do not receive what the tests before have changed.
    await service.settled();
    for (const [id, { _id, device }] of invalid) {
      const listener = await service.listen(device.token);
      for (const name of [id, 'victim', victim._id]) {
        const path = `objects/${encodeURIComponent(name)}`;
        expect([id, (await device.call('GET', path)).status]).toEqual([id, 403]);
        expect([id, (await device.call('GET', `${path}/commands`)).status]).toEqual([id, 403]);
        expect([id, (await device.call('POST', `${path}/packets`, { n: 1 })).status]).toEqual([id, 403]);
        expect(await listener.subscribe({ objects: [name] })).toEqual({ success: true, objects: [] });
      }
      await listener.subscribe({});
      await service.admin('POST', `objects/${victim._id}/packets`, { of: 'victim' });
      expect((await device.call('POST', `objects/${_id}/packets`, { of: id })).status).toBe(200);
      await service.settled();
      const received = eventsOf(listener.take()) as { payload: { _oid?: string } }[];
      expect(received.map(({ payload }) => payload._oid)).toEqual([_id]);
      listener.close();
    }
  });

  test('is refused over MQTT, where the `_id` is accepted', async () => {
    const url = service.service.mqttUrl as string;
    for (const [id, { _id }] of invalid) {
      if (id !== victim._id) await expect(connectDevice(url, id)).rejects.toThrow();
      const client = await connectDevice(url, _id);
      await client.publishAsync('base/state', JSON.stringify({ over: _id }), { qos: 1 });
      client.end(true);
      const { body } = await service.admin('GET', `objects/${_id}/packets?where.over=${_id}`);
      expect(body).toHaveLength(1);
    }
  });

  test('is replaced through the `_id`, and the new id works at once', async () => {
    const { _id, device } = invalid.get('*') as { _id: string; device: Person };
    expect((await service.admin('PATCH', `objects/${_id}`, { status: 'as it is' })).body.status).toBe('as it is');
    expect((await service.admin('PATCH', `objects/${_id}`, { id: 'named again' })).body.id).toBe('named again');
    expect((await service.admin('GET', 'objects/named%20again')).body._id).toBe(_id);
    expect((await device.call('GET', 'objects/named%20again')).body._id).toBe(_id);
  });
});

test('gives the device of an id with a blank at its end, stored by another program, no access to the id without it', async () => {
  const victim = await create('watched');
  const { _id } = await create('watched-by');
  await objects().updateOne({ _id: new ObjectId(_id) }, { $set: { id: 'watched ' } });
  const device = await deviceOf(_id);
  for (const path of ['objects/watched', 'objects/watched%20', `objects/${victim._id}`]) {
    expect((await device.call('GET', path)).status).toBe(403);
    expect((await device.call('POST', `${path}/packets`, { n: 1 })).status).toBe(403);
  }
});

describe('the device of an object', () => {
  let other: TestService;
  beforeAll(async () => {
    other = await startTestService({}, service.mongodbUri);
  });
  afterAll(async () => {
    await other.service.stop();
    await other.client.close();
  });

  test('reaches its own object by an id that another object has taken over, and never that one', async () => {
    const own = await create('handed-over');
    const person = await deviceOf(own._id);
    expect((await person.call('GET', 'objects/handed-over')).body._id).toBe(own._id);
    await other.admin('PATCH', `objects/${own._id}`, { id: 'given up' });
    const next = entityOf(await other.admin('POST', 'objects', { id: 'handed-over', name: 'Next' }));
    const answers = new Set<string>();
    await until(async () => {
      const { status, body } = await person.call('GET', 'objects/handed-over');
      answers.add(status === 200 ? body._id : String(status));
      return status === 403;
    }, 'this instance has seen it');
    expect([...answers]).not.toContain(next._id);
    expect((await person.call('GET', 'objects/given%20up')).body._id).toBe(own._id);
  });

  test('has no permissions without an object, even if one is called `:object`', async () => {
    const [found] = (await service.admin('GET', 'objects?where.id=:object')).body;
    const { _id } = found ?? (await create(':object'));
    const unassigned = await deviceOf(null);
    for (const key of [':object', '%3Aobject', _id]) {
      expectRefusal(await unassigned.call('GET', `objects/${key}`), 403);
      expectRefusal(await unassigned.call('POST', `objects/${key}/packets`, {}), 403);
    }
    const listener = await service.listen(unassigned.token);
    await service.admin('POST', `objects/${_id}/packets`, {});
    await service.settled();
    expect(listener.take()).toEqual([]);
    listener.close();
  });
});
