/** What a user may do, and why: the answer agrees with what the requests of that user are answered. */
import { beforeAll, expect, test } from '@jest/globals';
import { entityOf, expectRefusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';

const service = useService();
let role: string | undefined;
let group: string | undefined;
let user: string | undefined;
let own: string | undefined;
let token = '';

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id as string;

beforeAll(async () => {
  group = await create('groups', { name: 'North' });
  role = await create('roles', { name: 'clerk', credentials: ['GET /objects/*', 'PATCH /objects/*', 'GET /labels'] });
  user = await create('users', { login: 'clerk', password: 'correct horse', role, group });
  own = await create('objects', { id: 'in-north', name: 'In the north', group });
  await create('objects', { id: 'at-root', name: 'At the root' });
  const login = await service.as(null)('POST', 'auth/token', { login: 'clerk', password: 'correct horse' });
  token = login.body.token;
});

const ask = (method: string, path: string, of = user) =>
  service.admin('GET', `users/${of}/permissions?${new URLSearchParams({ method, path })}`);

test('names role, group and credentials of a user', async () => {
  const { body } = await service.admin('GET', `users/${user}/permissions`);
  expect(body).toEqual({
    success: true,
    user,
    login: 'clerk',
    group,
    active: true,
    role: { _id: role, name: 'clerk' },
    credentials: ['GET /objects/*', 'PATCH /objects/*', 'GET /labels'],
  });
});

test.each([
  ['GET', '/objects/in-north', 200, 'GET /objects/*', ['group']],
  ['HEAD', '/api/v1/objects/in-north', 200, 'GET /objects/*', ['group']],
  ['GET', 'objects/in-north/packets?limit=1', 200, 'GET /objects/*', ['group']],
  ['PATCH', '/objects/in-north', 200, 'PATCH /objects/*', ['group']],
  ['GET', '/objects/at-root', 404, 'GET /objects/*', []],
  ['DELETE', '/objects/in-north', 403, null, ['group']],
  ['GET', '/OBJECTS/in-north', 200, 'GET /objects/*', ['group']],
])('answers %s %s with %i, as the request itself', async (method, path, status, credential, reasons) => {
  const { body } = await ask(method, path);
  expect(body).toMatchObject({ status, credential, entity: { store: 'objects', reasons } });
  const call = service.as(token);
  const asked = `/api/v1/${path.replace(/^\/?(api\/v1\/)?/, '')}`;
  const sent = method === 'PATCH' ? { status: 'x' } : undefined;
  expect((await call(method, asked, sent)).status).toBe(status);
});

test.each([
  ['GET', '/labels', 200, 'GET /labels'],
  ['POST', '/labels', 403, null],
  ['GET', '/users', 403, null],
  ['GET', '/account/tokens', 200, '* /account/*'],
  ['GET', '/events', 200, null],
  ['GET', '/audit', 403, null],
])('answers %s %s, which names no entity, with %i', async (method, path, status, credential) => {
  expect((await ask(method, path)).body).toMatchObject({ status, credential, entity: null });
});

test('gives every reason for which a user sees an entity', async () => {
  await service.admin('POST', `objects/${own}/access`, { user });
  expect((await ask('GET', `/objects/${own}`)).body.entity).toEqual({
    store: 'objects',
    _id: own,
    reasons: ['group', 'shared'],
  });
  const { body: models } = await service.admin('GET', 'models');
  expect((await ask('GET', `/models/${models[0]._id}`)).body.entity.reasons).toEqual(['built-in']);
});

test('demands the same of reading security events as the service', async () => {
  const reader = await create('roles', { name: 'reader', credentials: ['GET /*'] });
  const auditor = await create('roles', { name: 'auditor', credentials: ['GET /objects', '* /audit'] });
  const statusOf = async (name: string, its: string): Promise<unknown> => {
    const _id = await create('users', { login: name, password: 'correct horse', role: its });
    return (await ask('GET', '/audit', _id)).body.status;
  };
  expect([await statusOf('reader', reader), await statusOf('auditor', auditor)]).toEqual([403, 200]);
});

test('says that a user is not active', async () => {
  const idle = await create('users', { login: 'idle', password: 'correct horse', role, active: false });
  expect((await ask('GET', '/objects', idle)).body).toMatchObject({ active: false, status: 401 });
});

test('puts the object of a device in place of :object', async () => {
  const { body: roles } = await service.admin('GET', 'roles?where.name=device');
  const device = await create('users', {
    login: 'device',
    password: 'correct horse',
    role: roles[0]._id,
    object: own,
    group,
  });
  const { body } = await ask('POST', '/objects/in-north/packets', device);
  expect(body).toMatchObject({ status: 200, credential: 'POST /objects/in-north/packets' });
  expect((await ask('POST', '/objects/at-root/packets', device)).body.status).toBe(403);
});

test('reveals nothing that the caller does not see', async () => {
  const far = await create('groups', { name: 'Far' });
  const near = await create('groups', { name: 'Near' });
  const { body: roles } = await service.admin('GET', 'roles?where.name=administrator');
  const administrator = roles[0]._id;
  const near1 = { login: 'near', password: 'correct horse', role: administrator, group: near };
  await create('users', near1);
  const stranger = await create('users', { login: 'far', password: 'correct horse', role: administrator, group: far });
  const clerk = await create('users', { login: 'near-clerk', password: 'correct horse', role, group: near });
  const { body: login } = await service.as(null)('POST', 'auth/token', near1);
  const call = service.as(login.token);
  expectRefusal(await call('GET', `users/${stranger}/permissions`), 404);
  // The role was made above: its lines are not known here.
  const { body } = await call('GET', `users/${clerk}/permissions?method=GET&path=/objects`);
  expect(body).toMatchObject({ role: null, credentials: null, credential: null, status: 200 });
  expectRefusal(await call('GET', `users/${clerk}/permissions?method=GET&path=/objects/in-north`), 404);
});

test.each([
  ['method=GET', 'path'],
  ['path=/objects', 'method'],
  ['method=BREW&path=/objects', 'method'],
  ['method=GET&method=PATCH&path=/objects', 'method'],
  ['method=GET&path=', 'path'],
  ['method=GET&path=/objects/%25zz', 'path'],
])('refuses %s, and names the parameter', async (query, name) => {
  expectRefusal(await service.admin('GET', `users/${user}/permissions?${query}`), 400, name);
});
