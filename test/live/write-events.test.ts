/** The events that each kind of write sends to a socket: exactly these, in order. */
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMIN, type Answer, type Listener, type ReceivedEvent, useService } from '../support/fixture.js';

const service = useService();
let listener: Listener;
let object: { _id: string; id: string; group: string };
let count = 0;

beforeAll(async () => {
  listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
});

beforeEach(async () => {
  const wanted = { id: `o-${++count}`, name: 'O', config: { auth: { user: 'a', port: 1 }, on: true } };
  const { body } = await service.admin('POST', 'objects', wanted);
  object = body;
  await service.settled();
  expect(listener.take()).toEqual([]);
});

async function received(): Promise<Pick<ReceivedEvent, 'name' | 'payload'>[]> {
  await service.settled();
  return listener.take().map(({ name, payload }) => ({ name, payload }));
}

const path = (more = '') => `objects/${object._id}${more}`;
const patch = (body: unknown) => service.admin('PATCH', path(), body);
const update = (before: object, after: object) => ({
  name: 'object-update',
  payload: { id: object._id, before, after },
});
const toPacket = ({ body: { success, ...packet } }: Answer) => ({ name: 'object-packet', payload: packet });
const CONFIG = { auth: { user: 'a', port: 1 }, on: true };

const PATCHES: [name: string, body: object, said: [object, object] | null][] = [
  ['a field', { status: 'on' }, [{ status: '' }, { status: 'on' }]],
  ['the value it had', { status: '' }, null],
  ['nothing', {}, null],
  ['only what the service owns', { access: [], owner: 'f'.repeat(24), group: null, branch: [], time: 1, _at: 1 }, null],
  ['state and models, which are derived', { state: { speed: 1 }, models: { id: 'f'.repeat(24) } }, null],
  [
    'a leaf',
    { config: { auth: { port: 2 } } },
    [{ config: CONFIG }, { config: { ...CONFIG, auth: { user: 'a', port: 2 } } }],
  ],
  ['a leaf of the value it had', { config: { auth: { port: 1 } } }, null],
  ['a new field', { depth: 3 }, [{}, { depth: 3 }]],
  ['null', { status: null }, [{ status: '' }, { status: null }]],
  [
    'several',
    { name: 'P', active: false, status: '' },
    [
      { name: 'O', active: true },
      { name: 'P', active: false },
    ],
  ],
];

test.each(PATCHES)('publishes a PATCH of %s', async (_name, body, said) => {
  expect((await patch(body)).status).toBe(200);
  expect(await received()).toEqual(said === null ? [] : [update(...said)]);
});

test('publishes model and models when the model is changed', async () => {
  const { body: model } = await service.admin('POST', 'models', { name: 'Pump' });
  const before = (await service.admin('GET', path())).body.model;
  await patch({ model: model._id });
  const shown = (id: string) => ({ model: id, models: { id } });
  expect(await received()).toEqual([update(shown(before), shown(model._id))]);
});

test('publishes only edited fields when a whole entity is sent back', async () => {
  const { body: whole } = await service.admin('GET', path());
  await patch({ ...whole, name: 'Q' });
  expect(await received()).toEqual([update({ name: 'O' }, { name: 'Q' })]);
});

test('publishes one event per PATCH, in order, with increasing positions', async () => {
  for (const status of ['1', '2', '3', '4']) await patch({ status });
  await service.settled();
  const events = listener.take();
  expect(events.map(({ payload }) => payload.after.status)).toEqual(['1', '2', '3', '4']);
  expect(events.map(({ payload }) => payload.before.status)).toEqual(['', '1', '2', '3']);
  const positions = events.map(({ position }) => Buffer.from(position, 'base64url'));
  for (const [at, position] of positions.entries()) {
    if (at > 0) expect(Buffer.compare(positions[at - 1] as Buffer, position)).toBe(-1);
  }
});

test('publishes concurrent PATCHes as one chain of before and after that ends at the stored state', async () => {
  await Promise.all(Array.from({ length: 20 }, (_, at) => patch({ status: `s${at}` })));
  await service.settled();
  let status = '';
  const events = listener.take();
  expect(events).toHaveLength(20);
  for (const { payload } of events) {
    expect(payload.before).toEqual({ status });
    status = payload.after.status;
  }
  expect((await service.admin('GET', path())).body.status).toBe(status);
});

test('publishes a packet as object-packet without changing the object', async () => {
  const answer = await service.admin('POST', path('/packets'), { speed: 5, nested: { a: [1, 'x', null] } });
  expect(await received()).toEqual([toPacket(answer)]);
  expect((await service.admin('GET', path())).body._at).toBeUndefined();
});

test('publishes one event per packet of an array, in its order', async () => {
  const times = [5, 3, 9, 1].map((at) => 1_700_000_000_000 + at);
  await service.admin(
    'POST',
    path('/packets'),
    times.map((time) => ({ time })),
  );
  const events = await received();
  expect(events.map(({ payload }) => payload.time)).toEqual(times);
  const stored = await service.admin('GET', path('/packets?sortBy=_ts'));
  expect(events).toEqual(stored.body.map((payload: object) => ({ name: 'object-packet', payload })));
});

test('publishes a resent packet once', async () => {
  const _id = new ObjectId().toHexString();
  const answer = await service.admin('POST', path('/packets'), { _id, speed: 1 });
  const again = await service.admin('POST', path('/packets'), { _id, speed: 2 });
  await service.admin('POST', path('/packets'), [{ _id }, { _id }]);
  expect(again.body).toEqual(answer.body);
  expect(await received()).toEqual([toPacket(answer)]);
});

test('publishes nothing for a refused request', async () => {
  const { body: other } = await service.admin('POST', 'objects', { id: `other-${count}`, name: 'x' });
  const refused = [
    await patch({ name: '' }),
    await patch({ id: other.id }),
    await patch({ model: 'f'.repeat(24) }),
    await patch({ 'a.b': 1 }),
    await service.admin('POST', path('/packets'), [{ speed: 1, time: 'never' }, 1]),
    await service.admin('POST', path('/packets'), '{'),
    await service.as(null)('PATCH', path(), { status: 'x' }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([400, 409, 400, 400, 400, 400, 401]);
  expect(await received()).toEqual([]);
});

test('creation, deletion, and writes in other stores are no events', async () => {
  const { body: label } = await service.admin('POST', 'labels', { name: 'l' });
  const written = [
    await service.admin('POST', 'objects', { id: `new-${count}`, name: 'x' }),
    await service.admin('PATCH', `labels/${label._id}`, { name: 'm' }),
    await service.admin('DELETE', `labels/${label._id}`),
    await service.admin('POST', path('/packets'), []),
    await service.admin('DELETE', path()),
  ];
  expect(written.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(await received()).toEqual([]);
});

test('publishes no events for the removed packets of a removed object', async () => {
  const answer = await service.admin('POST', path('/packets'), { speed: 1 });
  await service.admin('DELETE', path());
  expect(await received()).toEqual([toPacket(answer)]);
});

test('publishes a change of `access` when an object is shared, and nothing when it is shared again', async () => {
  const user = { login: `u-${count}`, password: 'a password of u' };
  const { body } = await service.admin('POST', 'users', user);
  await service.admin('POST', path('/access'), { user: body._id });
  await service.admin('POST', path('/access'), { user: body._id });
  await service.admin('DELETE', path(`/access/${body._id}`));
  expect(await received()).toEqual([
    update({ access: [] }, { access: [body._id] }),
    update({ access: [body._id] }, { access: [] }),
  ]);
});
