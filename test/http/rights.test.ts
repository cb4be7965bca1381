/** Who may do what to what: every caller, every route, every place an entity can be in, held to the rule of contract 6. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEFAULT_MODEL_ID, VIEWER_ROLE_ID } from '../../src/model/builtin.js';
import { refusal } from '../answers.js';
import { type Answer, useService } from '../fixture.js';
import { type Cast, gather, PLACES, PLAYERS, type Place, type Player, place, sees } from './cast.js';

const service = useService();
let cast: Cast;
beforeAll(async () => {
  cast = await gather(service);
});

/** What a route asks for: who may call it besides administrators. `known: false` is a method that the path has not. */
interface Route {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly may: readonly Player[];
  readonly known?: boolean;
}
const ADMINS: readonly Player[] = ['rootAdmin', 'groupAdmin', 'foreignAdmin'];
const READERS: readonly Player[] = ['operator', 'viewer'];

const OBJECT_ROUTES: readonly Route[] = [
  { method: 'GET', path: 'objects/:id', may: [...READERS, 'device', 'scoped'] },
  { method: 'HEAD', path: 'objects/:id', may: [...READERS, 'device', 'scoped'] },
  { method: 'GET', path: 'objects/:id?only=name', may: [...READERS, 'device', 'scoped'] },
  { method: 'PATCH', path: 'objects/:id', body: { status: 'x' }, may: ['operator'] },
  { method: 'DELETE', path: 'objects/:id', may: ['scoped'] },
  { method: 'GET', path: 'objects/:id/packets', may: [...READERS, 'device', 'scoped'] },
  { method: 'GET', path: 'objects/:id/packets?meta=true', may: [...READERS, 'device', 'scoped'] },
  { method: 'POST', path: 'objects/:id/packets', body: { speed: 1 }, may: ['device'] },
  { method: 'GET', path: 'objects/:id/packets/:packet', may: [...READERS, 'device', 'scoped'] },
  { method: 'POST', path: 'objects/:id/commands/stop', body: {}, may: ['operator', 'scoped'] },
  { method: 'POST', path: '/objects/:id/commands/stop', body: {}, may: ['operator', 'scoped'] },
  { method: 'POST', path: 'objects/:id/access', body: { user: 'a'.repeat(24) }, may: [] },
  { method: 'DELETE', path: 'objects/:id/access/:stranger', may: ['scoped'] },
  { method: 'PUT', path: 'objects/:id', body: {}, may: [], known: false },
  { method: 'POST', path: 'objects/:id', body: {}, may: [], known: false },
  { method: 'DELETE', path: 'objects/:id/packets', may: ['scoped'], known: false },
  { method: 'PATCH', path: 'objects/:id/packets/:packet', body: {}, may: ['operator'], known: false },
  { method: 'GET', path: 'objects/:id/commands/stop', may: [...READERS, 'device', 'scoped'], known: false },
  { method: 'GET', path: 'objects/:id/access', may: [...READERS, 'device', 'scoped'], known: false },
];

/** The same for a store that nothing is special about; `users` and `roles` and others have rules besides. */
const STORE_ROUTES = (store: string): readonly Route[] => [
  { method: 'GET', path: `${store}/:id`, may: READERS },
  { method: 'PATCH', path: `${store}/:id`, body: { name: 'x' }, may: [] },
  { method: 'DELETE', path: `${store}/:id`, may: [] },
  { method: 'POST', path: `${store}/:id/access`, body: { user: 'a'.repeat(24) }, may: [] },
  { method: 'DELETE', path: `${store}/:id/access/:stranger`, may: [] },
];

function expectedOf(route: Route, player: Player, at: Place): number {
  if (player === 'nobody') return 401;
  if (!ADMINS.includes(player) && !route.may.includes(player)) return 403;
  if (route.known === false) return 405;
  return sees(player, at) ? 200 : 404;
}

async function ask(store: string, route: Route, player: Player, at: Place): Promise<Answer> {
  const _id = new ObjectId();
  const fields = FIELDS[store] ?? {};
  const unique = store === 'objects' ? { id: `own-${_id}` } : store === 'users' ? { login: `own-${_id}` } : {};
  const id = await place(service, cast, { store, at, player, fields: { ...fields, ...unique } });
  const packet = new ObjectId();
  if (route.path.includes(':packet')) {
    const stamp = { time: Date.now(), _ts: Date.now() * 1_000, online: true };
    await service.client
      .db()
      .collection('packets')
      .insertOne({ _id: packet, _oid: new ObjectId(id), ...stamp });
  }
  const found =
    at === 'missing'
      ? null
      : await service.client
          .db()
          .collection(store)
          .findOne({ _id: new ObjectId(id) });
  const stranger = String(found?.access[0] ?? new ObjectId());
  const path = route.path.replace(':id', id).replace(':packet', String(packet)).replace(':stranger', stranger);
  const answer = await cast.calls[player](route.method, path, route.body);
  const after =
    at === 'missing'
      ? null
      : await service.client
          .db()
          .collection(store)
          .findOne({ _id: new ObjectId(id) });
  if (answer.status !== 200) expect(after).toEqual(found);
  return answer;
}

const FIELDS: Readonly<Record<string, object>> = {
  objects: { name: 'x', model: new ObjectId(DEFAULT_MODEL_ID), models: { id: new ObjectId(DEFAULT_MODEL_ID) } },
  users: { active: true, role: new ObjectId(VIEWER_ROLE_ID), _password: 'none' },
  roles: { name: 'x', credentials: ['GET /labels'] },
  tokens: { name: 'x', user: new ObjectId(), scopes: null },
  stores: { name: 'x' },
};

/** Refusals say the same of what is missing and of what may not be seen: the whole answer, but for its time and number. */
function bare({ status, body, headers }: Answer): object {
  const { date, 'x-request-id': id, ...rest } = headers;
  return { status, body, headers: rest };
}

describe.each(PLAYERS)('%s', (player) => {
  test.each(OBJECT_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))('%s', async (_, route) => {
    const seen: Record<string, number> = {};
    const expected: Record<string, number> = {};
    const missing = bare(await ask('objects', route, player, 'missing'));
    for (const at of PLACES) {
      const answer = await ask('objects', route, player, at);
      seen[at] = answer.status;
      expected[at] = expectedOf(route, player, at);
      if (answer.status === 404) expect(bare(answer)).toEqual(missing);
      if ([401, 403, 404].includes(answer.status) && route.method !== 'HEAD') {
        expect(answer.body).toEqual(refusal(answer.status));
      }
    }
    expect(seen).toEqual(expected);
  });

  const stores = ['labels', 'geofences', 'handlers', 'models', 'groups', 'roles', 'users', 'tokens', 'stores'];
  test.each(stores)('every method on an entity of %s', async (store) => {
    for (const route of STORE_ROUTES(store)) {
      const [seen, expected]: Record<string, number>[] = [{}, {}];
      const missing = bare(await ask(store, route, player, 'missing'));
      for (const at of PLACES) {
        const answer = await ask(store, route, player, at);
        Object.assign(seen ?? {}, { [at]: answer.status });
        Object.assign(expected ?? {}, { [at]: expectedOf(route, player, at) });
        if (answer.status === 404) expect(bare(answer)).toEqual(missing);
      }
      expect([route.method, route.path, seen]).toEqual([route.method, route.path, expected]);
    }
  });

  test('lists, their count and their ends hold just what single reads give', async () => {
    for (const store of ['objects', 'labels', 'users', 'roles']) {
      const names: Partial<Record<Place, string>> = {};
      for (const at of PLACES) {
        const unique = { id: `listed-${new ObjectId()}`, login: `listed-${new ObjectId()}` };
        names[at] = await place(service, cast, {
          store,
          at,
          player,
          fields: { ...FIELDS[store], ...unique, mark: player },
        });
      }
      const list = await cast.calls[player]('GET', `${store}?where.mark=${player}`);
      const meta = await cast.calls[player]('GET', `${store}?where.mark=${player}&meta=true`);
      const status = expectedOf(
        { method: 'GET', path: store, may: store === 'objects' ? [...READERS, 'device', 'scoped'] : READERS },
        player,
        'own',
      );
      const allowed = status === 200 || status === 404;
      expect([store, list.status, meta.status]).toEqual([store, allowed ? 200 : status, allowed ? 200 : status]);
      if (!allowed) continue;
      const ids = PLACES.filter((at) => sees(player, at)).map((at) => names[at]);
      expect(list.body.map(({ _id }: { _id: string }) => _id)).toEqual(ids);
      expect([meta.body.count, meta.body.first?._id, meta.body.last?._id]).toEqual([ids.length, ids[0], ids.at(-1)]);
    }
  });

  test('creation, the journal of commands, and paths that there are not', async () => {
    const admin = ADMINS.includes(player);
    const or = (status: number, allowed = admin): number => (player === 'nobody' ? 401 : allowed ? status : 403);
    const reader = admin || READERS.includes(player);
    const rows: [string, string, object | undefined, number][] = [
      ['POST', 'labels', { name: 'x' }, or(200)],
      ['POST', 'objects', { name: 'x', id: `made-${new ObjectId()}` }, or(200)],
      ['POST', 'models', { name: 'x' }, or(200)],
      ['POST', 'groups', { name: 'x' }, or(200)],
      ['POST', 'tokens', { name: 'x' }, or(200)],
      ['POST', 'users', { login: `made-${new ObjectId()}`, password: 'long enough' }, or(200)],
      ['POST', 'commands', { name: 'x' }, or(405)],
      ['DELETE', `commands/${new ObjectId()}`, undefined, or(405)],
      ['GET', 'commands', undefined, or(200, reader)],
      ['GET', `commands/${new ObjectId()}`, undefined, or(404, reader)],
      ['GET', 'nothing', undefined, or(404, reader)],
      ['POST', 'nothing', {}, or(404)],
      ['GET', 'nothing/at/all/here', undefined, or(404, reader)],
      ['PUT', 'labels', {}, or(405)],
      ['GET', 'auth', undefined, or(200, true)],
      ['PATCH', 'auth', {}, or(405, true)],
      ['GET', 'auth/nothing', undefined, or(404, true)],
    ];
    for (const [method, path, body, status] of rows) {
      const answer = await cast.calls[player](method, path, body);
      expect([method, path, answer.status]).toEqual([method, path, status]);
    }
  });
});

test('an object is not found by the packet of another, nor a packet under another object', async () => {
  const make = async (id: string) => (await service.admin('POST', 'objects', { id, name: id })).body._id as string;
  const [one, two] = [await make('packets-1'), await make('packets-2')];
  const { body: packet } = await service.admin('POST', `objects/${one}/packets`, { speed: 1 });
  expect((await service.admin('GET', `objects/${one}/packets/${packet._id}`)).status).toBe(200);
  for (const path of [
    `objects/${two}/packets/${packet._id}`,
    `objects/${packet._id}`,
    `objects/${one}/packets/${one}`,
  ]) {
    expect([path, (await service.admin('GET', path)).status]).toEqual([path, 404]);
  }
});
