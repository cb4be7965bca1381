/** Commands to objects: sent by either path, recorded in a read-only journal, and never lost. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { entityOf, eventsOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Answer, type Listener, useService } from '../support/fixture.js';

const NOW = Date.now();
const service = useService({ now: () => NOW });
let listener: Listener;
let plain: { _id: string; id: string; group: string };
let modelled: typeof plain;

const journal = async () => (await service.admin('GET', 'commands')).body;
const received = async () => {
  await service.settled();
  return eventsOf(listener.take());
};
/** What was journalled of an accepted command, found by `Location`. */
async function entryOf(answer: Answer) {
  expect(answer.text).toBe('{"success":true}');
  expect(answer.status).toBe(200);
  expect(answer.headers['content-length']).toBe('16');
  expect(answer.headers.location).toMatch(/^\/api\/v1\/commands\/[0-9a-f]{24}$/);
  return entityOf(await service.admin('GET', answer.headers.location as string));
}

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const children = [
    { id: 'open', type: 'action', params: { door: 1, fast: false } },
    { type: 'subsystem', children: [{ id: 'engine.stop', type: 'action' }] },
    { id: 'speed', type: 'argument', dataType: 'number' },
  ];
  const { _id: model } = entityOf(await service.admin('POST', 'models', { name: 'doors', data: { children } }));
  plain = entityOf(await service.admin('POST', 'objects', { id: 'plain', name: 'Car' }));
  modelled = entityOf(await service.admin('POST', 'objects', { id: 'modelled', name: 'Bus', model }));
});

describe('a valid command', () => {
  test.each<[path: string, body: unknown, headers: Record<string, string>, params: object]>([
    ['/api/v1/objects/plain/commands/go', { speed: 5, deep: { a: [null] } }, {}, { speed: 5, deep: { a: [null] } }],
    ['/objects/plain/commands/go', { speed: 5 }, {}, { speed: 5 }],
    ['/api/v1/objects/plain/commands/go/', {}, {}, {}],
    ['/objects/plain/commands/go/', {}, {}, {}],
    ['/api/v1/objects/plain/commands/go', undefined, {}, {}],
    ['/objects/plain/commands/go', undefined, {}, {}],
    ['/api/v1/objects/plain/commands/go', undefined, { 'Content-Type': 'application/json' }, {}],
    ['/objects/plain/commands/go', undefined, { 'Content-Type': 'application/json' }, {}],
    ['/api/v1/objects/plain/commands/go', undefined, { 'Content-Type': 'text/plain' }, {}],
    ['/api/v1/objects/plain/commands/go', '', { 'Content-Type': 'application/json' }, {}],
    ['/api/v1/objects/plain/commands/go', '{}', { 'Content-Type': 'application/json; charset=utf-8' }, {}],
    ['/api/v1/objects/plain/commands/go?colour=red&limit=x', { a: 1 }, {}, { a: 1 }],
  ])('is stored and published once: %s %j %j', async (path, body, headers, params) => {
    const before = (await journal()).length;
    const entry = await entryOf(await service.admin('POST', path, body, headers));
    expect(entry).toEqual({
      _id: expect.any(String),
      object: plain._id,
      command: 'go',
      params,
      status: 'queued',
      times: { queued: NOW },
      expires: NOW + 86_400_000,
      owner: '000000000000000000000002',
      group: plain.group,
      branch: [plain.group],
      access: [],
      time: NOW,
    });
    expect(await journal()).toHaveLength(before + 1);
    const { _id, times, expires } = entry;
    const command = { _id, command: 'go', params, status: 'queued', times, expires };
    expect(await received()).toEqual([{ name: 'object-command-req', payload: { id: plain._id, command } }]);
  });

  test('is accepted by the _id of the object as well', async () => {
    for (const prefix of ['/api/v1', '']) {
      const entry = await entryOf(await service.admin('POST', `${prefix}/objects/${plain._id}/commands/go`));
      expect(entry.object).toBe(plain._id);
    }
  });

  test.each(['a', 'A-z_0.9:x', '..go', 'constructor', '__proto__', 'x'.repeat(64), 'go%2Ego'])(
    'is accepted under any plain name if the model declares none: %s',
    async (name) => {
      const entry = await entryOf(await service.admin('POST', `objects/plain/commands/${name}`, {}));
      expect(entry.command).toBe(decodeURIComponent(name));
    },
  );
});

describe('an action of a model', () => {
  test.each<[command: string, body: unknown, params: object]>([
    ['open', undefined, { door: 1, fast: false }],
    ['open', {}, { door: 1, fast: false }],
    ['open', { fast: true }, { door: 1, fast: true }],
    ['open', { door: null, more: 'x' }, { door: null, fast: false, more: 'x' }],
    ['engine.stop', undefined, {}],
    ['engine.stop', { now: true }, { now: true }],
  ])('is sent with its defaults below the given parameters: %s %j', async (command, body, params) => {
    expect(await entryOf(await service.admin('POST', `objects/modelled/commands/${command}`, body))).toMatchObject({
      command,
      params,
    });
    expect((await entryOf(await service.admin('POST', `/objects/modelled/commands/${command}`, body))).params).toEqual(
      params,
    );
  });

  test.each(['close', 'Open', 'speed', 'stop', 'constructor', 'open%20'])(
    'is required on both paths: %s is not found',
    async (command) => {
      const before = (await journal()).length;
      for (const prefix of ['/api/v1', '']) {
        expectRefusal(await service.admin('POST', `${prefix}/objects/modelled/commands/${command}`, {}), 404);
      }
      expect(await journal()).toHaveLength(before);
    },
  );
});

describe('an invalid command', () => {
  beforeAll(received);

  test.each<[what: string, path: string, body: unknown, status: number]>([
    ['to no object', 'objects/missing/commands/go', {}, 404],
    ['to no object of this _id', 'objects/65a0000000000000000000ff/commands/go', {}, 404],
    ['with a space in its name', 'objects/plain/commands/a%20b', {}, 400],
    ['with a slash in its name', 'objects/plain/commands/a%2Fb', {}, 400],
    ['with a long name', `objects/plain/commands/${'x'.repeat(65)}`, {}, 400],
    ['with a letter that is not plain', 'objects/plain/commands/%D1%8F', {}, 400],
    ['with a list', 'objects/plain/commands/go', '[]', 400],
    ['with text', 'objects/plain/commands/go', '"x"', 400],
    ['with null', 'objects/plain/commands/go', 'null', 400],
    ['with half a body', 'objects/plain/commands/go', '{"a":', 400],
    ['with a hostile name', 'objects/plain/commands/go', '{"$a":1}', 400],
  ])('is refused and not stored: %s', async (_, path, body, status) => {
    const before = (await journal()).length;
    for (const prefix of ['/api/v1/', '/'])
      expectRefusal(await service.admin('POST', `${prefix}${path}`, body), status);
    expect(await journal()).toHaveLength(before);
    expect(await received()).toEqual([]);
  });

  test('is refused without a JSON body', async () => {
    for (const prefix of ['/api/v1', '']) {
      const answer = await service.admin('POST', `${prefix}/objects/plain/commands/go`, 'a=1', {
        'Content-Type': 'text/plain',
      });
      expectRefusal(answer, 415, 'JSON');
    }
  });

  test('is refused without authentication, on both paths', async () => {
    const anonymous = service.as(null);
    for (const prefix of ['/api/v1', ''])
      expectRefusal(await anonymous('POST', `${prefix}/objects/plain/commands/go`, {}), 401);
  });

  test.each(['GET', 'PUT', 'PATCH', 'DELETE'])('is refused with %s, on both paths', async (method) => {
    for (const prefix of ['/api/v1', '']) {
      const answer = await service.admin(method, `${prefix}/objects/plain/commands/go`);
      expectRefusal(answer, 405, 'POST');
      expect(answer.headers.allow).toBe('POST');
    }
  });
});

describe('the store of commands', () => {
  test('is listed, filtered and counted like every store', async () => {
    const { _id } = await entryOf(await service.admin('POST', 'objects/modelled/commands/open', { n: 1 }));
    const { body } = await service.admin(
      'GET',
      `commands?where.object=${modelled._id}&where.params.n=1&only=command,status`,
    );
    expect(body).toEqual([{ _id, command: 'open', status: 'queued' }]);
    const all = await journal();
    expect((await service.admin('GET', 'commands?meta=true')).body).toEqual({
      count: all.length,
      first: all[0],
      last: all.at(-1),
    });
  });

  test('is written only by the service', async () => {
    const { _id } = await entryOf(await service.admin('POST', 'objects/plain/commands/go'));
    const before = await journal();
    for (const [method, path] of [
      ['POST', ''],
      ['PUT', ''],
      ['DELETE', ''],
      ['PATCH', `/${_id}`],
      ['DELETE', `/${_id}`],
      ['POST', `/${_id}/access`],
      ['DELETE', `/${_id}/access/${_id}`],
    ] as const) {
      const answer = await service.admin(
        method,
        `commands${path}`,
        method === 'DELETE' ? undefined : { status: 'done', user: _id },
      );
      expectRefusal(answer, 405, 'GET');
      expect(answer.headers.allow).toBe('GET, HEAD');
    }
    expect(await journal()).toEqual(before);
  });

  test('is visible to those who see the object, and outlives it', async () => {
    const { _id: group } = entityOf(await service.admin('POST', 'groups', { name: 'team' }));
    await service.admin('POST', 'users', { login: 'member', password: 'long enough', group });
    const member = service.as(await service.tokenOf('member', 'long enough'));
    await service.admin('POST', 'objects', { id: 'theirs', name: 'Van', group });
    const entry = await entryOf(await service.admin('POST', 'objects/theirs/commands/go'));
    expect((await member('GET', 'commands')).body).toEqual([entry]);
    expect(entry).toMatchObject({ group });
    await service.admin('DELETE', 'objects/theirs');
    expect(entityOf(await member('GET', `commands/${entry._id}`))).toEqual(entry);
  });

  test('follows the sharing of the object, including older commands', async () => {
    const { _id: group } = entityOf(await service.admin('POST', 'groups', { name: 'elsewhere' }));
    const user = entityOf(await service.admin('POST', 'users', { login: 'guest', password: 'long enough', group }));
    const guest = service.as(await service.tokenOf('guest', 'long enough'));
    const sees = async () => (await guest('GET', 'commands')).body.map(({ _id }: { _id: string }) => _id);
    const object = entityOf(await service.admin('POST', 'objects', { id: 'lent', name: 'Van' }));
    const before = await entryOf(await service.admin('POST', 'objects/lent/commands/go'));
    expect(await sees()).toEqual([]);
    entityOf(await service.admin('POST', `objects/${object._id}/access`, { user: user._id }));
    const after = await entryOf(await service.admin('POST', 'objects/lent/commands/go'));
    const other = await entryOf(await service.admin('POST', 'objects/plain/commands/go'));
    expect(await sees()).toEqual([before._id, after._id]);
    expect((await guest('GET', 'commands?meta=true')).body.count).toBe(2);
    expectRefusal(await guest('GET', `commands/${other._id}`), 404);
    entityOf(await service.admin('DELETE', `objects/lent/access/${user._id}`));
    expect(await sees()).toEqual([]);
    expectRefusal(await guest('GET', `commands/${before._id}`), 404);
    expect(entityOf(await service.admin('GET', `commands/${before._id}`))).toEqual(before);
  });

  test('follows the sharing of an object while commands are being sent', async () => {
    const { _id: group } = entityOf(await service.admin('POST', 'groups', { name: 'at the same time' }));
    const user = entityOf(await service.admin('POST', 'users', { login: 'hasty', password: 'long enough', group }));
    const hasty = service.as(await service.tokenOf('hasty', 'long enough'));
    const { _id } = entityOf(await service.admin('POST', 'objects', { id: 'contested', name: 'Van' }));
    const share = () => service.admin('POST', `objects/${_id}/access`, { user: user._id });
    const unshare = () => service.admin('DELETE', `objects/${_id}/access/${user._id}`);
    const send = () => service.admin('POST', `objects/${_id}/commands/go`, {});
    const seen = async () => (await hasty('GET', 'commands?meta=true')).body.count;
    let sent = 0;
    const sending = (change: () => Promise<Answer>) => [send(), send(), change(), send(), send()];
    for (let round = 0; round < 5; round++) {
      sent += 8;
      await Promise.all(sending(share));
      expect([round, await seen()]).toEqual([round, sent - 4]);
      await Promise.all(sending(unshare));
      expect([round, await seen()]).toEqual([round, 0]);
      // Both at once: whichever was the last one for the object was so for its commands.
      await Promise.all([share(), unshare(), share(), unshare()]);
      const isShared = (await hasty('GET', `objects/${_id}`)).status === 200;
      expect([round, await seen()]).toEqual([round, isShared ? sent : 0]);
      if (isShared) entityOf(await unshare());
    }
  });

  test('completes an interrupted end of sharing when it is repeated', async () => {
    const { _id: group } = entityOf(await service.admin('POST', 'groups', { name: 'half way' }));
    const user = entityOf(await service.admin('POST', 'users', { login: 'half', password: 'long enough', group }));
    const half = service.as(await service.tokenOf('half', 'long enough'));
    const { _id } = entityOf(await service.admin('POST', 'objects', { id: 'half-way', name: 'Van' }));
    const entry = await entryOf(await service.admin('POST', `objects/${_id}/commands/go`));
    entityOf(await service.admin('POST', `objects/${_id}/access`, { user: user._id }));
    const objects = service.client.db().collection('objects');
    await objects.updateOne({ id: 'half-way' }, { $set: { access: [] } });
    expect((await half('GET', 'commands?only=_id')).body).toEqual([{ _id: entry._id }]);
    expectRefusal(await service.admin('DELETE', `objects/${_id}/access/${user._id}`), 404);
    expect((await half('GET', 'commands')).body).toEqual([]);
  });
});
