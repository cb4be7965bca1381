/** The generic interface over every store: what is created, read, listed, changed and deleted, and what is refused. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { merge } from '../../src/core/entity.js';
import { SINGLE_ONLY, STORES } from '../../src/core/stores.js';
import { entityOf, eventsOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Listener, useService } from '../support/fixture.js';

const clock = { ms: Date.now() };
const MAIL = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'vigil@example.com' };
const service = useService({ now: () => clock.ms, env: MAIL });
const ADMIN_ID = '000000000000000000000002';
const ROOT_ID = '000000000000000000000001';
const MODEL_ID = '000000000000000000000010';
const FOREIGN = '65a0000000000000000000ff';
let listener: Listener;

interface Row {
  store: string;
  /** A body that creates; `n` makes it one of its own. */
  body: (n: number) => Record<string, unknown>;
  /** What the service adds to the body, beside the common fields. */
  adds?: Record<string, unknown>;
  /** What of the body is not shown. */
  hides?: string[];
  required: string[];
  unique?: string;
  /** A change of a field of the store's own. */
  patch: Record<string, unknown>;
}

const SCHEDULE = { name: 'Trips', report: 'trips', interval: 'yesterday', cron: '0 6 * * mon' };

const ROWS: Row[] = [
  {
    store: 'objects',
    body: (n) => ({ id: `object-${n}`, name: 'Car' }),
    adds: { status: '', active: true, model: MODEL_ID, models: { id: MODEL_ID } },
    required: ['id', 'name'],
    unique: 'id',
    patch: { status: 'moving' },
  },
  { store: 'models', body: () => ({ name: 'Van' }), required: ['name'], patch: { data: { id: 'van', children: [] } } },
  {
    store: 'users',
    body: (n) => ({ login: `user-${n}`, password: 'long enough' }),
    adds: { active: true, role: '000000000000000000000022' },
    hides: ['password'],
    required: ['login', 'password'],
    unique: 'login',
    patch: { name: 'Somebody' },
  },
  {
    store: 'groups',
    body: () => ({ name: 'Depot' }),
    adds: { parent: ROOT_ID },
    required: ['name'],
    patch: { name: 'Yard' },
  },
  {
    store: 'roles',
    body: () => ({ name: 'guard', credentials: ['GET /objects/*'] }),
    required: ['name', 'credentials'],
    patch: { credentials: ['GET /*'] },
  },
  { store: 'geofences', body: () => ({ name: 'Zone', points: [[1, 2]] }), required: [], patch: { points: [[3, 4.5]] } },
  { store: 'labels', body: () => ({ name: 'Red' }), required: [], patch: { name: 'Blue' } },
  {
    store: 'handlers',
    body: () => ({ url: 'https://crm.example/in' }),
    required: [],
    patch: { url: 'http://erp.example/' },
  },
  {
    store: 'sources',
    body: (n) => ({ id: `source-${n}`, name: 'Phones', kind: 'osmand' }),
    adds: { register: false, model: MODEL_ID },
    required: ['id', 'name', 'kind'],
    unique: 'id',
    patch: { timezone: 'Europe/Berlin' },
  },
  {
    store: 'rules',
    body: () => ({ name: 'Silent', when: { online: false } }),
    adds: { active: true, severity: 'warning' },
    required: ['name', 'when'],
    patch: { severity: 'critical' },
  },
  {
    store: 'stores',
    body: (n) => ({ name: `store-${n}` }),
    required: ['name'],
    unique: 'name',
    patch: { schema: { type: 'object' } },
  },
  {
    store: 'views',
    body: () => ({ name: 'Vans', query: 'view=table' }),
    adds: { shared: false },
    required: ['name', 'query'],
    patch: { query: 'view=map' },
  },
  {
    store: 'schedules',
    body: () => ({ ...SCHEDULE, to: { users: [ADMIN_ID] } }),
    adds: {
      query: {},
      tz: 'UTC',
      language: 'en',
      active: true,
      due: expect.any(Number),
      asked: null,
      lastDue: null,
      lastRun: null,
    },
    required: ['name', 'report', 'interval', 'cron', 'to'],
    patch: { language: 'de' },
  },
  { store: 'trucks', body: () => ({ plate: 'A1', axles: 3 }), required: ['plate'], patch: { axles: 2 } },
  {
    store: 'tokens',
    body: () => ({ name: 'edge' }),
    adds: { scopes: null, user: ADMIN_ID, issuedAt: expect.any(Number), expiresAt: expect.any(Number) },
    required: ['name'],
    patch: { name: 'edge 2' },
  },
];

let count = 0;
const next = (row: Row) => row.body(++count);
const create = async (row: Row, more: object = {}) =>
  entityOf(await service.admin('POST', row.store, { ...next(row), ...more }));
const ownUpdates = (row: Row, events: object[]) => (row.store === 'objects' ? events : []);
const received = async () => {
  await service.settled();
  return eventsOf(listener.take());
};
let trucksId: string;
const collection = (store: string) =>
  service.client.db().collection(store === 'trucks' ? `custom.trucks.${trucksId}` : store);
const stored = (store: string, id: string) => collection(store).findOne({ _id: new ObjectId(id) });
/** What the creation of a token, a webhook or a source alone tells. */
const shown = ({ token, secret, key, ...entity }: Record<string, unknown>) => entity;

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const schema = {
    type: 'object',
    required: ['plate'],
    properties: { plate: { type: 'string' }, axles: { type: 'integer' } },
  };
  trucksId = entityOf(await service.admin('POST', 'stores', { name: 'trucks', schema }))._id;
});

test('tests every writable store', () => {
  const writable = [...STORES.values()].filter(({ readOnly }) => !readOnly).map(({ name }) => name);
  expect(
    ROWS.map(({ store }) => store)
      .filter((store) => store !== 'trucks')
      .sort(),
  ).toEqual(writable.sort());
});

describe.each(ROWS)('$store', (row) => {
  const { store } = row;

  test('returns a created entity completely, in reads and lists too, without an event', async () => {
    const body = next(row);
    const answer = await service.admin('POST', store, { ...body, note: 'kept', nothing: null });
    const created = shown(entityOf(answer));
    for (const field of row.hides ?? []) delete body[field];
    const group = store === 'groups' ? created._id : ROOT_ID;
    expect(created).toEqual({
      ...row.adds,
      ...body,
      note: 'kept',
      nothing: null,
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      owner: ADMIN_ID,
      group,
      branch: store === 'groups' ? [ROOT_ID, group] : [ROOT_ID],
      access: [],
      time: clock.ms,
    });
    expect(await stored(store, created._id as string)).toMatchObject({
      note: 'kept',
      owner: new ObjectId(ADMIN_ID),
      time: clock.ms,
    });
    expect(entityOf(await service.admin('GET', `${store}/${created._id}`))).toEqual(created);
    const { body: list } = await service.admin('GET', store);
    expect(list).toContainEqual(created);
    expect(JSON.stringify(list)).not.toMatch(/"success"|"_?password"|"token"/);
    expect(await received()).toEqual([]);
  });

  test('ignores fields of the service on creation', async () => {
    const service_ = {
      _id: FOREIGN,
      access: [FOREIGN],
      owner: FOREIGN,
      branch: [FOREIGN],
      time: 5,
      _at: 6,
      success: 'x',
    };
    const created = await create(row, { ...service_, models: { id: FOREIGN }, state: { speed: 1 }, _hidden: 1 });
    expect(created).toMatchObject({ owner: ADMIN_ID, access: [], time: clock.ms });
    expect(created._id).not.toBe(FOREIGN);
    expect(created.branch).not.toContain(FOREIGN);
    expect(created).not.toHaveProperty('_at');
    expect(created).not.toHaveProperty('_hidden');
    if (store !== 'objects') return;
    expect(created.models).toEqual({ id: MODEL_ID });
    expect(created).not.toHaveProperty('state');
  });

  test('merges a change, stamps it and returns the whole entity', async () => {
    const created = shown(
      await create(row, { config: { auth: { username: 'u', password: 'p' }, list: [1, { a: 1 }], gone: 1 } }),
    );
    await received();
    clock.ms += 1_000;
    const patch = { ...row.patch, config: { auth: { username: 'x', deep: { er: [] } }, list: [{ b: 2 }], gone: null } };
    const changed = entityOf(await service.admin('PATCH', `${store}/${created._id}`, patch));
    expect(changed).toEqual({ ...merge(created as never, patch as never), _at: clock.ms });
    // What devices prove themselves with is sealed.
    const password = store === 'objects' ? expect.stringMatching(/^hmac-sha256:/) : 'p';
    expect(changed.config).toEqual({
      auth: { username: 'x', password, deep: { er: [] } },
      list: [{ b: 2 }],
      gone: null,
    });
    expect(entityOf(await service.admin('GET', `${store}/${created._id}`))).toEqual(changed);
    const names = Object.keys(patch);
    const pick = (entity: Record<string, unknown>) =>
      Object.fromEntries(names.filter((name) => name in entity).map((name) => [name, entity[name]]));
    expect(await received()).toEqual(
      ownUpdates(row, [
        { name: 'object-update', payload: { id: created._id, before: pick(created), after: pick(changed) } },
      ]),
    );
  });

  test('changes only the edited fields when an entity is read, edited and sent back', async () => {
    const created = shown(await create(row));
    await received();
    const edited = {
      ...created,
      _id: FOREIGN,
      access: [FOREIGN],
      owner: FOREIGN,
      group: FOREIGN,
      branch: [FOREIGN],
      time: 1,
      _at: 1,
    };
    const own = store === 'objects' ? { models: { id: FOREIGN }, state: { speed: 1 } } : {};
    const whole = { ...edited, ...own, success: false, remark: 'edited' };
    const changed = entityOf(await service.admin('PATCH', `${store}/${created._id}`, whole));
    expect(changed).toEqual({ ...created, remark: 'edited', _at: clock.ms });
    expect(await stored(store, created._id as string)).toMatchObject({
      owner: new ObjectId(ADMIN_ID),
      access: [],
      time: created.time,
    });
    expect(await received()).toEqual(
      ownUpdates(row, [
        { name: 'object-update', payload: { id: created._id, before: {}, after: { remark: 'edited' } } },
      ]),
    );
  });

  test.each([[{}], [undefined], [{ _id: FOREIGN, time: 0 }]])(
    'returns the entity completely and without an event for an empty change (%j)',
    async (body) => {
      const created = shown(await create(row));
      const changed = entityOf(await service.admin('PATCH', `${store}/${created._id}`, body));
      expect(changed).toEqual({ ...created, _at: clock.ms });
      expect(await received()).toEqual([]);
    },
  );

  test('returns a deleted entity completely, and removes it', async () => {
    const created = shown(await create(row));
    await received();
    expect(entityOf(await service.admin('DELETE', `${store}/${created._id}`))).toEqual(created);
    expect(await stored(store, created._id as string)).toBeNull();
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      expectRefusal(await service.admin(method, `${store}/${created._id}`, method === 'PATCH' ? {} : undefined), 404);
    }
    const { body: list } = await service.admin('GET', `${store}?where._id=${created._id}`);
    expect(list).toEqual([]);
    expect(await received()).toEqual([]);
  });

  test('returns only the named fields and _id with `only`', async () => {
    const created = shown(await create(row, { config: { a: { b: 1, c: 2 }, d: 3 } }));
    const expected = { _id: created._id, owner: ADMIN_ID, config: { a: { b: 1 } } };
    const query = 'only=owner,config.a.b,_password,missing';
    expect(entityOf(await service.admin('GET', `${store}/${created._id}?${query}`))).toEqual(expected);
    const { body: list } = await service.admin(
      'GET',
      `${store}?where._id=${created._id}&${query.replaceAll(',', '%2C')}`,
    );
    expect(list).toEqual([expected]);
  });

  test('requires each required field on creation, and stores nothing without it', async () => {
    const before = await collection(store).countDocuments();
    for (const field of row.required) {
      const { [field]: _, ...body } = next(row);
      expectRefusal(await service.admin('POST', store, body), 400, `${field}: required`);
      expectRefusal(await service.admin('POST', store, { ...body, [field]: null }), 400, `${field}: `);
    }
    const answer = await service.admin('POST', store);
    if (row.required.length === 0) entityOf(answer);
    else expectRefusal(answer, 400, ': required');
    expect(await collection(store).countDocuments()).toBe(before + (row.required.length === 0 ? 1 : 0));
  });

  test('refuses a body that is not a JSON object, on creation and change', async () => {
    const { _id } = await create(row);
    for (const body of ['[]', '"text"', '5', 'null', '[{}]', '{']) {
      expectRefusal(await service.admin('POST', store, body), 400);
      expectRefusal(await service.admin('PATCH', `${store}/${_id}`, body), 400);
    }
    expect(await stored(store, _id)).not.toHaveProperty('_at');
    await service.admin('DELETE', `${store}/${_id}`);
  });

  test('refuses a duplicate of a unique field on creation and change, and changes nothing', async () => {
    if (row.unique === undefined) return;
    const first = await create(row);
    const second = await create(row);
    await received();
    expectRefusal(
      await service.admin('POST', store, { ...next(row), [row.unique]: first[row.unique] }),
      409,
      row.unique,
    );
    if (store === 'stores') return;
    expectRefusal(
      await service.admin('PATCH', `${store}/${second._id}`, { [row.unique]: first[row.unique] }),
      409,
      row.unique,
    );
    expect(entityOf(await service.admin('GET', `${store}/${second._id}`))).toEqual(shown(second));
    expect(await received()).toEqual([]);
  });

  test.each<[method: string, path: string, allow: string]>([
    ['PUT', '', SINGLE_ONLY.has(store) ? 'GET, POST, HEAD' : 'GET, POST, PATCH, DELETE, HEAD'],
    ...(SINGLE_ONLY.has(store) ? ['PATCH', 'DELETE'] : []).map((method): [string, string, string] => [
      method,
      '',
      'GET, POST, HEAD',
    ]),
    ['POST', `/${FOREIGN}`, 'GET, PATCH, DELETE, HEAD'],
    ['PUT', `/${FOREIGN}`, 'GET, PATCH, DELETE, HEAD'],
    ['GET', `/${FOREIGN}/access`, 'POST'],
    ['PATCH', `/${FOREIGN}/access/${FOREIGN}`, 'DELETE'],
  ])('refuses the method %s …%s, and lists the allowed ones', async (method, path, allow) => {
    const answer = await service.admin(method, `${store}${path}`);
    expectRefusal(answer, 405, allow);
    expect(answer.headers.allow).toBe(allow);
  });

  test('answers the same for a missing entity and an invalid _id', async () => {
    const { text } = await service.admin('GET', `${store}/${FOREIGN}`);
    for (const id of [FOREIGN, 'missing', '1', '%24ne', '..%2F..', 'null', '%00', '%5Bobject%20Object%5D']) {
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const answer = await service.admin(method, `${store}/${id}`, method === 'PATCH' ? row.patch : undefined);
        expectRefusal(answer, 404);
        expect(answer.text).toBe(text);
      }
    }
  });
});
