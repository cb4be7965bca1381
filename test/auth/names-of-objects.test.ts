/** Rights on an object hold for the object, whichever of its names a role, a token or a request uses. */
import { describe, expect, test } from '@jest/globals';
import { type Call, useService } from '../support/fixture.js';
import { useReceiver, useWebhooks } from '../support/receiver.js';

const PASSWORD = 'correct horse battery';
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' } });
const receiver = useReceiver();
const { remove } = useWebhooks(service, receiver);

interface Named {
  readonly _id: string;
  readonly id: string;
}

let count = 0;
const nextId = (): string => `Pumpe ${++count}é`;
const create = async (id = nextId()): Promise<Named> =>
  (await service.admin('POST', 'objects', { id, name: 'x' })).body;
const rename = async ({ _id }: Named, id: string): Promise<void> => {
  expect((await service.admin('PATCH', `objects/${_id}`, { id })).status).toBe(200);
};
const tokenOf = async (scopes: string[], call: Call = service.admin): Promise<string> =>
  (await call('POST', 'tokens', { name: 'x', scopes })).body.token;
const send = async (token: string, key: string): Promise<number> =>
  (await service.as(token)('POST', `objects/${encodeURIComponent(key)}/packets`, { a: 1 })).status;
const countOf = async ({ _id }: Named): Promise<number> =>
  (await service.admin('GET', `objects/${_id}/packets`)).body.length;

async function createUser(credentials: string[]): Promise<string> {
  const login = `user-${++count}`;
  const { body: role } = await service.admin('POST', 'roles', { name: login, credentials });
  await service.admin('POST', 'users', { login, password: PASSWORD, role: role._id });
  return service.tokenOf(login, PASSWORD);
}

const SPELLINGS: readonly [string, (object: Named) => string][] = [
  ['the own id', ({ id }) => `/objects/${encodeURIComponent(id)}`],
  ['the _id', ({ _id }) => `/objects/${_id}`],
  ['the _id in capitals', ({ _id }) => `/objects/${_id.toUpperCase()}`],
  ['the own id in NFD', ({ id }) => `/objects/${encodeURIComponent(id.normalize('NFD'))}`],
  ['blanks around the own id', ({ id }) => `/objects/%20${encodeURIComponent(id)}%20`],
  ['two slashes in front', ({ id }) => `//objects/${encodeURIComponent(id)}`],
  ['two slashes within', ({ id }) => `/objects//${encodeURIComponent(id)}`],
  ['no slash in front', ({ id }) => `objects/${encodeURIComponent(id)}`],
  ['the prefix', ({ id }) => `/api/v1/objects/${encodeURIComponent(id)}`],
  ['the prefix with two slashes', ({ id }) => `//api//v1//objects//${encodeURIComponent(id)}`],
  ['a store in capitals', ({ id }) => `/Objects/${encodeURIComponent(id)}`],
];

describe('a scope that names an object', () => {
  test.each(SPELLINGS)('permits the object by all its names, and no other object: %s', async (_, spell) => {
    const object = await create();
    const other = await create();
    const token = await tokenOf([`POST ${spell(object)}/packets`]);
    const former = object.id;
    expect([await send(token, former), await send(token, object._id), await send(token, other._id)]).toEqual([
      200, 200, 403,
    ]);
    const next = nextId();
    await rename(object, next);
    await rename(other, former);
    expect([await send(token, next), await send(token, object._id), await send(token, other._id)]).toEqual([
      200, 200, 403,
    ]);
    await send(token, former);
    expect(await countOf(other)).toBe(0);
    await service.admin('DELETE', `objects/${object._id}`);
    await send(token, former);
    await rename(other, next);
    await send(token, next);
    expect(await countOf(other)).toBe(0);
  });

  test.each(SPELLINGS)('answers a request as it answers an administrator: %s', async (_, spell) => {
    const object = await create();
    const own = service.as(await tokenOf([`GET /objects/${encodeURIComponent(object.id)}`]));
    const path = spell(object).replace(/^\/?(api\/v1\/)?/, '');
    const asOwn = await own('GET', path);
    const asAdmin = await service.admin('GET', path);
    expect([asOwn.status, asOwn.body._id]).toEqual([asAdmin.status, asAdmin.body._id]);
  });

  test.each(SPELLINGS.filter(([name]) => !name.includes('_id')))(
    'sends to a webhook what a role that names the object too permits: %s',
    async (_, spell) => {
      const object = await create();
      const other = await create();
      const user = await createUser([
        `GET ${spell(object)}/*`,
        `GET ${spell(other)}`,
        'POST /handlers',
        'POST /tokens',
      ]);
      const token = await tokenOf([`GET ${spell(object)}`, 'POST /handlers'], service.as(user));
      const fields = { name: 'x', url: receiver.url, events: ['object-packet'] };
      const { status, body: handler } = await service.as(token)('POST', 'handlers', fields);
      expect(status).toBe(200);
      await service.settled();
      const sendBoth = async (n: number): Promise<void> => {
        for (const { _id } of [other, object]) await service.admin('POST', `objects/${_id}/packets`, { n });
        // By the rights of now, and not by those after the next change.
        await service.settled();
      };
      await sendBoth(1);
      await receiver.got(1);
      // The role means whichever object has the name, and the token means this object: nothing is left.
      await rename(object, nextId());
      await sendBoth(2);
      await rename(object, object.id);
      await sendBoth(3);
      await receiver.got(2);
      await remove(handler);
      expect(receiver.received.map(({ body: { data } }) => [data._oid, data.n])).toEqual([
        [object._id, 1],
        [object._id, 3],
      ]);
    },
  );
});

describe('a token of a user whose role names an object by its own id', () => {
  test('reads nothing as soon as the role means another object', async () => {
    const object = await create();
    const other = await create();
    const former = object.id;
    const path = `/objects/${encodeURIComponent(former)}`;
    const user = await createUser([`GET ${path}/*`, 'POST /tokens']);
    const token = await tokenOf([`GET ${path}`], service.as(user));
    const read = async (key: string): Promise<number> =>
      (await service.as(token)('GET', `objects/${encodeURIComponent(key)}`)).status;
    const listener = await service.listen(token);
    expect([await read(former), await read(object._id)]).toEqual([200, 200]);
    const next = nextId();
    await rename(object, next);
    await rename(other, former);
    const keys = [former, next, object._id, other._id];
    expect(await Promise.all(keys.map(read))).toEqual([403, 403, 403, 403]);
    await service.settled();
    listener.take();
    for (const { _id } of [object, other]) await service.admin('POST', `objects/${_id}/packets`, { a: 1 });
    await service.settled();
    expect(listener.take()).toEqual([]);
    listener.close();
  });
});

describe('a role that names an object by its own id', () => {
  test('permits a bulk request on this object, and on no other', async () => {
    const object = await create();
    const other = await create();
    const path = `/objects/${encodeURIComponent(object.id)}`;
    const asUser = service.as(await createUser(['GET /objects', 'PATCH /objects', `PATCH ${path}`]));
    const { body } = await asUser('PATCH', `objects?where._id=${object._id},${other._id}`, { status: 'seen' });
    expect(body).toMatchObject({ count: 2, done: 1, failed: [{ _id: other._id, code: '403' }] });
    const read = async ({ _id }: Named) => (await service.admin('GET', `objects/${_id}`)).body.status;
    expect([await read(object), await read(other)]).toEqual(['seen', '']);
  });

  test('permits live events of whichever object has the id, from the moment on', async () => {
    const name = nextId();
    const token = await createUser([`GET /objects/${encodeURIComponent(name)}/*`]);
    const listener = await service.listen(token);
    const sendTo = async ({ _id }: Named): Promise<string[]> => {
      await service.admin('POST', `objects/${_id}/packets`, { a: 1 });
      await service.settled();
      return listener.take().flatMap(({ name: event, payload }) => (event === 'object-packet' ? [payload._oid] : []));
    };
    const first = await create(name);
    expect(await sendTo(first)).toEqual([first._id]);
    await rename(first, nextId());
    expect(await sendTo(first)).toEqual([]);
    const second = await create(name);
    expect([await sendTo(first), await sendTo(second)]).toEqual([[], [second._id]]);
    listener.close();
  });
});
