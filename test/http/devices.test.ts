/** The role `device`: a user who is the device of one object, and of no other. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEVICE_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { startTestService, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const create = async (path: string, fields: object) => entityOf(await service.admin('POST', path, fields));
const object = (id = `thing-${new ObjectId()}`, more: object = {}) => create('objects', { id, name: 'x', ...more });
const deviceOf = (of: string | undefined, more: object = {}) =>
  createPerson(service, { role: DEVICE_ROLE_ID, ...(of && { object: of }), ...more });

/** Every request a device may make of its own object, and what it may never. */
const MAY = (key: string) =>
  [
    ['GET', `objects/${key}`],
    ['HEAD', `objects/${key}`],
    ['GET', `objects/${key}?only=state`],
    ['POST', `objects/${key}/packets`, { a: 1 }],
    ['POST', `objects/${key}/packets`, [{ a: 1 }, { a: 2 }]],
    ['GET', `objects/${key}/commands`],
    ['GET', `objects/${key}/commands?status=queued&wait=0.001`],
  ] as const;
const NEVER = (key: string) =>
  [
    ['PATCH', `objects/${key}`, { status: 'x' }],
    ['DELETE', `objects/${key}`],
    ['GET', `objects/${key}/packets`],
    ['POST', `objects/${key}/commands/stop`, {}],
    ['POST', `/objects/${key}/commands/stop`, {}],
    ['POST', `objects/${key}/access`, { user: 'f'.repeat(24) }],
    ['GET', 'objects'],
    ['GET', 'objects?meta=true'],
    ['POST', 'objects', { id: 'made', name: 'made' }],
    ['GET', 'users'],
    ['GET', 'commands'],
    ['GET', 'audit'],
    ['POST', 'tokens', { name: 'x' }],
  ] as const;
type Request = readonly [method: string, path: string, body?: unknown];

async function statuses(person: Person, requests: readonly Request[]): Promise<unknown[]> {
  const found = [];
  for (const [method, path, body] of requests)
    found.push([method, path, (await person.call(method, path, body)).status]);
  return found;
}
const all = (status: number, requests: readonly Request[]) => requests.map(([method, path]) => [method, path, status]);

describe('a device', () => {
  test('loses its object when null is set for it, and every right with it', async () => {
    const { _id } = await object();
    const device = await deviceOf(_id);
    expect((await device.call('GET', `objects/${_id}`)).status).toBe(200);
    const after = entityOf(await service.admin('PATCH', `users/${device.id}`, { object: null, email: null }));
    expect(Object.keys(after)).not.toEqual(expect.arrayContaining(['object']));
    expect(await statuses(device, MAY(_id))).toEqual(all(403, MAY(_id)));
    expect((await deviceOf(undefined, { object: null, email: null })).token).toEqual(expect.any(String));
    expectRefusal(await service.admin('PATCH', `users/${device.id}`, { role: null }), 400, 'role');
  });

  test('uses its own object by either id, and no other', async () => {
    const own = await object();
    const other = await object();
    const device = await deviceOf(own._id);
    for (const key of [own._id, own.id]) {
      expect(await statuses(device, MAY(key))).toEqual(all(200, MAY(key)));
      expect(await statuses(device, NEVER(key))).toEqual(all(403, NEVER(key)));
    }
    const before = (await service.admin('GET', `objects/${other._id}`)).text;
    for (const key of [other._id, other.id, `${own.id}x`, '*', ':object', '%3Aobject', '%2A', 'f'.repeat(24)]) {
      expect(await statuses(device, MAY(key))).toEqual(all(403, MAY(key)));
      expect(await statuses(device, NEVER(key))).toEqual(all(403, NEVER(key)));
    }
    expect((await service.admin('GET', `objects/${other._id}`)).text).toBe(before);
    expect((await device.call('GET', 'auth')).body).toMatchObject({ _id: device.id, object: own._id });
  });

  test('has no permissions without an object, or after its removal, even if another object takes the id', async () => {
    const own = await object();
    const without = await deviceOf(undefined);
    const left = await deviceOf(own._id);
    expect(await statuses(without, MAY(own._id))).toEqual(all(403, MAY(own._id)));
    expect((await left.call('GET', `objects/${own.id}`)).status).toBe(200);
    entityOf(await service.admin('DELETE', `objects/${own._id}`));
    const next = await object(own.id);
    for (const key of [own._id, own.id, next._id]) {
      expect(await statuses(left, MAY(key))).toEqual(all(403, MAY(key)));
    }
  });

  test.each(['my device 1', '**', 'a*', '%', '%2F', 'é 你好', ':object', ':', '+', '?', 'a&b=c', '\\', "'"])(
    'is limited to its object if that has the own id %j',
    async (id) => {
      const own = await object(id);
      const other = await object();
      const device = await deviceOf(own._id);
      const key = encodeURIComponent(id);
      expect(await statuses(device, MAY(key))).toEqual(all(200, MAY(key)));
      expect(await statuses(device, NEVER(key))).toEqual(all(403, NEVER(key)));
      for (const another of [other._id, other.id]) {
        expect(await statuses(device, MAY(another))).toEqual(all(403, MAY(another)));
      }
      entityOf(await service.admin('DELETE', `objects/${own._id}`));
    },
  );

  test('receives events of its object only', async () => {
    const own = await object();
    const other = await object();
    const listener = await service.listen((await deviceOf(own._id)).token);
    expect(await listener.subscribe({ objects: [own._id, other._id] })).toEqual({ success: true, objects: [own._id] });
    expect(await listener.subscribe({})).toMatchObject({ success: true });
    for (const { _id } of [own, other]) {
      await service.admin('POST', `objects/${_id}/packets`, { n: 1 });
      await service.admin('PATCH', `objects/${_id}`, { status: 'new' });
    }
    await service.settled();
    const received = listener.take().map(({ name, payload }) => [name, payload._oid ?? payload.id]);
    expect(received).toEqual([
      ['object-packet', own._id],
      ['object-update', own._id],
    ]);
    listener.close();
  });

  test('follows its object to another id, at once, on every instance', async () => {
    const there = await startTestService({}, service.mongodbUri);
    try {
      const own = await object();
      const device = await deviceOf(own._id);
      const onOther = there.as(device.token);
      expect((await onOther('GET', `objects/${own.id}`)).status).toBe(200);
      const id = `${own.id}-renamed`;
      entityOf(await service.admin('PATCH', `objects/${own._id}`, { id }));
      const asked: Request[] = [
        ['GET', `objects/${id}`],
        ['GET', `objects/${own._id}`],
      ];
      expect(await statuses(device, asked)).toEqual(all(200, asked));
      expectRefusal(await device.call('GET', `objects/${own.id}`), 403);
      await until(async () => (await onOther('GET', `objects/${own.id}`)).status === 403, 'renamed there');
      expect((await onOther('GET', `objects/${id}`)).status).toBe(200);
    } finally {
      await there.service.stop();
      await there.client.close();
    }
  });

  test('uses another object as soon as it is assigned to it', async () => {
    const first = await object();
    const second = await object();
    const device = await deviceOf(first._id);
    entityOf(await service.admin('PATCH', `users/${device.id}`, { object: second._id }));
    expect(await statuses(device, MAY(first._id))).toEqual(all(403, MAY(first._id)));
    expect(await statuses(device, MAY(second._id))).toEqual(all(200, MAY(second._id)));
  });
});

describe('the object of a user', () => {
  test.each(['f'.repeat(24), 'x', 1, '', [], { $ne: null }])('is refused if it does not exist: %j', async (of) => {
    const login = `u-${new ObjectId()}`;
    const fields = { login, password: 'long enough', role: DEVICE_ROLE_ID, object: of };
    expectRefusal(await service.admin('POST', 'users', fields), 400, 'object');
    const device = await deviceOf((await object())._id);
    expectRefusal(await service.admin('PATCH', `users/${device.id}`, { object: of }), 400, 'object');
  });

  let group: string;
  beforeAll(async () => {
    group = (await create('groups', { name: 'own' }))._id;
  });

  test('is refused if the caller does not see it', async () => {
    const role = (await create('roles', { name: 'all', credentials: ['* /*'] }))._id;
    const admin = await createPerson(service, { group, role });
    const inside = await object(undefined, { group });
    const outside = await object();
    const fields = () => ({ login: `u-${new ObjectId()}`, password: 'long enough', role: DEVICE_ROLE_ID });
    expectRefusal(await admin.call('POST', 'users', { ...fields(), object: outside._id }), 400, 'object');
    const { _id } = entityOf(await admin.call('POST', 'users', { ...fields(), object: inside._id }));
    expectRefusal(await admin.call('PATCH', `users/${_id}`, { object: outside._id }), 400, 'object');
  });

  test('grants no rights that the caller lacks: neither to others nor to the caller', async () => {
    const own = await object(undefined, { group });
    const other = await object(undefined, { group });
    // A device that may change itself, as in a role somebody wrote for that.
    const credentials = ['GET /objects/:object', 'PATCH /users/*', 'POST /users', 'GET /users/*', 'GET /roles/*'];
    const role = (await create('roles', { name: 'self', credentials, group }))._id;
    const device = await createPerson(service, { group, role, object: own._id });
    expect((await device.call('GET', `objects/${own._id}`)).status).toBe(200);
    expectRefusal(await device.call('PATCH', `users/${device.id}`, { object: other._id }), 403);
    expectRefusal(await device.call('GET', `objects/${other._id}`), 403);
    const made = { login: `u-${new ObjectId()}`, password: 'long enough', role, object: own._id };
    expectRefusal(await device.call('POST', 'users', made), 403);
    // What it is already, it may say again; and the rest of itself it may change.
    entityOf(await device.call('PATCH', `users/${device.id}`, { object: own._id, name: 'me' }));
  });
});
