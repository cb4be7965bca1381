/**
 * The rights of every caller on every route for an entity in every place, compared with docs/reference/permissions.md. Long because it is
 * one table of all routes.
 */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type Document, ObjectId } from 'mongodb';
import { DEFAULT_MODEL_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { refusal } from '../support/answers.js';
import { type Answer, useService } from '../support/fixture.js';
import {
  CALLERS,
  type CallerKind,
  createRightsFixture,
  OTHER_USER,
  PLACES,
  type Place,
  placeAll,
  type RightsFixture,
  sees,
} from './rights-fixture.js';
import { routes } from './routes.js';

/** No mail server is there, and none is asked. */
const MAIL = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'vigil@example.com' };
const service = useService({ env: { LOG_LEVEL: 'warn', ...MAIL } });
let fixture: RightsFixture;
beforeAll(async () => {
  fixture = await createRightsFixture(service);
});

/** What a route asks for: who may call it besides administrators. `known: false` is a method that the path has not. */
interface Route {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly may: readonly CallerKind[];
  readonly known?: boolean;
  /** Only for what belongs to the caller's group or below it: not for owners, nor for whom it is shared with. */
  readonly isOfGroup?: boolean;
}
const SCHEDULE = {
  name: 'x',
  report: 'trips',
  interval: 'yesterday',
  cron: '0 6 * * *',
  to: { users: ['000000000000000000000002'] },
};
const ADMINS: readonly CallerKind[] = ['rootAdmin', 'groupAdmin', 'foreignAdmin'];
const READERS: readonly CallerKind[] = ['operator', 'viewer'];

const OBJECT_ROUTES: readonly Route[] = [
  { method: 'GET', path: 'objects/:id', may: [...READERS, 'scoped'] },
  { method: 'HEAD', path: 'objects/:id', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id?only=name', may: [...READERS, 'scoped'] },
  { method: 'PATCH', path: 'objects/:id', body: { status: 'x' }, may: ['operator'] },
  { method: 'DELETE', path: 'objects/:id', may: ['scoped'] },
  { method: 'GET', path: 'objects/:id/events', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/series?params=speed', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/model', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/packets', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/refused', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/packets?meta=true', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/packets?format=csv', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/packets?format=geojson', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/packets?format=parquet', may: [...READERS, 'scoped'] },
  { method: 'POST', path: 'objects/:id/packets', body: { speed: 1 }, may: [] },
  { method: 'GET', path: 'objects/:id/packets/:packet', may: [...READERS, 'scoped'] },
  { method: 'POST', path: 'objects/:id/commands/stop', body: {}, may: ['operator', 'scoped'] },
  { method: 'POST', path: '/objects/:id/commands/stop', body: {}, may: ['operator', 'scoped'] },
  { method: 'GET', path: 'objects/:id/commands', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/commands?meta=true', may: [...READERS, 'scoped'] },
  { method: 'GET', path: 'objects/:id/commands?status=done&wait=0.001', may: [...READERS, 'scoped'] },
  {
    method: 'POST',
    path: 'objects/:id/commands/:sent/result',
    body: { status: 'done' },
    may: ['operator', 'scoped'],
  },
  { method: 'POST', path: 'objects/:id/access', body: { user: ':self' }, may: [] },
  { method: 'DELETE', path: 'objects/:id/access/:stranger', may: ['scoped'] },
  { method: 'POST', path: 'objects/:id/move', body: { group: ':own' }, may: [], isOfGroup: true },
  { method: 'GET', path: 'objects/:id/move', may: [...READERS, 'scoped'], known: false },
  { method: 'GET', path: 'objects/:id/notes', may: [...READERS, 'scoped'] },
  { method: 'POST', path: 'objects/:id/notes', body: { text: 'x' }, may: ['operator'] },
  { method: 'PATCH', path: 'objects/:id/notes', body: {}, may: ['operator'], known: false },
  { method: 'GET', path: 'objects/:id/links', may: [...READERS, 'scoped'] },
  { method: 'POST', path: 'objects/:id/links', body: { name: 'x' }, may: ['operator'] },
  { method: 'PATCH', path: 'objects/:id/links', body: {}, may: ['operator'], known: false },
  { method: 'PUT', path: 'objects/:id', body: {}, may: [], known: false },
  { method: 'POST', path: 'objects/:id', body: {}, may: [], known: false },
  { method: 'GET', path: 'objects/:id/track?stops=true', may: [...READERS, 'scoped'] },
  { method: 'DELETE', path: 'objects/:id/track', may: ['scoped'], known: false },
  { method: 'DELETE', path: 'objects/:id/packets?from=1&to=2', may: ['scoped'] },
  { method: 'DELETE', path: 'objects/:id/packets?from=1&dryRun=true', may: ['scoped'] },
  { method: 'PATCH', path: 'objects/:id/packets', body: {}, may: ['operator'], known: false },
  { method: 'PATCH', path: 'objects/:id/packets/:packet', body: {}, may: ['operator'], known: false },
  { method: 'GET', path: 'objects/:id/commands/stop', may: [...READERS, 'scoped'], known: false },
  { method: 'DELETE', path: 'objects/:id/commands', may: ['scoped'], known: false },
  { method: 'GET', path: 'objects/:id/commands/:sent/result', may: [...READERS, 'scoped'], known: false },
  { method: 'GET', path: 'objects/:id/access', may: [...READERS, 'scoped'], known: false },
];

/** The same for a store that nothing is special about; `users` and `roles` and others have rules besides. */
const STORE_ROUTES = (store: string): readonly Route[] => [
  { method: 'GET', path: `${store}/:id`, may: READERS },
  { method: 'PATCH', path: `${store}/:id`, body: { name: 'x' }, may: [] },
  { method: 'DELETE', path: `${store}/:id`, may: [] },
  { method: 'POST', path: `${store}/:id/access`, body: { user: ':self' }, may: [] },
  { method: 'DELETE', path: `${store}/:id/access/:stranger`, may: [] },
];

/** What handlers have beside. */
const HANDLER_ROUTES: readonly Route[] = [
  { method: 'GET', path: 'handlers/:id/deliveries', may: READERS },
  { method: 'GET', path: 'handlers/:id/deliveries?meta=true', may: READERS },
  { method: 'POST', path: 'handlers/:id/deliveries/:delivery/retry', body: {}, may: [] },
  { method: 'POST', path: 'handlers/:id/test', body: {}, may: [] },
  { method: 'POST', path: 'handlers/:id/replay', body: { from: 1, to: 2 }, may: [] },
  { method: 'POST', path: 'handlers/:id/secret', body: {}, may: [] },
  { method: 'DELETE', path: 'handlers/:id/deliveries', may: [], known: false },
];

/** What sources have beside. */
const SOURCE_ROUTES: readonly Route[] = [
  { method: 'GET', path: 'sources/:id/refused', may: READERS },
  { method: 'DELETE', path: 'sources/:id/refused', may: [], known: false },
];

/** What alarms have beside. */
const ALARM_ROUTES: readonly Route[] = [
  { method: 'POST', path: 'alarms/:id/acknowledge', body: { note: 'x' }, may: ['operator'] },
  { method: 'POST', path: 'alarms/:id/clear', body: {}, may: ['operator'] },
  { method: 'POST', path: 'alarms/:id/notes', body: { text: 'x' }, may: ['operator'] },
  { method: 'GET', path: 'alarms/:id/notes', may: READERS, known: false },
];

/** What schedules have beside. */
const SCHEDULE_ROUTES: readonly Route[] = [
  { method: 'POST', path: 'schedules/:id/run', body: {}, may: [] },
  { method: 'GET', path: 'schedules/:id/run', may: READERS, known: false },
];

const USER_ROUTES: readonly Route[] = [
  { method: 'GET', path: 'users/:id/permissions', may: READERS },
  { method: 'GET', path: 'users/:id/permissions?method=GET&path=/objects', may: READERS },
  { method: 'POST', path: 'users/:id/permissions', body: {}, may: [], known: false },
  { method: 'POST', path: 'users/:id/move', body: { group: ':own' }, may: [], isOfGroup: true },
  { method: 'PATCH', path: 'users/:id/move', body: {}, may: [], known: false },
];

/** The same for a journal, which the service alone writes. */
const JOURNAL_ROUTES = (store: string, may: readonly CallerKind[]): readonly Route[] => [
  { method: 'GET', path: `${store}/:id`, may },
  { method: 'HEAD', path: `${store}/:id`, may },
  { method: 'PATCH', path: `${store}/:id`, body: { status: 'x' }, may: [], known: false },
  { method: 'DELETE', path: `${store}/:id`, may: [], known: false },
  { method: 'POST', path: `${store}/:id/access`, body: { user: ':self' }, may: [], known: false },
  { method: 'DELETE', path: `${store}/:id/access/:stranger`, may: [], known: false },
];

/** What is asked of no entity: the answer to an administrator, and to whom else it is given; `root` is only for the root group's. */
const PLAIN_ROUTES: readonly (readonly [
  method: string,
  path: string,
  body: object | undefined,
  status: number,
  also: 'root' | 'none' | 'readers' | 'users' | 'people' | 'callers' | 'everyone',
])[] = [
  ['GET', '/', undefined, 200, 'everyone'],
  ['GET', '/api/v1', undefined, 200, 'everyone'],
  ['GET', '/docs', undefined, 308, 'everyone'],
  ['GET', '/api/v1/openapi.json', undefined, 200, 'everyone'],
  ['GET', '/api/v1/asyncapi.json', undefined, 200, 'everyone'],
  ['POST', '/api/v1/openapi.json', {}, 405, 'everyone'],
  ['POST', 'auth', {}, 400, 'everyone'],
  ['POST', 'auth/token', {}, 400, 'everyone'],
  ['GET', 'auth', undefined, 200, 'callers'],
  ['PATCH', 'auth', {}, 405, 'callers'],
  ['GET', 'account', undefined, 200, 'users'],
  ['PATCH', 'account', { name: 'x' }, 200, 'users'],
  ['GET', 'account/tokens', undefined, 200, 'users'],
  ['POST', 'account/tokens', { name: 'x' }, 200, 'users'],
  ['GET', 'account/sessions', undefined, 200, 'users'],
  ['DELETE', 'account/sessions', undefined, 200, 'users'],
  ['POST', 'account/channels/test', {}, 409, 'people'],
  ['POST', 'account/channels/confirm', {}, 400, 'people'],
  ['PUT', 'account', {}, 405, 'users'],
  ['GET', 'account/nothing', undefined, 404, 'users'],
  ['GET', 'events', undefined, 200, 'callers'],
  ['GET', 'events?from=1&to=2', undefined, 200, 'callers'],
  ['GET', 'events/org', undefined, 200, 'callers'],
  ['POST', 'events', {}, 405, 'callers'],
  ['GET', 'series?objects=nothing&params=speed', undefined, 200, 'callers'],
  ['POST', 'series', {}, 405, 'callers'],
  ['GET', 'reports/mileage?objects=nothing&from=2026-11-16', undefined, 200, 'callers'],
  ['GET', 'reports/trips?objects=nothing&from=2026-11-16', undefined, 200, 'callers'],
  ['GET', 'reports/stops?objects=nothing&from=2026-11-16', undefined, 200, 'callers'],
  ['GET', 'reports/geofences?objects=nothing&from=2026-11-16', undefined, 200, 'callers'],
  ['GET', 'reports/utilization?objects=nothing&from=2026-11-16&param=door', undefined, 200, 'callers'],
  ['GET', 'reports/shift?objects=nothing&from=2026-11-16', undefined, 200, 'callers'],
  ['POST', 'reports/mileage', {}, 405, 'callers'],
  ['DELETE', 'auth/token', undefined, 405, 'callers'],
  ['GET', 'auth/nothing', undefined, 404, 'callers'],
  ['GET', ':store', undefined, 200, 'readers'],
  ['POST', 'labels', { name: 'x' }, 200, 'none'],
  ['POST', 'objects', { name: 'x', id: ':unique' }, 200, 'none'],
  ['POST', 'models', { name: 'x' }, 200, 'none'],
  ['POST', 'groups', { name: 'x' }, 200, 'none'],
  ['POST', 'roles', { name: 'x', credentials: [] }, 200, 'none'],
  ['POST', 'tokens', { name: 'x' }, 200, 'none'],
  ['POST', 'stores', { name: ':unique' }, 200, 'none'],
  ['POST', 'users', { login: ':unique', password: 'long enough' }, 200, 'none'],
  ['PATCH', 'labels?where.name=missing', { name: 'y' }, 200, 'none'],
  ['DELETE', 'labels?where.name=missing', undefined, 200, 'none'],
  ['DELETE', 'labels', undefined, 400, 'none'],
  ['PATCH', 'roles?where.name=missing', { name: 'y' }, 405, 'none'],
  ['DELETE', 'users?where.login=missing', undefined, 405, 'none'],
  ['DELETE', 'commands?where.name=missing', undefined, 405, 'none'],
  ['POST', 'commands', { name: 'x' }, 405, 'none'],
  ['POST', 'audit', { name: 'x' }, 405, 'none'],
  ['POST', 'alarms', { name: 'x' }, 405, 'none'],
  ['POST', 'notes', { text: 'x' }, 405, 'none'],
  ['GET', 'notes', undefined, 200, 'readers'],
  ['POST', 'rules/test', {}, 400, 'none'],
  ['POST', 'rules', { name: 'x', when: { online: false } }, 200, 'none'],
  ['POST', 'schedules', {}, 400, 'none'],
  ['GET', 'schedules', undefined, 200, 'readers'],
  ['GET', 'alarms', undefined, 200, 'readers'],
  ['GET', 'rules', undefined, 200, 'readers'],
  ['GET', 'audit', undefined, 200, 'none'],
  ['GET', 'audit?meta=true', undefined, 200, 'none'],
  ['GET', 'commands', undefined, 200, 'readers'],
  ['GET', 'geocoder/reverse?lat=48&lon=11', undefined, 404, 'readers'],
  ['GET', 'geocoder/search?text=Dachau', undefined, 404, 'readers'],
  ['POST', 'geocoder/search', {}, 405, 'none'],
  ['GET', 'settings', undefined, 200, 'root'],
  ['PATCH', 'settings', { map: null }, 200, 'root'],
  ['GET', 'nothing', undefined, 404, 'readers'],
  ['POST', 'nothing', {}, 404, 'none'],
  ['GET', 'nothing/at/all/here', undefined, 404, 'readers'],
  ['PUT', 'labels', {}, 405, 'none'],
];

function expectedOf(route: Route, store: string, caller: CallerKind, at: Place): number {
  if (caller === 'anonymous') return 401;
  if (!ADMINS.includes(caller) && !route.may.includes(caller)) return 403;
  if (route.known === false) return 405;
  if (route.isOfGroup && ['owned', 'shared'].includes(at) && caller !== 'rootAdmin') return 403;
  if (sees(caller, at)) return 200;
  if (!isReadable(store, caller, at)) return 404;
  return route.method === 'GET' ? 200 : 403;
}

/** Labels and geofences of the groups above the objects of a caller can be read, and not changed. */
const isReadable = (store: string, caller: CallerKind, at: Place): boolean =>
  sees(caller, at) || (at === 'above' && ['labels', 'geofences'].includes(store));

const besideOf = (id: string): ObjectId => new ObjectId(id.replace(/^.{8}/, 'cafecafe'));

/** An entity in every place; an object with a packet and a command, whose ids tell whose they are. */
async function place(store: string, caller: CallerKind): Promise<Record<Place, string>> {
  const ids = await placeAll(service, fixture, {
    store,
    caller,
    fields: () => ({ ...FIELDS[store], ...uniqueOf(store) }),
  });
  if (store === 'handlers') {
    const message = { state: 'dead', partition: 0, body: '{}', attempts: 1, time: 1 };
    const rows = PLACES.map((at) => ({ _id: besideOf(ids[at]), handler: new ObjectId(ids[at]), ...message }));
    await service.client.db().collection('deliveries').insertMany(rows);
  }
  if (store !== 'objects') return ids;
  const stamp = { time: Date.now(), _ts: Date.now() * 1_000, online: true };
  const packets = PLACES.map((at) => {
    const _oid = new ObjectId(ids[at]);
    return { _id: toPacketKey(besideOf(ids[at]).toHexString(), _oid), ...stamp, _oid };
  });
  const commands = PLACES.map((at) => ({ _id: besideOf(ids[at]), object: new ObjectId(ids[at]), status: 'queued' }));
  await service.client
    .db()
    .collection('packets')
    .insertMany(packets as Document[]);
  await service.client.db().collection('commands').insertMany(commands);
  return ids;
}

const placed = new Map<string, Promise<Record<Place, string>>>();
/** What is only read is placed once. */
function placeToRead(store: string, caller: CallerKind): Promise<Record<Place, string>> {
  const known = placed.get(`${store} ${caller}`) ?? place(store, caller);
  placed.set(`${store} ${caller}`, known);
  return known;
}

/** Asks for one route in every place, and holds the answers to the rule; what was refused changed nothing. */
async function judge(store: string, route: Route, caller: CallerKind): Promise<void> {
  const isReading = ['GET', 'HEAD'].includes(route.method);
  const ids = await (isReading ? placeToRead : place)(store, caller);
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
        .replace(/:packet|:sent|:delivery/, besideOf(ids[at]).toHexString())
        .replace(':stranger', OTHER_USER);
      const isShared = route.body !== undefined && route.path.endsWith('/access');
      const body = isShared ? { user: fixture.ids[caller] } : withOwnGroup(route.body, caller);
      return fixture.calls[caller](route.method, path, body);
    }),
  );
  const seen = PLACES.map((at, index) => [at, answers[index]?.status]);
  const expected = PLACES.map((at) => [at, expectedOf(route, store, caller, at)]);
  expect([route.method, route.path, seen]).toEqual([route.method, route.path, expected]);
  const missing = bare(answers.at(-1) as Answer);
  for (const [index, answer] of answers.entries()) {
    if (answer.status === 404) expect(bare(answer)).toEqual(missing);
    if ([401, 403, 404].includes(answer.status) && route.method !== 'HEAD') {
      const mayRead =
        answer.status === 403 && route.known !== false && isReadable(store, caller, PLACES[index] as Place);
      const isReadOnly = mayRead && ADMINS.includes(caller);
      const why = route.isOfGroup ? 'a group that is not yours' : 'you may read it';
      expect(answer.body).toEqual(refusal(answer.status, isReadOnly ? why : undefined));
    }
  }
  if (answers.every(({ status }) => status !== 200)) expect(await stored()).toEqual(before);
}

/** `:own` is the group of the caller. */
function withOwnGroup(body: object | undefined, caller: CallerKind): object | undefined {
  if (body === undefined || !('group' in body)) return body;
  const { root, own, foreign } = fixture.branches;
  const branch = caller === 'rootAdmin' ? root : caller === 'foreignAdmin' ? foreign : own;
  return { ...body, group: branch.at(-1) };
}

function uniqueOf(store: string): object {
  const value = `unique-${new ObjectId()}`;
  return (
    { objects: { id: value }, sources: { id: value }, users: { login: value }, stores: { name: value } }[store] ?? {}
  );
}

const FIELDS: Readonly<Record<string, object>> = {
  objects: { name: 'x', model: new ObjectId(DEFAULT_MODEL_ID), models: { id: new ObjectId(DEFAULT_MODEL_ID) } },
  users: { active: true, role: new ObjectId(VIEWER_ROLE_ID), _password: 'none' },
  roles: { name: 'x', credentials: ['GET /labels'] },
  // Of an address to which nothing is sent.
  handlers: { url: 'http://127.0.0.1:9/', objects: [], _secrets: [{ secret: 'whsec_AAAA', until: null }] },
  alarms: { status: 'raised', acknowledged: null, notes: [] },
  // None that runs: of those whose owner does not exist, Vigil would write the reason meanwhile.
  rules: { name: 'x', when: { online: false }, active: false },
  schedules: { ...SCHEDULE, active: false, due: null },
  tokens: { name: 'x', user: new ObjectId(), scopes: null },
  sources: { name: 'x', kind: 'json', register: false, _key: 'none' },
};

/** Refusals say the same of what is missing and of what may not be seen: the whole answer, but for its time and number. */
function bare({ status, body, headers }: Answer): object {
  const { date, 'x-request-id': id, ...rest } = headers;
  return { status, body, headers: rest };
}

describe.each(CALLERS)('%s', (caller) => {
  test.each(OBJECT_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    'may or may not use %s',
    (_, route) => judge('objects', route, caller),
  );

  test.each(HANDLER_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    'may or may not use %s',
    (_, route) => judge('handlers', route, caller),
  );

  test.each(SOURCE_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    'may or may not use %s',
    (_, route) => judge('sources', route, caller),
  );

  test.each(ALARM_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    'may or may not use %s',
    (_, route) => judge('alarms', route, caller),
  );

  test.each(SCHEDULE_ROUTES.map((route) => [`${route.method} ${route.path}`, route] as const))(
    'may or may not use %s',
    (_, route) => judge('schedules', route, caller),
  );

  test('explains what a user may do', async () => {
    for (const route of USER_ROUTES) await judge('users', route, caller);
  });

  // Every store for one who may and one who may only read; for the others those that decide about rights.
  const all = ['geofences', 'handlers', 'sources', 'rules', 'schedules', 'models', 'groups', 'stores'];
  const stores = ['labels', 'users', 'roles', 'tokens', ...(['groupAdmin', 'viewer'].includes(caller) ? all : [])];
  test.each(stores)('checks every method on an entity of %s', async (store) => {
    for (const route of STORE_ROUTES(store)) await judge(store, route, caller);
  });

  test.each([
    ['commands', READERS],
    ['alarms', READERS],
    ['notes', READERS],
    ['audit', []],
  ] as const)('checks every method on an entry of %s', async (store, may) => {
    for (const route of JOURNAL_ROUTES(store, may)) await judge(store, route, caller);
  });

  test('lists exactly what single reads return', async () => {
    for (const store of ['objects', 'labels', 'users', 'roles', 'tokens', 'commands', 'notes', 'audit', 'groups']) {
      const mark = `${caller}-${new ObjectId()}`;
      const fields = () => ({ ...FIELDS[store], ...uniqueOf(store), mark });
      const placed = await placeAll(service, fixture, { store, caller, fields });
      const list = await fixture.calls[caller]('GET', `${store}?where.mark=${mark}`);
      const meta = await fixture.calls[caller]('GET', `${store}?where.mark=${mark}&meta=true`);
      const may = store === 'audit' ? [] : store === 'objects' ? [...READERS, 'scoped' as const] : READERS;
      const status = caller === 'anonymous' ? 401 : [...ADMINS, ...may].includes(caller) ? 200 : 403;
      expect([store, list.status, meta.status]).toEqual([store, status, status]);
      if (status !== 200) continue;
      const ids = PLACES.filter((at) => isReadable(store, caller, at)).map((at) => placed[at]);
      expect(list.body.map(({ _id }: { _id: string }) => _id)).toEqual(ids);
      expect([meta.body.count, meta.body.first?._id, meta.body.last?._id]).toEqual([ids.length, ids[0], ids.at(-1)]);
    }
  });

  test('checks creation, lists, logins and unknown paths', async () => {
    for (const [method, path, body, status, also] of PLAIN_ROUTES) {
      const text = body && JSON.stringify(body).replace(':unique', `made-${new ObjectId()}`);
      const isAllowed =
        (ADMINS.includes(caller) && (also !== 'root' || caller === 'rootAdmin')) ||
        also === 'callers' ||
        (also === 'users' && caller !== 'scoped') ||
        (also === 'people' && caller !== 'scoped' && caller !== 'device') ||
        (also === 'readers' && READERS.includes(caller));
      const expected = also === 'everyone' ? status : caller === 'anonymous' ? 401 : isAllowed ? status : 403;
      const answer = await fixture.calls[caller](method, path.replace(':store', 'labels'), text && JSON.parse(text));
      expect([method, path, answer.status]).toEqual([method, path, expected]);
    }
  });

  test('checks the logout', async () => {
    const call = await fixture.logIn(caller);
    const status = caller === 'anonymous' ? 401 : 200;
    expect([(await call('DELETE', 'auth')).status, (await call('GET', 'auth')).status]).toEqual([status, 401]);
  });
});

test('covers every route of the service', () => {
  const rows = [
    ...[
      ...OBJECT_ROUTES,
      ...HANDLER_ROUTES,
      ...SOURCE_ROUTES,
      ...ALARM_ROUTES,
      ...SCHEDULE_ROUTES,
      ...USER_ROUTES,
      ...STORE_ROUTES('labels'),
      ...JOURNAL_ROUTES('audit', []),
    ]
      .filter(({ known }) => known !== false)
      .map(({ method, path }) => `${method} ${path}`),
    ...PLAIN_ROUTES.filter(([, , , status]) => status !== 404 && status !== 405).map(
      ([method, path]) => `${method} ${path}`,
    ),
    'DELETE auth',
    'POST rules/:id/test',
    // test/http/moves.test.ts, test/http/move-rights.test.ts
    'POST groups/:id/objects',
    'POST alarms/acknowledge',
    'DELETE account/tokens/:id',
    'DELETE account/sessions/:id',
    // Rows above: a 404 to those who may, as this service has no geocoder.
    'GET geocoder/reverse',
    'GET geocoder/search',
    // Asked with the key of a source, not as a caller (test/sources/entrance.test.ts).
    'GET in/:source',
    'GET in/:source/:key',
    'POST in/:source',
    'POST in/:source/:key',
    'POST sources/:id/key',
    // Of links, and of their visitors, who are no callers (test/http/share-links.test.ts).
    'DELETE objects/:id/links/:linkID',
    // test/http/notes.test.ts
    'DELETE objects/:id/notes/:noteID',
    'POST shared',
    'GET shared',
    'GET shared/packets',
    'GET shared/series',
    'GET shared/events',
  ].map((row) =>
    row
      .replace(/\?.*/, '')
      .replace(/^(\S+) (?!\/)/, '$1 /api/v1/')
      .replace(':packet', ':packetID')
      .replace('commands/stop', 'commands/:command')
      .replace(':sent', ':commandID')
      .replace(':delivery', ':deliveryID')
      .replace(':stranger', ':user'),
  );
  // A generic route has its row where it is asked of objects, too.
  const generic = rows.map((row) => row.replace(/\/api\/v1\/[a-z]+(?=$|\/:id$|\/:id\/access)/, '/api/v1/:store'));
  const known = [...rows, ...generic];
  expect(routes().filter((route) => !known.includes(route))).toEqual([]);
  // And the routers were walked.
  expect(routes()).toEqual(expect.arrayContaining(['POST /objects/:id/commands/:command', 'GET /api/v1/:store']));
});

test('finds no packet under another object', async () => {
  const make = async (id: string) => (await service.admin('POST', 'objects', { id, name: id })).body._id as string;
  const one = await make('packets-1');
  const two = await make('packets-2');
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
