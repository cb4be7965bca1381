/** How the database finds what every route asks of it: by an index, in the order of the index. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { ADMIN, startSecond, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

// Before the database is dropped: what is profiled is written into it.
afterAll(() => service.client.db().command({ profile: 0 }));
const service = useService();
const NOW = Date.now();
const OBJECTS = 20;
/** What stands for itself in a path. */
const known: Record<string, string> = {};

beforeAll(async () => {
  const post = async (path: string, body: object) => (await service.admin('POST', path, body)).body;
  for (let nth = 0; nth < OBJECTS; nth++) {
    const { _id } = await post('objects', { id: `truck-${nth}`, name: `Truck ${nth}` });
    const packets = Array.from({ length: 20 }, (_, at) => ({ time: NOW - at * 1_000, speed: at }));
    await post(`objects/${_id}/packets`, packets);
    // Every other one has gone since: its state is further back.
    if (nth % 2 === 1) await post(`objects/${_id}/packets`, { time: NOW + 1, online: false });
    await post(`objects/${_id}/commands/lock`, {});
    known.object = _id;
  }
  known.packet = (await service.admin('GET', `objects/${known.object}/packets?limit=1`)).body[0]._id;
  known.command = (await service.admin('GET', 'commands?limit=1')).body[0]._id;
  known.user = (await service.admin('GET', 'auth')).body._id;
  await service.client.db().command({ profile: 2 });
});

interface Profiled {
  readonly ns: string;
  readonly planSummary?: string;
  readonly hasSortStage?: boolean;
  readonly docsExamined?: number;
  readonly keysExamined?: number;
  readonly command: object;
}

/** News, the profile itself, who of the few instances still lives, and what is to be told now: looked at by the service itself, again and again. */
const ITS_OWN = /\$cmd|system\.profile|\.(instances|notifications)$/;

/** The operations of the database since a request, without its own background operations. */
async function profile(ask: () => Promise<unknown>): Promise<Profiled[]> {
  const db = service.client.db();
  const { localTime } = await db.command({ hello: 1 });
  await ask();
  const done = db.collection<Profiled>('system.profile').find({ ts: { $gte: localTime } }, { batchSize: 1_000 });
  const found = await done.toArray();
  return found.filter(({ ns, planSummary }) => !ITS_OWN.test(ns) && planSummary !== undefined);
}

const isBad = ({ hasSortStage, planSummary = '' }: Profiled): boolean =>
  hasSortStage === true || planSummary.includes('COLLSCAN');

const INTERVAL = `from=${NOW - 60_000}&to=${NOW}`;
const LISTS = ['', '?limit=5&offset=2', '?limit=5&after=<object>', '?only=name', '?meta=true', `?${INTERVAL}`];
const STORES = 'objects models users groups roles tokens commands geofences labels handlers stores audit'.split(' ');
const REQUESTS: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['GET', 'objects/<object>/links'],
  ['POST', 'objects/<object>/links', { name: 'x' }],
  ...STORES.flatMap((store) => [...LISTS, '/<object>'].map((rest) => ['GET', `${store}${rest}`] as const)),
  ['GET', 'auth'] as const,
  ['POST', 'auth/token', ADMIN] as const,
  ['GET', 'objects/truck-3'] as const,
  ['GET', 'objects/truck-3?only=name,state.speed'] as const,
  ['POST', 'objects', { id: 'new', name: 'New' }] as const,
  ['DELETE', 'objects/new'] as const,
  ['PATCH', 'objects/truck-3', { status: 'x' }] as const,
  ['PATCH', 'objects/<object>', { status: 'y' }] as const,
  ['PATCH', 'objects/<object>', { id: 'truck-0' }] as const,
  ['POST', 'labels', { name: 'L' }] as const,
  ['POST', 'objects/<object>/access', { user: '<user>' }],
  ['DELETE', 'objects/<object>/access/<user>'],
  ...[
    '',
    `?begin=${NOW - 10_000}&end=${NOW}`,
    '?after=<packet>&limit=5',
    '?meta=true',
    '?sortBy=-time&limit=3',
    '?format=csv&limit=9',
    '?format=gpx&sortBy=-time',
  ]
    .map((rest) => `objects/<object>/packets${rest}`)
    .map((path) => ['GET', path] as const),
  ['GET', 'objects/truck-3/packets'] as const,
  ['GET', 'objects/<object>/packets/<packet>'] as const,
  ['POST', 'objects/truck-3/packets', { speed: 1 }] as const,
  ['POST', 'objects/<object>/packets', []] as const,
  ['GET', 'objects/<object>/commands'] as const,
  ['GET', 'commands/<command>'] as const,
  ['GET', 'alarms?where.status=raised&limit=5'] as const,
  ['GET', 'alarms?where.status=cleared&sortBy=-raised&limit=5'] as const,
  ['GET', 'objects/<object>/track?from=5&stops=true'],
  ['DELETE', 'objects/<object>/packets?to=5&dryRun=true'],
  ['DELETE', 'objects/<object>/packets?to=5'],
  ['POST', 'objects/truck-3/commands/lock', {}],
  ['POST', 'objects/<object>/commands/<command>/result', { status: 'done' }],
];

const resolveIds = (text: string): string => text.replace(/<(\w+)>/g, (_, name: string) => known[name] ?? '');

describe('without a collection scan or a sort', () => {
  test.each(REQUESTS.map(([method, path, body]) => ({ method, path, body })))(
    'answers $method $path',
    async (asked) => {
      const body = asked.body && JSON.parse(resolveIds(JSON.stringify(asked.body)));
      const done = await profile(() => service.admin(asked.method, resolveIds(asked.path), body));
      expect(done.filter(isBad).map(({ ns, planSummary, command }) => ({ ns, planSummary, command }))).toEqual([]);
    },
  );
});

describe('for a user below root, without reading the objects that make them readable', () => {
  const models = Array.from({ length: 400 }, () => new ObjectId());

  /** Stores copies of an entity, one for each of the models. */
  async function copy(store: string, id: string, fieldsOf: (model: ObjectId, nth: number) => object): Promise<void> {
    const collection = service.client.db().collection(store);
    const one = await collection.findOne({ _id: new ObjectId(id) });
    await collection.deleteMany({ _id: { $in: models } });
    await collection.insertMany(models.map((model, nth) => ({ ...one, ...fieldsOf(model, nth) })));
  }

  /** The reads of objects for a list, by a user whose objects have a model each. */
  async function readsOfObjects(store: string, query: string): Promise<Profiled[]> {
    const login = `below-${store}-${query.length}`;
    const { body: group } = await service.admin('POST', 'groups', { name: login });
    const fields = { login, password: ADMIN.password, group: group._id, role: ADMINISTRATOR_ROLE_ID };
    await service.admin('POST', 'users', fields);
    const call = service.as(await service.tokenOf(login, ADMIN.password));
    const { body: model } = await service.admin('POST', 'models', { name: login });
    const named = { name: 'x', model: model._id, group: group._id };
    const { body: object } = await service.admin('POST', 'objects', { id: login, ...named });
    await call('POST', 'objects', { id: `${login}-own`, name: 'x' });
    await copy('models', model._id, (_id) => ({ _id }));
    await copy('objects', object._id, (_id, nth) => ({ _id: new ObjectId(), id: `${login}-${nth}`, model: _id }));
    const done = await profile(() => call('GET', `${store}${query}`));
    expect(done.filter(isBad)).toEqual([]);
    return done.filter(({ ns, planSummary = '' }) => ns.endsWith('.objects') && planSummary.includes('DISTINCT_SCAN'));
  }

  test.each(['models', 'geofences', 'labels'])('finds %s', async (store) => {
    const done = await readsOfObjects(store, '?search=x');
    expect(done.length).toBeGreaterThanOrEqual(2);
    expect(done.filter(({ docsExamined = 0 }) => docsExamined > 0)).toEqual([]);
  });

  test.each(['?limit=3', '?limit=2&offset=1', '?limit=3&sortBy=-_id'])(
    'reads as many models of them as the page models%s has, and no more',
    async (query) => {
      const done = await readsOfObjects('models', query);
      // Of the group, and one each of those that the user owns or were shared.
      expect(done.length).toBeGreaterThanOrEqual(2);
      expect(done.map(({ docsExamined = 0 }) => docsExamined)).toEqual(done.map(() => 0));
      // The first time, the planner of the database tries 101 keys.
      expect(done.filter(({ keysExamined = 0 }) => keysExamined > models.length / 2)).toEqual([]);
    },
  );
});

test('reads objects with wrong clocks by an index when an instance starts', async () => {
  const { body } = await service.admin('POST', 'objects', { id: 'reset', name: 'x' });
  await service.admin('POST', `objects/${body._id}/packets`, { time: 5_000, n: 1 });
  await until(async () => (await service.admin('GET', `objects/${body._id}`)).body.wrongClock?.packets === 1);
  const endings: (() => unknown)[] = [];
  const started = await profile(async () => {
    await startSecond(service, endings);
    await until(async () => (await readsOfWrongClocks()).length > 0, 'the read');
  });
  for (const end of endings) await end();
  const ofClocks = started.filter(({ command }) => JSON.stringify(command).includes('wrongClock'));
  expect(ofClocks).toMatchObject([{ planSummary: 'IXSCAN { wrongClock: 1 }', docsExamined: 1 }]);
});

const readsOfWrongClocks = () =>
  service.client
    .db()
    .collection('system.profile')
    .find({ 'command.filter.wrongClock': { $exists: true } })
    .toArray();

test('detects a collection scan and a sort in the profile', async () => {
  const objects = service.client.db().collection('objects');
  const done = await profile(() => objects.find({ name: 'x' }).sort({ description: 1 }).toArray());
  const own = done.filter(({ command }) => JSON.stringify(command).includes('"description"'));
  expect(own.map(({ planSummary, hasSortStage }) => [planSummary, hasSortStage])).toEqual([['COLLSCAN', true]]);
});
