/** Who sees an object reads its model, and the geofences and labels of the groups above it, and changes none of them. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Call, useService } from '../support/fixture.js';

const service = useService();
const PASSWORD = 'correct horse battery';
const make = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id;

/** The tree: firm > depot > yard, firm > shop; and rival beside firm. */
type GroupName = 'root' | 'firm' | 'depot' | 'yard' | 'shop' | 'rival';
const groups: Record<GroupName, string> = { root: ROOT_GROUP_ID, firm: '', depot: '', yard: '', shop: '', rival: '' };
const GROUP_NAMES = Object.keys(groups) as GroupName[];
const PARENTS: readonly [GroupName, GroupName][] = [
  ['firm', 'root'],
  ['depot', 'firm'],
  ['yard', 'depot'],
  ['shop', 'firm'],
  ['rival', 'root'],
];
const STORES = ['geofences', 'labels'] as const;
/** By store and group. */
const made = new Map<string, string>();
const models: Partial<Record<GroupName, string>> = {};
let object: string;
let ownId: string;

beforeAll(async () => {
  for (const [name, parent] of PARENTS) groups[name] = await make('groups', { name, parent: groups[parent] });
  for (const name of GROUP_NAMES) {
    for (const store of STORES) made.set(`${store} ${name}`, await make(store, { name, group: groups[name] }));
    const data = { children: [{ id: 'unlock', name: 'Unlock', type: 'action' }] };
    models[name] = await make('models', { name, data, group: groups[name] });
  }
  ownId = 'van-in-the-yard';
  object = await make('objects', { id: ownId, name: 'Van', group: groups.yard, model: models.rival });
});

const readable = async (call: Call, store: string): Promise<string[]> =>
  entityNames((await call('GET', `${store}?sortBy=name`)).body);
const entityNames = (list: { name: string; _builtin?: boolean }[]): string[] =>
  list.map(({ name }) => name).filter((name) => (GROUP_NAMES as string[]).includes(name));

interface Case {
  readonly who: () => Promise<Person | { call: Call }>;
  readonly groups: readonly GroupName[];
  readonly models: readonly GroupName[];
}

const personIn = (name: GroupName) => () =>
  createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: groups[name], password: PASSWORD });

const withShare = async (): Promise<Person> => {
  const person = await personIn('rival')();
  entityOf(await service.admin('POST', `objects/${object}/access`, { user: person.id }));
  return person;
};

/** One who created an object before it came to another group. */
const asOwner = async (): Promise<Person> => {
  const person = await personIn('rival')();
  const objects = service.client.db().collection('objects');
  const one = await objects.findOne({ _id: new ObjectId(object) });
  await objects.insertOne({ ...one, _id: new ObjectId(), id: `of-${person.id}`, owner: new ObjectId(person.id) });
  return person;
};

const withToken = (scopes: readonly string[]) => async () => {
  const { call } = await personIn('depot')();
  const { body } = await call('POST', 'account/tokens', { name: 'scoped', scopes });
  return { call: service.as(body.token) };
};

describe.each<[string, Case]>([
  ['a user of the root group', { who: personIn('root'), groups: GROUP_NAMES, models: GROUP_NAMES }],
  [
    'a user of the group of the object',
    { who: personIn('yard'), groups: ['depot', 'firm', 'root', 'yard'], models: ['rival', 'yard'] },
  ],
  [
    'a user of a group above it',
    { who: personIn('depot'), groups: ['depot', 'firm', 'root', 'yard'], models: ['depot', 'rival', 'yard'] },
  ],
  ['a user of a group beside it, without objects', { who: personIn('shop'), groups: ['shop'], models: ['shop'] }],
  ['a user of another tenant, without objects', { who: personIn('rival'), groups: ['rival'], models: ['rival'] }],
  [
    'a user with whom the object is shared',
    { who: withShare, groups: ['depot', 'firm', 'rival', 'root', 'yard'], models: ['rival'] },
  ],
  ['the owner of an object', { who: asOwner, groups: ['depot', 'firm', 'rival', 'root', 'yard'], models: ['rival'] }],
  [
    'a token for the object',
    {
      who: withToken(['GET /objects/van-in-the-yard', 'GET /models/*', 'GET /labels/*', 'GET /geofences/*']),
      groups: ['depot', 'firm', 'root', 'yard'],
      models: ['depot', 'rival', 'yard'],
    },
  ],
  [
    'a token for another object only',
    {
      who: withToken(['GET /objects/elsewhere', 'GET /models/*', 'GET /labels/*', 'GET /geofences/*']),
      groups: ['depot', 'yard'],
      models: ['depot', 'yard'],
    },
  ],
])('%s', (_title, { who, groups: expected, models: expectedModels }) => {
  let call: Call;
  beforeAll(async () => {
    ({ call } = await who());
  });

  test.each([...STORES, 'models'] as const)('reads %s in lists, counts and by _id alike', async (store) => {
    const wanted = [...(store === 'models' ? expectedModels : expected)].sort();
    expect(await readable(call, store)).toEqual(wanted);
    const { body } = await call('GET', `${store}?meta=true&where.name=${GROUP_NAMES.join(',')}`);
    expect(body.count).toBe(wanted.length);
    for (const name of GROUP_NAMES) {
      const path = `${store}/${store === 'models' ? models[name] : made.get(`${store} ${name}`)}`;
      const status = wanted.includes(name) ? 200 : 404;
      expect([name, (await call('GET', path)).status]).toEqual([name, status]);
      expect([name, (await call('GET', `${path}?only=name`)).status]).toEqual([name, status]);
    }
  });
});

describe('pages of models that are read because of objects', () => {
  const COUNT = 12;
  let pages: { own: Person; shared: Person };
  const ids: string[] = [];

  /** A model that is removed while an object has it. */
  const makeRemoved = async (name: string): Promise<void> => {
    const model = await make('models', { name });
    await make('objects', { id: name, name: 'x', model, group: groups.yard });
    entityOf(await service.admin('DELETE', `models/${model}`));
  };

  beforeAll(async () => {
    const own = await personIn('yard')();
    const shared = await personIn('rival')();
    for (let nth = 0; nth < COUNT; nth++) {
      const model = await make('models', { name: `paged-${nth}`, group: groups.firm });
      ids.push(model);
      await makeRemoved(`removed-${nth}`);
      for (const twin of ['a', 'b']) {
        const id = await make('objects', {
          id: `paged-${nth}-${twin}`,
          name: 'x',
          model,
          group: nth % 3 === 1 ? groups.yard : groups.depot,
        });
        if (nth % 3 === 0) entityOf(await service.admin('POST', `objects/${id}/access`, { user: shared.id }));
      }
    }
    pages = { own, shared };
  });

  /** What all pages show, each from the link of the one before, or else by its offset. */
  const readAll = async (call: Call, query: string): Promise<string[]> => {
    const read: string[] = [];
    for (let next: string | null = `models?${query}`; next !== null; ) {
      const answer: Awaited<ReturnType<Call>> = await call('GET', next);
      read.push(...answer.body.map(({ _id }: { _id: string }) => _id));
      next = /^<\/api\/v1\/([^>]+)>/.exec(answer.headers.link ?? '')?.[1] ?? null;
      if (query.includes('sortBy') && answer.body.length > 0) next = `models?${query}&offset=${read.length}`;
    }
    return read;
  };

  test.each([
    ['of one', 'limit=1'],
    ['of three', 'limit=3'],
    ['in the other order', 'limit=4&sortBy=-_id'],
    ['of found ones', 'limit=3&search=paged'],
    ['by their names', 'limit=5&sortBy=name'],
  ])('show each model once %s', async (_title, query) => {
    for (const [who, rest] of [
      ['own', 1],
      ['shared', 0],
    ] as const) {
      const read = await readAll(pages[who].call, query);
      const wanted = ids.filter((_, nth) => nth % 3 === rest);
      expect(read.filter((id) => ids.includes(id)).sort()).toEqual([...wanted].sort());
      expect(new Set(read).size).toBe(read.length);
      const whole = (await pages[who].call('GET', 'models')).body.map(({ _id }: { _id: string }) => _id);
      if (!query.includes('search')) expect([...read].sort()).toEqual([...whole].sort());
    }
  });

  test('continue at every offset', async () => {
    const whole = (await pages.own.call('GET', 'models')).body.map(({ _id }: { _id: string }) => _id);
    expect(whole.length).toBeGreaterThan(3);
    for (const [offset, id] of whole.entries()) {
      const { body } = await pages.own.call('GET', `models?offset=${offset}&limit=1`);
      expect(body.map(({ _id }: { _id: string }) => _id)).toEqual([id]);
    }
  });
});

describe('what a user below reads because of an object', () => {
  let person: Person;
  beforeAll(async () => {
    person = await personIn('yard')();
  });
  const paths = () => [`models/${models.rival}`, ...STORES.map((store) => `${store}/${made.get(`${store} root`)}`)];
  const MESSAGE = 'you may read it because of objects that you see, but not change it';

  test('is not changed, shared or removed by that user', async () => {
    for (const path of paths()) {
      const { body: before } = await service.admin('GET', path);
      for (const [method, to, body] of [
        ['PATCH', path, { name: 'mine' }],
        ['DELETE', path, undefined],
        ['POST', `${path}/access`, { user: person.id }],
      ] as const) {
        const answer = await person.call(method, to, body);
        expectRefusal(answer, 403);
        expect(answer.body.helper.message).toBe(MESSAGE);
      }
      expect((await service.admin('GET', path)).body).toEqual(before);
    }
  });

  test('is left out of bulk requests', async () => {
    for (const store of [...STORES, 'models']) {
      const one = `${store}?where.name=root,rival`;
      expect((await person.call('PATCH', one, { description: 'mine' })).body).toMatchObject({ count: 0, done: 0 });
      expect((await person.call('DELETE', one)).body).toMatchObject({ count: 0, done: 0 });
    }
    for (const path of paths()) expect((await service.admin('GET', path)).body).not.toHaveProperty('description');
  });

  test('includes the commands of the model of an object that the user sees', async () => {
    const { status, body } = await person.call('GET', `objects/${ownId}/model`);
    expect([status, body.name, body._actions]).toEqual([
      200,
      'rival',
      [expect.objectContaining({ id: 'unlock', name: 'Unlock' })],
    ]);
  });

  test('lets the user send an object back whole, and give its model to another object', async () => {
    const { body: whole } = await person.call('GET', `objects/${object}`);
    expect((await person.call('PATCH', `objects/${object}`, whole)).status).toBe(200);
    const other = { id: 'second-van', name: 'Second', model: models.rival };
    expect((await person.call('POST', 'objects', other)).body.model).toBe(models.rival);
    const unseen = await person.call('POST', 'objects', { ...other, id: 'third-van', model: models.shop });
    expect([unseen.status, unseen.body.helper.message]).toEqual([400, 'model: there is no such entity in models']);
  });

  test('is explained', async () => {
    for (const path of paths()) {
      const asked = `users/${person.id}/permissions?method=GET&path=/${path}`;
      expect((await service.admin('GET', asked)).body).toMatchObject({ status: 200, entity: { reasons: ['object'] } });
    }
  });
});

test('ends at once with the right to the object that it came from', async () => {
  const person = await withShare();
  const statuses = async () => {
    const paths = [`models/${models.shop}`, ...STORES.map((store) => `${store}/${made.get(`${store} yard`)}`)];
    return Promise.all(paths.map(async (path) => (await person.call('GET', path)).status));
  };
  entityOf(await service.admin('PATCH', `objects/${object}`, { model: models.shop }));
  expect(await statuses()).toEqual([200, 200, 200]);
  entityOf(await service.admin('PATCH', `objects/${object}`, { model: models.rival }));
  expect(await statuses()).toEqual([404, 200, 200]);
  entityOf(await service.admin('DELETE', `objects/${object}/access/${person.id}`));
  expect(await statuses()).toEqual([404, 404, 404]);
});
