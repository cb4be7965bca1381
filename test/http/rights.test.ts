/** Who may do what to what: every caller, every route, every place an entity can be in, held to the rule of contract 6. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEFAULT_MODEL_ID, VIEWER_ROLE_ID } from '../../src/model/builtin.js';
import { refusal } from '../answers.js';
import { type Answer, useService } from '../fixture.js';
import { type Cast, gather, PLACES, PLAYERS, type Place, type Player, placeAll, STRANGER, sees } from './cast.js';

const service = useService({ env: { LOG_LEVEL: 'warn' } });
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
  { method: 'POST', path: 'objects/:id/access', body: { user: 'b'.repeat(24) }, may: [] },
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
  { method: 'POST', path: `${store}/:id/access`, body: { user: 'b'.repeat(24) }, may: [] },
  { method: 'DELETE', path: `${store}/:id/access/:stranger`, may: [] },
];

function expectedOf(route: Route, player: Player, at: Place): number {
  if (player === 'nobody') return 401;
  if (!ADMINS.includes(player) && !route.may.includes(player)) return 403;
  if (route.known === false) return 405;
  return sees(player, at) ? 200 : 404;
}

/** Asks for one route in every place, and holds the answers to the rule; what was refused changed nothing. */
async function judge(store: string, route: Route, player: Player): Promise<void> {
  const ids = await placeAll(service, cast, {
    store,
    player,
    fields: () => ({ ...FIELDS[store], ...uniqueOf(store) }),
  });
  if (route.path.includes(':packet')) {
    const stamp = { time: Date.now(), _ts: Date.now() * 1_000, online: true };
    const packets = PLACES.map((at) => ({ _id: new ObjectId(ids[at].replace(/^.{8}/, 'cafecafe')), ...stamp }));
    const documents = packets.map((one, index) => ({ ...one, _oid: new ObjectId(ids[PLACES[index] as Place]) }));
    await service.client.db().collection('packets').insertMany(documents);
  }
  const stored = (): Promise<unknown[]> =>
    service.client
      .db()
      .collection(store)
      .find({ _id: { $in: Object.values(ids).map((id) => new ObjectId(id)) } }, { sort: { _id: 1 } })
      .toArray();
  const before = await stored();
  const answers = await Promise.all(
    PLACES.map((at) => {
      const path = route.path
        .replace(':id', ids[at])
        .replace(':packet', ids[at].replace(/^.{8}/, 'cafecafe'))
        .replace(':stranger', STRANGER);
      return cast.calls[player](route.method, path, route.body);
    }),
  );
  const seen = PLACES.map((at, index) => [at, answers[index]?.status]);
  const expected = PLACES.map((at) => [at, expectedOf(route, player, at)]);
  expect([route.method, route.path, seen]).toEqual([route.method, route.path, expected]);
  const missing = bare(answers.at(-1) as Answer);
  for (const answer of answers) {
    if (answer.status === 404) expect(bare(answer)).toEqual(missing);
    if ([401, 403, 404].includes(answer.status) && route.method !== 'HEAD') {
      expect(answer.body).toEqual(refusal(answer.status));
    }
  }
  if (answers.every(({ status }) => status !== 200)) expect(await stored()).toEqual(before);
}

function uniqueOf(store: string): object {
  const value = `unique-${new ObjectId()}`;
  return { objects: { id: value }, users: { login: value }, stores: { name: value } }[store] ?? {};
}

const FIELDS: Readonly<Record<string, object>> = {
  objects: { name: 'x', model: new ObjectId(DEFAULT_MODEL_ID), models: { id: new ObjectId(DEFAULT_MODEL_ID) } },
  users: { active: true, role: new ObjectId(VIEWER_ROLE_ID), _password: 'none' },
  roles: { name: 'x', credentials: ['GET /labels'] },
  tokens: { name: 'x', user: new ObjectId(), scopes: null },
};

/** Refusals say the same of what is missing and of what may not be seen: the whole answer, but for its time and number. */
function bare({ status, body, headers }: Answer): object {
  const { date, 'x-request-id': id, ...rest } = headers;
  return { status, body, headers: rest };
}

describe.each(PLAYERS)('%s', (player) => {
  test.each(OBJECT_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))('%s', (_, route) =>
    judge('objects', route, player),
  );

  // Every store for one who may and one who may only read; for the others those that decide about rights.
  const all = ['geofences', 'handlers', 'models', 'groups', 'stores'];
  const stores = ['labels', 'users', 'roles', 'tokens', ...(['groupAdmin', 'viewer'].includes(player) ? all : [])];
  test.each(stores)('every method on an entity of %s', async (store) => {
    for (const route of STORE_ROUTES(store)) await judge(store, route, player);
  });

  test('lists, their count and their ends hold just what single reads give', async () => {
    for (const store of ['objects', 'labels', 'users', 'roles']) {
      const mark = `${player}-${new ObjectId()}`;
      const fields = () => ({ ...FIELDS[store], ...uniqueOf(store), mark });
      const placed = await placeAll(service, cast, { store, player, fields });
      const list = await cast.calls[player]('GET', `${store}?where.mark=${mark}`);
      const meta = await cast.calls[player]('GET', `${store}?where.mark=${mark}&meta=true`);
      const may = store === 'objects' ? [...READERS, 'device' as const, 'scoped' as const] : READERS;
      const status = player === 'nobody' ? 401 : [...ADMINS, ...may].includes(player) ? 200 : 403;
      expect([store, list.status, meta.status]).toEqual([store, status, status]);
      if (status !== 200) continue;
      const ids = PLACES.filter((at) => sees(player, at)).map((at) => placed[at]);
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
