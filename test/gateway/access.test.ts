/** Who may connect as a device, for how long, and what it may listen to. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { IClientOptions, MqttClient } from 'mqtt';
import { DEVICE_ROLE_ID } from '../../src/model/builtin.js';
import { useService } from '../support/fixture.js';
import { AUTH, connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const clients: MqttClient[] = [];
let count = 0;

afterEach(() => {
  for (const client of clients.splice(0)) client.end(true);
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

describe('a device proves to be one', () => {
  test('by its own password: nothing else is let in', async () => {
    const [id, other, bare] = [nextId(), nextId(), nextId()];
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
      ['nobody', {}, 4],
      [`${id} `, {}, 4],
      [id.toUpperCase(), {}, 4],
    ];
    const codes = [];
    for (const [clientId, options] of tries) codes.push(await codeOf(connect(clientId, options)));
    expect(codes).toEqual(tries.map(([, , code]) => code));
  });

  test('by a token that may send its packets, and no other', async () => {
    const [id, other] = [nextId(), nextId()];
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

  test('by a token of its user, whose role is `device`', async () => {
    const [id, other] = [nextId(), nextId()];
    const object = await createObject(service.admin, id);
    await createObject(service.admin, other);
    await service.admin('POST', 'users', { login: id, password: 'long enough', role: DEVICE_ROLE_ID, object });
    const password = await service.tokenOf(id, 'long enough');
    expect(await codeOf(connect(id, { password }))).toBe(0);
    expect(await codeOf(connect(other, { password }))).toBe(4);
  });

  test('an object that is not active has no device', async () => {
    const id = nextId();
    await createObject(service.admin, id, { active: false });
    expect(await codeOf(connect(id))).toBe(4);
  });

  test('the password is never shown, and an object that is sent back as it was read keeps it', async () => {
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
    const told = JSON.stringify([listener.take(), service.logLines, await service.admin('GET', 'objects')]);
    expect(told).toContain('object-update');
    expect(told).not.toContain('canary-55');
    listener.close();
  });

  test.each([{ auth: { password: 12 } }, { auth: { password: 'x'.repeat(257) } }, { auth: { username: [] } }])(
    'a password or user name that is no text is a 400: %j',
    async (config) => {
      const { status, body } = await service.admin('POST', 'objects', { id: nextId(), name: 'x', config });
      expect([status, body.helper.message]).toEqual([
        400,
        expect.stringMatching(/^config\.auth\.(password|username): /),
      ]);
    },
  );
});

describe('only as long as the proof holds', () => {
  const changes: [string, (id: string) => Promise<unknown>][] = [
    [
      'another password',
      (id) => service.admin('PATCH', `objects/${id}`, { config: { auth: { password: 'new one' } } }),
    ],
    ['no password', (id) => service.admin('PATCH', `objects/${id}`, { config: { auth: null } })],
    ['not active', (id) => service.admin('PATCH', `objects/${id}`, { active: false })],
    ['removed', (id) => service.admin('DELETE', `objects/${id}`)],
  ];

  test.each(changes)('%s: the connection ends', async (_name, change) => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    await service.admin('PATCH', `objects/${id}`, { status: 'still there' });
    await service.settled();
    await device.publishAsync('base/state', '{}', { qos: 1 });
    await change(id);
    await until(() => !device.connected);
  });

  test('a token that is revoked, or whose user may no more', async () => {
    const [id, other] = [nextId(), nextId()];
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

  test('a token that ends', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const made = await service.admin('POST', 'tokens', { name: 'x', expiresIn: 2_000 });
    const device = await connect(id, { password: made.body.token });
    await until(() => !device.connected);
    expect(Date.now()).toBeGreaterThanOrEqual(made.body.expiresAt);
  });
});

describe('one connection for each device', () => {
  test('the newer one ends the older one, under either of its ids; a stranger ends nothing', async () => {
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

  test('a device that comes again and again is refused for a while', async () => {
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

describe('what a device may listen to', () => {
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

  test('by filter', async () => {
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

  test('not more than twenty at once', async () => {
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
