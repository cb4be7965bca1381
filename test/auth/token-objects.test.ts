/** Tokens whose scopes name an object by its own id: they mean that object, and not the next one with the id. */
import { describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';

const service = useService();

describe('a token whose scopes name an object by its own id', () => {
  let count = 0;
  const nextId = (): string => `unit ${++count}+x`;
  const create = async (id: string): Promise<string> =>
    (await service.admin('POST', 'objects', { id, name: id })).body._id;
  const tokenOf = async (scopes: string[], call = service.admin): Promise<string> =>
    (await call('POST', 'tokens', { name: 'unit', scopes })).body.token;
  const send = async (token: string, key: string): Promise<number> =>
    (await service.as(token)('POST', `objects/${encodeURIComponent(key)}/packets`, { a: 1 })).status;

  test.each<[string, (path: string) => string[]]>([
    ['one path', (path) => [`POST ${path}/packets`]],
    ['everything of the object', (path) => [`* ${path}/*`]],
    ['the prefix', (path) => [`POST /api/v1${path}/packets`]],
    ['no slash in front', (path) => [`POST ${path.slice(1)}/packets`]],
    ['further scopes', (path) => ['GET /objects/*', `POST ${path}/packets`]],
  ])('ends with that object, and does not pass to the next one with that id: %s', async (_, scopesOf) => {
    const id = nextId();
    const first = await create(id);
    const token = await tokenOf(scopesOf(`/objects/${encodeURIComponent(id)}`));
    expect(await send(token, id)).toBe(200);
    await service.admin('DELETE', `objects/${first}`);
    const next = await create(id);
    expect([await send(token, id), await send(token, next)]).toEqual([404, 403]);
    expect((await service.admin('GET', `objects/${next}/packets`)).body).toEqual([]);
    const renewed = await tokenOf(scopesOf(`/objects/${encodeURIComponent(id)}`));
    expect(await send(renewed, id)).toBe(200);
  });

  test('stays with the object when another one takes over the id', async () => {
    const id = nextId();
    const first = await create(id);
    const token = await tokenOf([`POST /objects/${encodeURIComponent(id)}/packets`]);
    await service.admin('PATCH', `objects/${first}`, { id: nextId() });
    await create(id);
    expect(await send(token, id)).toBe(200);
    expect((await service.admin('GET', `objects/${first}/packets`)).body).toHaveLength(1);
  });

  test('passes on to a token that it creates', async () => {
    const id = nextId();
    const first = await create(id);
    const scope = `POST /objects/${encodeURIComponent(id)}/packets`;
    const parent = await tokenOf([scope, 'POST /tokens']);
    await service.admin('DELETE', `objects/${first}`);
    await create(id);
    expect(await send(await tokenOf([scope], service.as(parent)), id)).toBe(404);
  });

  test('means the object that gets the id if there is none yet', async () => {
    const id = nextId();
    const token = await tokenOf([`POST /objects/${encodeURIComponent(id)}/packets`]);
    await create(id);
    expect(await send(token, id)).toBe(200);
  });

  test('receives no events of the next object with that id', async () => {
    const id = nextId();
    const first = await create(id);
    const token = await tokenOf([`GET /objects/${encodeURIComponent(id)}`]);
    await service.admin('DELETE', `objects/${first}`);
    const next = await create(id);
    const listener = await service.listen(token);
    await service.admin('POST', `objects/${next}/packets`, { a: 1 });
    await service.settled();
    expect(listener.take()).toEqual([]);
    listener.close();
  });
});
