/** Authentication of devices, the end of their connections, and their subscriptions. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { IClientOptions, MqttClient } from 'mqtt';
import { DEVICE_ROLE_ID } from '../../src/core/builtin.js';
import { useService } from '../support/fixture.js';
import { AUTH, connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

let nowMs: number | null = null;
const service = useService({ now: () => nowMs ?? Date.now() });
const clients: MqttClient[] = [];
let count = 0;

afterEach(() => {
  for (const client of clients.splice(0)) client.end(true);
  nowMs = null;
});

const nextId = (): string => `thing-${++count}`;

async function connect(id: string, options: IClientOptions = {}): Promise<MqttClient> {
  const client = await connectDevice(service.service.mqttUrl as string, id, options);
  clients.push(client);
  return client;
}

/** 0 where the device is let in, else the code of CONNACK. */
const codeOf = (connecting: Promise<MqttClient>): Promise<number | undefined> =>
  connecting.then(
    () => 0,
    ({ code }) => code,
  );

const tokenOf = async (scopes: string[]): Promise<string> =>
  (await service.admin('POST', 'tokens', { name: 'x', scopes })).body.token;

describe('authentication', () => {
  test('does not pass a token on to the next object with its id', async () => {
    const id = nextId();
    const first = await createObject(service.admin, id);
    const options = { username: 'any', password: await tokenOf([`POST /objects/${id}/packets`]) };
    expect(await codeOf(connect(id, options))).toBe(0);
    await service.admin('DELETE', `objects/${first}`);
    await createObject(service.admin, id);
    expect(await codeOf(connect(id, options))).toBe(4);
  });

  test('lets a token in for its object by former and present id, and for no successor of the id', async () => {
    const id = nextId();
    const first = await createObject(service.admin, id);
    const options = { username: 'any', password: await tokenOf([`POST /objects/${id}/packets`]) };
    const renamed = nextId();
    await service.admin('PATCH', `objects/${first}`, { id: renamed });
    const second = await createObject(service.admin, id);
    expect(await Promise.all([codeOf(connect(renamed, options)), codeOf(connect(second, options))])).toEqual([0, 4]);
    const device = await connect(id, options);
    await device.publishAsync('base/state', JSON.stringify({ a: 7 }), { qos: 1 });
    const read = async (object: string) => (await service.admin('GET', `objects/${object}/packets`)).body;
    expect(await read(first)).toContainEqual(expect.objectContaining({ a: 7 }));
    expect(await read(second)).toEqual([]);
  });

  test('accepts only the password of the object', async () => {
    const id = nextId();
    const other = nextId();
    const bare = nextId();
    const objectId = await createObject(service.admin, id);
    await createObject(service.admin, other, { config: { auth: { username: 'other', password: 'another key' } } });
    await createObject(service.admin, bare, { config: {} });
    const tries: [string, IClientOptions, number][] = [
      [id, {}, 0],
      [objectId, {}, 0],
      [id, { password: 'wrong' }, 4],
      [id, { username: 'wrong' }, 4],
      [id, { username: '', password: '' }, 4],
      [other, {}, 4],
      [other, { username: 'other', password: 'another key' }, 0],
      [bare, {}, 4],
      [bare, { username: '', password: '' }, 4],
      ['missing', {}, 4],
      [`${id}x`, {}, 4],
      [id.toUpperCase(), {}, 4],
    ];
    const codes = [];
    for (const [clientId, options] of tries) codes.push(await codeOf(connect(clientId, options)));
    expect(codes).toEqual(tries.map(([, , code]) => code));
  });

  test('accepts only a token that may send packets of the object', async () => {
    const id = nextId();
    const other = nextId();
    const objectId = await createObject(service.admin, id);
    await createObject(service.admin, other);
    const own = await tokenOf([`POST /objects/${id}/packets`]);
    const byId = await tokenOf([`POST /objects/${objectId}/packets`]);
    const reading = await tokenOf(['GET /*']);
    const tries: [string, string, number][] = [
      [id, own, 0],
      [objectId, own, 0],
      [id, byId, 0],
      [other, own, 4],
      [id, reading, 4],
      [id, `${own}x`, 4],
    ];
    const codes = [];
    for (const [clientId, password] of tries)
      codes.push(await codeOf(connect(clientId, { username: 'any', password })));
    expect(codes).toEqual(tries.map(([, , code]) => code));
  });

  test('accepts a token of a user with the role `device`', async () => {
    const id = nextId();
    const other = nextId();
    const object = await createObject(service.admin, id);
    await createObject(service.admin, other);
    await service.admin('POST', 'users', { login: id, password: 'long enough', role: DEVICE_ROLE_ID, object });
    const password = await service.tokenOf(id, 'long enough');
    expect(await codeOf(connect(id, { password }))).toBe(0);
    expect(await codeOf(connect(other, { password }))).toBe(4);
  });

  test('refuses the device of an inactive object', async () => {
    const id = nextId();
    await createObject(service.admin, id, { active: false });
    expect(await codeOf(connect(id))).toBe(4);
  });

  test('never returns the password, and keeps it when the object is sent back unchanged', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const { body } = await service.admin('GET', `objects/${id}`);
    expect(body.config.auth).toEqual({ username: AUTH.username, password: expect.stringMatching(/^hmac-sha256:/) });
    const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
    const changed = await service.admin('PATCH', `objects/${id}`, { ...body, status: 'seen' });
    expect(changed.body.config).toEqual(body.config);
    expect(await codeOf(connect(id))).toBe(0);
    // Nor is the stored text a password.
    expect(await codeOf(connect(id, { password: body.config.auth.password }))).toBe(4);
    await service.admin('PATCH', `objects/${id}`, { config: { auth: { password: 'canary-55' } } });
    await service.settled();
    const visible = JSON.stringify([listener.take(), service.logLines, await service.admin('GET', 'objects')]);
    expect(visible).toContain('object-update');
    expect(visible).not.toContain('canary-55');
    listener.close();
  });

  test.each([{ auth: { password: 12 } }, { auth: { password: 'x'.repeat(257) } }, { auth: { username: [] } }])(
    'refuses a password or user name that is not text: %j',
    async (config) => {
      const { status, body } = await service.admin('POST', 'objects', { id: nextId(), name: 'x', config });
      expect([status, body.helper.message]).toEqual([
        400,
        expect.stringMatching(/^config\.auth\.(password|username): /),
      ]);
    },
  );
});

describe('an open connection', () => {
  const changes: [string, (id: string) => Promise<unknown>][] = [
    [
      'a change of its password',
      (id) => service.admin('PATCH', `objects/${id}`, { config: { auth: { password: 'new one' } } }),
    ],
    ['the removal of its password', (id) => service.admin('PATCH', `objects/${id}`, { config: { auth: null } })],
    ['the deactivation of its object', (id) => service.admin('PATCH', `objects/${id}`, { active: false })],
    ['the removal of its object', (id) => service.admin('DELETE', `objects/${id}`)],
  ];

  test.each(changes)('ends after %s', async (_name, change) => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    await service.admin('PATCH', `objects/${id}`, { status: 'still there' });
    await service.settled();
    await device.publishAsync('base/state', '{}', { qos: 1 });
    await change(id);
    await until(() => !device.connected);
  });

  test('ends when its token is revoked or its user loses the permission', async () => {
    const id = nextId();
    const other = nextId();
    const object = await createObject(service.admin, id);
    await createObject(service.admin, other);
    const made = await service.admin('POST', 'tokens', { name: 'x', scopes: [`POST /objects/${id}/packets`] });
    const device = await connect(id, { password: made.body.token });
    await service.admin('DELETE', `tokens/${made.body._id}`);
    await until(() => !device.connected);

    const user = { login: other, password: 'long enough', role: DEVICE_ROLE_ID, object };
    const { body } = await service.admin('POST', 'users', user);
    const second = await connect(id, { password: await service.tokenOf(other, 'long enough') });
    await service.admin('PATCH', `users/${body._id}`, { active: false });
    await until(() => !second.connected);
  });

  test('ends when its token expires', async () => {
    const id = nextId();
    const other = nextId();
    await createObject(service.admin, id);
    const made = await service.admin('POST', 'tokens', { name: 'x', expiresIn: '1h' });
    const device = await connect(id, { password: made.body.token });
    await createObject(service.admin, other);
    // The service checks again after the last 100 ms, when its clock is at the end.
    nowMs = made.body.expiresAt - 100;
    const late = await connect(other, { password: made.body.token });
    nowMs = made.body.expiresAt;
    await until(() => !late.connected, 'the connection to end with its token');
    expect(device.connected).toBe(true);
  });
});

describe('one connection for each device', () => {
  test('ends the older connection when a new one is authenticated with either id', async () => {
    const id = nextId();
    const objectId = await createObject(service.admin, id);
    const first = await connect(id);
    expect(await codeOf(connect(id, { password: 'wrong' }))).toBe(4);
    expect(await codeOf(connect(objectId, { password: 'wrong' }))).toBe(4);
    await first.publishAsync('base/state', '{"n":1}', { qos: 1 });
    const second = await connect(objectId);
    await until(() => !first.connected);
    await second.publishAsync('base/state', '{"n":2}', { qos: 1 });
  });

  test('refuses a device that connects too often', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const codes = [];
    for (let at = 0; at < 17; at++) codes.push(await codeOf(connect(id)));
    expect(codes).toEqual([...Array(15).fill(0), undefined, undefined]);
    const other = nextId();
    await createObject(service.admin, other);
    expect(await codeOf(connect(other))).toBe(0);
  });
});

describe('subscriptions', () => {
  const filters: [filter: string, isGranted: boolean][] = [
    ['base/commands/#', true],
    ['base/commands/+', true],
    ['base/commands/stop', true],
    ['cmnd/thing/POWER', true],
    ['cmnd/thing/+', true],
    ['cmnd/#', true],
    ['cmnd/other/POWER', false],
    ['cmnd/+', false],
    ['#', false],
    ['+', false],
    ['+/commands/#', false],
    ['+/#', false],
    ['base/#', false],
    ['base/+/stop', false],
    ['base/commands', false],
    ['base/commands/stop/result', false],
    ['base/commandsx/#', false],
    ['/base/commands/#', false],
    ['base/state', false],
    ['base/state/#', false],
    ['objects/thing/base/commands/#', false],
    ['$SYS/#', false],
    ['$SYS/+/new/clients', false],
    ['$share/vigil/base/commands/#', false],
  ];

  test('grants only filters of the device', async () => {
    const children = [{ id: 'power', type: 'action', params: { topic: 'cmnd/thing/POWER', payload: 'ON' } }];
    const { body } = await service.admin('POST', 'models', {
      name: 'x',
      data: { id: 'r', type: 'subsystem', children },
    });
    const id = nextId();
    await createObject(service.admin, id, { model: body._id });
    const device = await connect(id);
    const granted = [];
    for (const [filter] of filters) {
      const grants = await device.subscribeAsync(filter, { qos: 1 }).catch((error) => [{ qos: error.code ?? 128 }]);
      granted.push([filter, grants.length > 0 && grants[0]?.qos !== 128]);
      await device.unsubscribeAsync(filter);
    }
    expect(granted).toEqual(filters);
  });

  test('grants at most twenty filters', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    const grants = [];
    for (let at = 0; at < 21; at++) {
      const [grant] = await device.subscribeAsync(`base/commands/c${at}`).catch(() => [{ qos: 128 }]);
      grants.push(grant?.qos === 128 ? 'no' : 'yes');
    }
    expect(grants).toEqual([...Array(20).fill('yes'), 'no']);
  });
});
