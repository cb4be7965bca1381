/** Control objects: their two names, their model, their state, their groups, and the events that follow. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { entityOf, eventsOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Call, type Listener, useService } from '../support/fixture.js';

const clock = { ms: Date.now() };
const service = useService({ now: () => clock.ms });
const PAST_MS = Date.UTC(2026, 0, 1);
const MODEL_ID = '000000000000000000000010';
const ROOT_ID = '000000000000000000000001';
let listener: Listener;
let count = 0;

const create = async (more: object = {}) =>
  entityOf(await service.admin('POST', 'objects', { id: `o-${++count}`, name: 'Car', ...more }));
const read = async (key: string) => entityOf(await service.admin('GET', `objects/${key}`));
const send = async (key: string, packet: object) =>
  entityOf(await service.admin('POST', `objects/${key}/packets`, packet));
const received = async () => {
  await service.settled();
  return eventsOf(listener.take());
};
const update = (id: string, before: object, after: object) => ({
  name: 'object-update',
  payload: { id, before, after },
});

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
});

describe('an object', () => {
  test('requires an id and a name, and gets a model, a status and `active`', async () => {
    const object = entityOf(await service.admin('POST', 'objects', { name: 'Car', id: 'first' }));
    expect(object).toEqual({
      _id: expect.any(String),
      id: 'first',
      name: 'Car',
      status: '',
      active: true,
      model: MODEL_ID,
      models: { id: MODEL_ID },
      owner: '000000000000000000000002',
      group: ROOT_ID,
      branch: [ROOT_ID],
      access: [],
      time: clock.ms,
    });
  });

  test.each([['text'], [5], [[]]])('requires that its config is an object, not %j', async (config) => {
    const { status, body } = await service.admin('POST', 'objects', { id: 'unset', name: 'x', config });
    expect([status, body.helper.message]).toEqual([400, 'config: expected an object']);
  });

  test('keeps every field of a user, and returns it in lists', async () => {
    const fields = { status: 'idle', active: false, description: 'd', config: { a: [1] }, phone: '+1', tags: ['x'] };
    const object = await create(fields);
    expect(object).toMatchObject(fields);
    expect((await service.admin('GET', `objects?where._id=${object._id}`)).body).toEqual([object]);
  });

  test('accepts any text as its id, except characters with a meaning in paths and topics', async () => {
    for (const id of ['a b', 'машина', '%41', 'a.b', 'a?b=c&d', '"', '🚗', 'packets', 'a+b', '...']) {
      const object = entityOf(await service.admin('POST', 'objects', { id, name: 'n' }));
      expect(await read(encodeURIComponent(id))).toEqual(object);
      expect(await read(object._id)).toEqual(object);
    }
    for (const id of [
      'a/b',
      '*',
      ' ',
      'f'.repeat(24),
      'a#',
      'a\n',
      '\0',
      '',
      'x'.repeat(129),
      5,
      null,
      ['x'],
      { $ne: 1 },
    ]) {
      expectRefusal(await service.admin('POST', 'objects', { id, name: 'n' }), 400, 'id');
    }
  });

  test.each<[method: string, below: string, body: object | undefined]>([
    ['GET', '', undefined],
    ['PATCH', '', { status: 'seen' }],
    ['GET', '/packets', undefined],
    ['POST', '/packets', { speed: 1 }],
    ['POST', '/commands/go', {}],
    ['DELETE', '', undefined],
  ])('is found by its own id as by its _id: %s …%s', async (method, below, body) => {
    const one = await create();
    const two = await create();
    for (const key of [one._id, two.id, one._id.toUpperCase()].slice(0, method === 'DELETE' ? 2 : 3)) {
      expect((await service.admin(method, `objects/${key}${below}`, body)).status).toBe(200);
    }
  });

  test('refuses the _id of another object as own id, even after its removal', async () => {
    const one = await create();
    expectRefusal(await service.admin('POST', 'objects', { id: one._id, name: 'n' }), 400, 'id');
    expectRefusal(await service.admin('PATCH', `objects/${(await create())._id}`, { id: one._id }), 400, 'id');
    entityOf(await service.admin('DELETE', `objects/${one._id}`));
    expectRefusal(await service.admin('POST', 'objects', { id: one._id, name: 'n' }), 400, 'id');
  });

  test('requires a model that exists and that the caller sees', async () => {
    const model = entityOf(await service.admin('POST', 'models', { name: 'Van' }));
    const object = await create({ model: model._id.toUpperCase(), models: { id: MODEL_ID } });
    expect(object).toMatchObject({ model: model._id, models: { id: model._id } });
    await received();
    const changed = entityOf(await service.admin('PATCH', `objects/${object._id}`, { model: MODEL_ID }));
    expect(changed).toMatchObject({ model: MODEL_ID, models: { id: MODEL_ID } });
    const names = (id: string) => ({ model: id, models: { id } });
    expect(await received()).toEqual([update(object._id, names(model._id), names(MODEL_ID))]);
    const role = '000000000000000000000022';
    for (const wrong of ['65a0000000000000000000ff', role, 'van', 5, null, { id: MODEL_ID }]) {
      expectRefusal(await service.admin('POST', 'objects', { id: 'wrong', name: 'n', model: wrong }), 400, 'model');
      expectRefusal(await service.admin('PATCH', `objects/${object._id}`, { model: wrong }), 400, 'model');
    }
    expect((await read(object._id)).model).toBe(MODEL_ID);
    expect(await received()).toEqual([]);
  });

  test.each<[what: string, patch: object, before: object, after: object]>([
    ['a status', { status: 'moving' }, { status: '' }, { status: 'moving' }],
    ['a status to null', { status: null }, { status: '' }, { status: null }],
    ['two fields', { name: 'Bus', active: false }, { name: 'Car', active: true }, { name: 'Bus', active: false }],
    ['one of two fields', { name: 'Car', status: 'x' }, { status: '' }, { status: 'x' }],
    ['a new field', { note: [] }, {}, { note: [] }],
    ['a leaf', { config: { a: { b: 2 } } }, { config: { a: { b: 1, c: 1 } } }, { config: { a: { b: 2, c: 1 } } }],
    ['its own id', { id: 'renamed' }, { id: 'x' }, { id: 'renamed' }],
  ])('publishes a change of %s, with before and after', async (_, patch, before, after) => {
    const object = await create({ config: { a: { b: 1, c: 1 } } });
    expect(await received()).toEqual([]);
    const changed = entityOf(await service.admin('PATCH', `objects/${object._id}`, patch));
    expect(changed).toMatchObject({ ...after, _at: clock.ms });
    expect(await received()).toEqual([update(object._id, 'id' in before ? { id: object.id } : before, after)]);
  });

  test.each<[what: string, patch: object, refused: boolean]>([
    ['the same values', { name: 'Car', status: '', config: { a: 1 } }, false],
    ['nothing', {}, false],
    ['what only the service sets', { owner: 'x', group: 'y', _at: 1, models: {}, state: { speed: 9 } }, false],
    ['a wrong type', { active: 'yes' }, true],
    ['a hostile name', { status: 'x', config: { 'a.b': 1 } }, true],
  ])('publishes no change of %s', async (_, patch, refused) => {
    const object = await create({ config: { a: 1 } });
    const answer = await service.admin('PATCH', `objects/${object._id}`, patch);
    if (refused) expectRefusal(answer, 400);
    else expect(entityOf(answer)).toEqual({ ...object, _at: clock.ms });
    expect(await received()).toEqual([]);
    expect((await read(object._id)).status).toBe('');
  });

  test('keeps all nested fields that are changed concurrently', async () => {
    const object = await create({ config: {} });
    const names = Array.from({ length: 20 }, (_, n) => `k${n}`);
    await Promise.all(
      names.map((name) => service.admin('PATCH', `objects/${object._id}`, { config: { [name]: name } })),
    );
    expect((await read(object._id)).config).toEqual(Object.fromEntries(names.map((name) => [name, name])));
    expect(await received()).toHaveLength(20);
  });

  test('is created once by concurrent requests', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => service.admin('POST', 'objects', { id: 'race', name: 'n' })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)]);
    expect((await service.admin('GET', 'objects?where.id=race')).body).toHaveLength(1);
  });
});

describe('the state of an object', () => {
  test('is complete as soon as a packet is acknowledged, in reads, lists, changes and deletions', async () => {
    const { _id, id } = await create();
    expect(await read(id)).not.toHaveProperty('state');
    const state = await send(id, { speed: 5, pos: { lat: 1 } });
    expect((await read(id)).state).toEqual(state);
    expect((await service.admin('GET', `objects?where._id=${_id}`)).body[0].state).toEqual(state);
    expect((await service.admin('GET', `objects?meta=true&where._id=${_id}`)).body).toMatchObject({
      first: { state },
      last: { state },
    });
    expect(entityOf(await service.admin('PATCH', `objects/${id}`, { status: 's' })).state).toEqual(state);
    expect(entityOf(await service.admin('DELETE', `objects/${id}`)).state).toEqual(state);
  });

  test.each<[what: string, packets: object[], speed: number]>([
    [
      'of a later time',
      [
        { time: PAST_MS + 1_000, speed: 1 },
        { time: PAST_MS + 2_000, speed: 2 },
      ],
      2,
    ],
    [
      'that is not late',
      [
        { time: PAST_MS + 2_000, speed: 1 },
        { time: PAST_MS + 1_000, speed: 2 },
        { time: PAST_MS + 1_500, speed: 3 },
      ],
      1,
    ],
    [
      'that came last of equal times',
      [
        { time: PAST_MS + 1_000, speed: 1 },
        { time: PAST_MS + 1_000, speed: 2 },
      ],
      2,
    ],
    ['with a time before 1970 when there is no other', [{ time: '1969-12-31T23:59:59.995', speed: 1 }], 1],
    ['of our time after one of the past', [{ time: PAST_MS + 1_000, speed: 1 }, { speed: 2 }], 2],
    ['that is a little ahead', [{ time: clock.ms + 240_000, speed: 1 }, { speed: 2 }], 1],
    ['of a clock that was reset, where it came last', [{ speed: 1 }, { time: 1_000, speed: 2 }], 2],
    ['of a clock that is far ahead, where it came last', [{ time: 4_000_000_000_000, speed: 1 }, { speed: 2 }], 2],
  ])('equals the packet %s', async (_, packets, speed) => {
    const single = await create();
    const many = await create();
    for (const packet of packets) await send(single.id, packet);
    await service.admin('POST', `objects/${many.id}/packets`, packets);
    expect([(await read(single.id)).state.speed, (await read(many.id)).state.speed]).toEqual([speed, speed]);
    const changed = entityOf(await service.admin('PATCH', `objects/${single.id}`, { status: 's' }));
    const removed = entityOf(await service.admin('DELETE', `objects/${many.id}`));
    expect([changed.state.speed, removed.state.speed]).toEqual([speed, speed]);
    // Otherwise a note of its wrong clock would be an event of a later test.
    await service.admin('DELETE', `objects/${single.id}`);
  });

  test('respects `only`, and is absent unless requested', async () => {
    const { _id, id } = await create();
    const state = await send(id, { speed: 5, pos: { lat: 1, lon: 2 } });
    const only = async (names: string) => {
      const [listed] = (await service.admin('GET', `objects?where._id=${_id}&only=${names}`)).body;
      expect(entityOf(await service.admin('GET', `objects/${id}?only=${names}`))).toEqual(listed);
      return listed;
    };
    expect(await only('name')).toEqual({ _id, name: 'Car' });
    expect(await only('state')).toEqual({ _id, state });
    expect(await only('name,state.speed')).toEqual({ _id, name: 'Car', state: { _id: state._id, speed: 5 } });
    expect(await only('state.pos.lat')).toEqual({ _id, state: { _id: state._id, pos: { lat: 1 } } });
  });

  test('belongs to each object in a list of many', async () => {
    const objects = [await create({ kind: 'many' }), await create({ kind: 'many' }), await create({ kind: 'many' })];
    await send(objects[0].id, { n: 0 });
    await send(objects[2].id, { n: 2 });
    const { body } = await service.admin('GET', 'objects?where.kind=many');
    expect(body.map(({ state }: { state?: { n: number } }) => state?.n ?? null)).toEqual([0, null, 2]);
  });

  test('starts empty for a new object with the same own id', async () => {
    const old = await create();
    await send(old.id, { speed: 1 });
    await service.admin('DELETE', `objects/${old.id}`);
    entityOf(await service.admin('POST', 'objects', { id: old.id, name: 'again' }));
    expect(await read(old.id)).not.toHaveProperty('state');
    expect((await service.admin('GET', `objects/${old.id}/packets`)).body).toEqual([]);
  });
});

describe('groups', () => {
  let inner: string;
  let outer: string;
  let member: Call;

  beforeAll(async () => {
    outer = entityOf(await service.admin('POST', 'groups', { name: 'outer' }))._id;
    inner = entityOf(await service.admin('POST', 'groups', { name: 'inner', parent: outer }))._id;
    await service.admin('POST', 'users', {
      login: 'outer',
      password: 'long enough',
      group: outer,
      role: '000000000000000000000020',
    });
    member = service.as(await service.tokenOf('outer', 'long enough'));
  });

  test('contain new objects of their members, or of members above that name them', async () => {
    const own = entityOf(await member('POST', 'objects', { id: 'in-outer', name: 'n' }));
    expect(own).toMatchObject({ group: outer, branch: [ROOT_ID, outer] });
    const below = entityOf(await member('POST', 'objects', { id: 'in-inner', name: 'n', group: inner }));
    expect(below).toMatchObject({ group: inner, branch: [ROOT_ID, outer, inner], owner: own.owner });
    expect((await member('GET', 'objects')).body.map(({ id }: { id: string }) => id)).toEqual(['in-outer', 'in-inner']);
  });

  test('refuse new entities of other callers', async () => {
    for (const store of ['objects', 'labels', 'users', 'tokens']) {
      const body = { id: 'x', name: 'n', login: 'l', password: 'long enough' };
      for (const group of [ROOT_ID, '65a0000000000000000000ff', 'x', 5]) {
        expectRefusal(await member('POST', store, { ...body, group }), 400, 'group');
      }
    }
    expect(await service.client.db().collection('objects').countDocuments({ id: 'x' })).toBe(0);
  });

  test('hide invisible entities in every request', async () => {
    const { _id, id } = await create();
    await send(id, { speed: 1 });
    await received();
    for (const key of [_id, id]) {
      for (const [method, below, body] of [
        ['GET', ''],
        ['PATCH', '', { status: 'x' }],
        ['DELETE', ''],
        ['GET', '/packets'],
        ['POST', '/packets', {}],
        ['POST', '/commands/go'],
        ['POST', '/access', { user: _id }],
      ] as const) {
        const answer = await member(method, `objects/${key}${below}`, body);
        expectRefusal(answer, 404);
        expect(answer.text).toBe((await member('GET', 'objects/65a0000000000000000000ff')).text);
      }
    }
    expect(await received()).toEqual([]);
    expect(
      await service.client
        .db()
        .collection('commands')
        .countDocuments({ object: new ObjectId(_id) }),
    ).toBe(0);
  });

  test('belong to themselves, and are visible to their members', async () => {
    expect(entityOf(await member('GET', `groups/${outer}`))).toMatchObject({ group: outer, branch: [ROOT_ID, outer] });
    expect(entityOf(await member('GET', `groups/${inner}`))).toMatchObject({
      group: inner,
      branch: [ROOT_ID, outer, inner],
    });
    expectRefusal(await member('GET', `groups/${ROOT_ID}`), 404);
  });

  test('leave built-in models and roles readable by everyone and unchangeable', async () => {
    for (const path of [`models/${MODEL_ID}`, 'roles/000000000000000000000020', 'roles/000000000000000000000022']) {
      for (const call of [service.admin, member]) {
        const before = entityOf(await call('GET', path));
        expectRefusal(await call('PATCH', path, { name: 'mine' }), 403);
        expectRefusal(await call('DELETE', path), 403);
        expect(entityOf(await call('GET', path))).toEqual(before);
      }
    }
    expect((await member('GET', 'models')).body.map(({ _id }: { _id: string }) => _id)).toContain(MODEL_ID);
  });
});
