/** Attempts to get more than one's rights: by spelling, by body, by becoming or making somebody mightier, by lasting on. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import {
  ADMINISTRATOR_ROLE_ID,
  BUILT_IN_MODELS,
  BUILT_IN_ROLES,
  OPERATOR_ROLE_ID,
  ROOT_GROUP_ID,
  VIEWER_ROLE_ID,
} from '../../src/core/builtin.js';
import { createPerson, type Person } from '../support/callers.js';
import { useService } from '../support/fixture.js';
import { createRightsFixture, type RightsFixture } from './rights-fixture.js';

const service = useService();
let fixture: RightsFixture;
beforeAll(async () => {
  fixture = await createRightsFixture(service);
});
const groupOf = (branch: readonly string[]): string => branch.at(-1) as string;
const stored = (store: string, id: string) =>
  service.client
    .db()
    .collection(store)
    .findOne({ _id: new ObjectId(id) });
const createRole = async (credentials: string[], group?: string): Promise<string> =>
  (await service.admin('POST', 'roles', { name: 'made', credentials, group })).body._id;

/** The status of a request whose path nothing has tidied up on its way. */
async function askRaw(method: string, path: string, body: object | undefined, token: string | null): Promise<number> {
  const { hostname, port } = new URL(service.url);
  const headers = {
    ...(token !== null && { Authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  };
  const sent = request({ hostname, port, method, path, headers });
  sent.end(body && JSON.stringify(body));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode ?? 0;
}

describe('spellings of a path', () => {
  const spellings = (path: string): string[] => [
    path,
    `${path}/`,
    path.toUpperCase().replace(/^\/API\/V1/, '/api/v1'),
    path.replace('/api/v1', '/API/V1'),
    path.replace('objects', 'ObJeCtS'),
    path.replace('objects', '%6fbjects'),
    path.replace('objects', '%4F%42jects'),
    path.replace('objects', 'objects%2F'),
    path.replace('objects', 'objects;x=1'),
    path.replace('objects', 'objects%00'),
    path.replace('/objects', '//objects'),
    path.replace('/objects', '/./objects'),
    path.replace('/objects', '/labels/../objects'),
    path.replace('/objects', '/labels/%2e%2e/objects'),
    path.replace('/objects', '/auth/../objects'),
    path.replace('/objects', '/auth%2f..%2fobjects'),
    path.replace('/objects', '\\objects'),
    `/${path}`,
    `${path}?x=/auth`,
    `${path}#/auth`,
    `/auth/..${path}`,
  ];

  test('never permit more than the plain path: without authentication or permission', async () => {
    const object = (await service.admin('POST', 'objects', { id: 'spelled', name: 'x' })).body._id;
    const narrow = await createPerson(service, { role: await createRole(['GET /labels/*']) });
    const before = await stored('objects', object);
    for (const [method, path, body] of [
      ['GET', `/api/v1/objects/${object}`, undefined],
      ['PATCH', `/api/v1/objects/${object}`, { status: 'taken' }],
      ['POST', `/api/v1/objects/${object}/packets`, { a: 1 }],
      ['POST', `/api/v1/objects/${object}/commands/stop`, {}],
      ['POST', `/objects/${object}/commands/stop`, {}],
      ['DELETE', `/api/v1/objects/${object}`, undefined],
      ['GET', '/api/v1/objects', undefined],
    ] as const) {
      for (const spelled of spellings(path)) {
        for (const token of [null, narrow.token]) {
          const status = await askRaw(method, spelled, body, token);
          expect([method, spelled, [400, 401, 403, 404].includes(status)]).toEqual([method, spelled, true]);
        }
      }
    }
    const override = { 'X-HTTP-Method-Override': 'DELETE', 'X-Method-Override': 'DELETE' };
    expect((await service.admin('GET', `objects/${object}?_method=DELETE`)).status).toBe(200);
    expect((await service.admin('GET', `objects/${object}`, undefined, override)).status).toBe(200);
    expect(await stored('objects', object)).toEqual(before);
    expect(
      await service.client
        .db()
        .collection('commands')
        .countDocuments({ object: new ObjectId(object) }),
    ).toBe(0);
  });

  test('apply to credentials: a role for one path permits every spelling that is routed there, and no other path', async () => {
    for (const id of ['one', 'other']) await service.admin('POST', 'objects', { id, name: id });
    const person = await createPerson(service, {
      role: await createRole(['GET /objects/one', 'GET /api/v1/labels/*']),
    });
    for (const [path, status] of [
      ['objects/one', 200],
      ['OBJECTS/one', 200],
      ['objects/%6fne', 200],
      ['objects/one/', 200],
      ['objects/ONE', 403],
      ['objects/other', 403],
      ['objects/one%2F..%2Fother', 403],
      ['objects/one/packets', 403],
      ['objects', 403],
      ['labels', 200],
      ['labels/x', 404],
    ] as const) {
      expect([path, (await person.call('GET', path)).status]).toEqual([path, status]);
    }
  });
});

describe('bodies', () => {
  const own = () => ({
    _id: 'e'.repeat(24),
    owner: 'e'.repeat(24),
    group: groupOf(fixture.branches.foreign),
    branch: fixture.branches.foreign,
    access: [fixture.ids.foreignAdmin],
    time: 1,
    _at: 1,
    _builtin: true,
    _password: 'x',
    _expires: 1,
    success: false,
  });

  test.each(['objects', 'labels', 'groups', 'users', 'roles', 'models', 'tokens'])(
    'transfer nothing in a PATCH of %s',
    async (store) => {
      const fields = { name: 'x', id: 'moved', login: 'moved', password: 'long enough', credentials: ['GET /labels'] };
      const { success: _, token, ...created } = (await fixture.calls.groupAdmin('POST', store, fields)).body;
      const before = await stored(store, created._id);
      const answer = await fixture.calls.groupAdmin('PATCH', `${store}/${created._id}`, own());
      expect(answer.status).toBe(200);
      expect(await stored(store, created._id)).toEqual({ ...before, _at: expect.any(Number) });
      for (const name of ['access', 'owner', 'group', 'branch', '_password', 'user']) {
        for (const body of [{ [`${name}.0`]: 'x' }, { [`$${name}`]: 'x' }, { $set: { [name]: 'x' } }]) {
          expect((await fixture.calls.groupAdmin('PATCH', `${store}/${created._id}`, body)).status).toBe(400);
        }
      }
      expect((await fixture.calls.foreignAdmin('GET', `${store}/${created._id}`)).status).toBe(404);
    },
  );

  test("set only a group of the own subtree in a POST; all other common fields are the service's", async () => {
    const { groupAdmin } = fixture.calls;
    for (const [group, status] of [
      [groupOf(fixture.branches.own), 200],
      [groupOf(fixture.branches.sub), 200],
      [groupOf(fixture.branches.sub).toUpperCase(), 200],
      [groupOf(fixture.branches.foreign), 400],
      [groupOf(fixture.branches.empty), 400],
      [ROOT_GROUP_ID, 400],
      ['f'.repeat(24), 400],
      ['nonsense', 400],
      [{ $ne: null }, 400],
      [[groupOf(fixture.branches.own)], 400],
    ] as const) {
      for (const store of ['labels', 'users', 'tokens', 'roles', 'objects']) {
        const unique = `in-${new ObjectId()}`;
        const fields = { name: 'x', id: unique, login: unique, password: 'long enough', credentials: [], group };
        const answer = await groupAdmin('POST', store, fields);
        expect([store, group, answer.status]).toEqual([store, group, status]);
        if (status === 200) expect(answer.body.branch.at(-1)).toBe(String(group).toLowerCase());
      }
    }
    for (const parent of [ROOT_GROUP_ID, groupOf(fixture.branches.foreign), 'f'.repeat(24)]) {
      expect((await groupAdmin('POST', 'groups', { name: 'x', parent })).status).toBe(400);
    }
    const { body } = await groupAdmin('POST', 'labels', { name: 'x', ...own(), group: undefined });
    expect(body).toMatchObject({ owner: fixture.ids.groupAdmin, branch: fixture.branches.own, access: [] });
    expect(body._id).not.toBe('e'.repeat(24));
    expect(await stored('labels', body._id)).not.toHaveProperty('_builtin');
  });

  test('reveal and change nothing of another object whose _id is used as own id', async () => {
    const victim = (await service.admin('POST', 'objects', { id: 'victim', name: 'victim' })).body._id;
    // No such id is taken any more; one may be stored from before.
    expect((await fixture.calls.groupAdmin('POST', 'objects', { id: victim, name: 'decoy' })).status).toBe(400);
    const decoy = (await fixture.calls.groupAdmin('POST', 'objects', { id: 'decoy', name: 'decoy' })).body._id;
    const objects = service.client.db().collection('objects');
    await objects.updateOne({ _id: new ObjectId(decoy) }, { $set: { id: victim } });
    await fixture.calls.groupAdmin('POST', `objects/${decoy}/access`, { user: fixture.ids.rootAdmin });
    expect((await service.admin('GET', `objects/${victim}`)).body.name).toBe('victim');
    expect((await service.admin('POST', `objects/${victim}/packets`, { secret: 1 })).body._oid).toBe(victim);
    expect((await service.admin('PATCH', `objects/${victim}`, { status: 'mine' })).body._id).toBe(victim);
    await objects.updateOne({ _id: new ObjectId(victim) }, { $set: { config: { large: 'x'.repeat(1_000_000) } } });
    const more = { description: 'x'.repeat(60_000) };
    expect((await service.admin('PATCH', `objects/${victim}`, more)).status).toBe(413);
    expect(await stored('objects', decoy)).not.toHaveProperty('description');
    expect((await service.admin('DELETE', `objects/${victim}`)).body._id).toBe(victim);
    expect((await service.admin('GET', `objects/${decoy}`)).body.name).toBe('decoy');
  });
});

describe('gaining permissions', () => {
  /** May do everything with users and roles, but not everything. */
  const LIMITED = ['GET /*', '* /users/*', '* /roles/*', '* /tokens/*'];
  let limited: Person;
  beforeAll(async () => {
    const group = groupOf(fixture.branches.own);
    limited = await createPerson(service, { group, role: await createRole(LIMITED, group) });
  });

  test('fails by creating a user with a stronger role, or changing the role', async () => {
    const unique = (): object => ({ login: `new-${new ObjectId()}`, password: 'long enough' });
    const hidden = await createRole(['GET /labels'], groupOf(fixture.branches.foreign));
    for (const [role, status] of [
      [VIEWER_ROLE_ID, 200],
      [undefined, 200],
      [ADMINISTRATOR_ROLE_ID, 403],
      [OPERATOR_ROLE_ID, 403],
      [hidden, 400],
      ['f'.repeat(24), 400],
      [null, 400],
    ] as const) {
      expect([role, (await limited.call('POST', 'users', { ...unique(), role })).status]).toEqual([role, status]);
    }
    for (const role of [ADMINISTRATOR_ROLE_ID, OPERATOR_ROLE_ID]) {
      for (const id of [limited.id, fixture.ids.viewer]) {
        expect((await limited.call('PATCH', `users/${id}`, { role })).status).toBe(403);
      }
    }
    expect((await service.admin('GET', `users/${limited.id}`)).body.role).not.toBe(ADMINISTRATOR_ROLE_ID);
  });

  test('fails by changing or removing a stronger user', async () => {
    for (const id of [fixture.ids.groupAdmin, fixture.ids.operator]) {
      const before = await stored('users', id);
      for (const body of [
        { password: 'taken over' },
        { login: 'mine' },
        { active: false },
        { role: VIEWER_ROLE_ID },
        {},
      ]) {
        expect((await limited.call('PATCH', `users/${id}`, body)).status).toBe(403);
      }
      expect((await limited.call('DELETE', `users/${id}`)).status).toBe(403);
      expect(await stored('users', id)).toEqual(before);
    }
    expect((await limited.call('PATCH', `users/${fixture.ids.rootAdmin}`, { password: 'taken over' })).status).toBe(
      404,
    );
  });

  test('fails by changing a user whose role the caller does not see, shared or inactive', async () => {
    const group = groupOf(fixture.branches.own);
    const role = await createRole(['* /*']);
    const mighty = await createPerson(service, { group, role });
    await service.admin('PATCH', `users/${mighty.id}`, { active: false });
    const takeover = { password: 'taken over', active: true };
    expect((await limited.call('PATCH', `users/${mighty.id}`, takeover)).status).toBe(403);
    expect((await limited.call('DELETE', `users/${mighty.id}`)).status).toBe(403);
  });

  test("fails by creating or extending a role beyond the caller's own rights", async () => {
    const { body: mine } = await limited.call('POST', 'roles', { name: 'less', credentials: ['GET /objects/*'] });
    for (const credentials of [
      ['* /*'],
      ['* /objects/*'],
      ['GET /objects/*', 'POST /objects'],
      ['PATCH /*/*'],
      ['* /api/v1/*'],
      ['DELETE /labels'],
    ]) {
      expect([credentials, (await limited.call('POST', 'roles', { name: 'x', credentials })).status]).toEqual([
        credentials,
        403,
      ]);
      expect((await limited.call('PATCH', `roles/${mine._id}`, { credentials })).status).toBe(403);
    }
    expect((await limited.call('PATCH', `roles/${mine._id}`, { credentials: ['GET /labels/*'] })).status).toBe(200);
    expect((await limited.call('POST', 'tokens', { name: 'x', scopes: ['* /*'] })).status).toBe(403);
  });

  test('refuses to restrict or remove a stronger role, whose users would lose permissions', async () => {
    const mighty = await createRole(['* /objects/*', 'GET /*'], groupOf(fixture.branches.own));
    const before = await stored('roles', mighty);
    for (const body of [{ credentials: [] }, { name: 'mine' }, {}]) {
      expect((await limited.call('PATCH', `roles/${mighty}`, body)).status).toBe(403);
    }
    expect((await limited.call('DELETE', `roles/${mighty}`)).status).toBe(403);
    expect(await stored('roles', mighty)).toEqual(before);
    expect((await fixture.calls.groupAdmin('DELETE', `roles/${mighty}`)).status).toBe(200);
  });

  test('leaves a user without a role no permissions, until there is another role', async () => {
    const role = await createRole(['GET /labels/*']);
    const person = await createPerson(service, { role });
    expect((await person.call('GET', 'labels')).status).toBe(200);
    expect((await service.admin('DELETE', `roles/${role}`)).status).toBe(200);
    expect((await person.call('GET', 'labels')).status).toBe(403);
    expect((await service.admin('PATCH', `users/${person.id}`, { role: VIEWER_ROLE_ID })).status).toBe(200);
    expect((await person.call('GET', 'labels')).status).toBe(200);
  });

  test('shows built-in entities to all readers, and refuses changes', async () => {
    const entities = [
      ...BUILT_IN_ROLES.map(({ _id }) => `roles/${_id}`),
      ...BUILT_IN_MODELS.map(({ _id }) => `models/${_id}`),
    ];
    for (const path of entities) {
      for (const call of [service.admin, fixture.calls.groupAdmin, fixture.calls.foreignAdmin]) {
        const before = await call('GET', path);
        expect(before.status).toBe(200);
        const user = fixture.ids.viewer;
        for (const [method, at, body] of [
          ['PATCH', path, { name: 'mine', credentials: ['* /*'] }],
          ['PATCH', path, {}],
          ['DELETE', path, undefined],
          ['POST', `${path}/access`, { user }],
        ] as const) {
          expect([method, at, (await call(method, at, body)).status]).toEqual([method, at, 403]);
        }
        expect((await call('GET', path)).text).toBe(before.text);
      }
      expect((await fixture.calls.viewer('GET', path)).status).toBe(200);
    }
  });

  test('refuses schemas whose check would be asynchronous', async () => {
    const schema = { $async: true, type: 'object', required: ['x'] };
    expect((await service.admin('POST', 'stores', { name: 'promised', schema })).status).toBe(400);
  });
});

test('refuses that users disable or remove themselves, in any spelling; others can', async () => {
  const one = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  const two = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  for (const id of [one.id, one.id.toUpperCase()]) {
    expect((await one.call('PATCH', `users/${id}`, { active: false, name: 'x' })).status).toBe(409);
    expect((await one.call('DELETE', `users/${id}`)).status).toBe(409);
  }
  expect(await stored('users', one.id)).not.toHaveProperty('_at');
  expect((await one.call('PATCH', `users/${one.id}`, { active: true, name: 'x' })).status).toBe(200);
  expect((await two.call('PATCH', `users/${one.id}`, { active: false })).status).toBe(200);
  expect((await one.call('GET', 'auth')).status).toBe(401);
  expect((await two.call('DELETE', `users/${one.id}`)).status).toBe(200);
});

describe('sharing', () => {
  test("shows an entity to one user within that user's permissions, and ends at once", async () => {
    const { _id } = (await service.admin('POST', 'objects', { id: 'shared', name: 'shared' })).body;
    const { viewer, foreignAdmin } = fixture.persons;
    const path = `objects/${_id}`;
    expect((await viewer.call('GET', path)).status).toBe(404);
    const shared = await service.admin('POST', `${path}/access`, { user: viewer.id });
    expect([shared.status, shared.body.access]).toEqual([200, [viewer.id]]);
    expect((await service.admin('POST', `${path}/access`, { user: viewer.id.toUpperCase() })).body.access).toEqual([
      viewer.id,
    ]);
    expect((await viewer.call('GET', path)).status).toBe(200);
    expect((await viewer.call('PATCH', path, { status: 'x' })).status).toBe(403);
    expect((await foreignAdmin.call('GET', path)).status).toBe(404);
    expect((await foreignAdmin.call('POST', `${path}/access`, { user: foreignAdmin.id })).status).toBe(404);
    for (const user of [undefined, null, 1, 'x', { $ne: null }, [viewer.id]]) {
      expect((await service.admin('POST', `${path}/access`, { user })).status).toBe(400);
    }
    expect((await service.admin('DELETE', `${path}/access/${foreignAdmin.id}`)).status).toBe(404);
    expect((await service.admin('DELETE', `${path}/access/nonsense`)).status).toBe(404);
    expect((await service.admin('DELETE', `${path}/access/${viewer.id}`)).body.access).toEqual([]);
    expect((await viewer.call('GET', path)).status).toBe(404);
  });
});
