/** A client sets its filter: acknowledged, within its permissions, from the next event on. */
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { ADMIN, type Listener, type ReceivedEvent, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const listeners: Listener[] = [];
const outsider = { login: 'outsider', password: 'a password of outsider' };
let first: { _id: string; id: string };
let second: { _id: string; id: string };

beforeAll(async () => {
  first = (await service.admin('POST', 'objects', { id: 'first', name: 'First' })).body;
  second = (await service.admin('POST', 'objects', { id: 'second', name: 'Second' })).body;
  const { body: group } = await service.admin('POST', 'groups', { name: 'outside' });
  const { body: role } = await service.admin('POST', 'roles', { name: 'all', credentials: ['* /*'] });
  // A role of the outsider's own group's: the rights are all there, only the objects are not.
  await service.admin('POST', 'users', { ...outsider, group: group._id, role: role._id });
});

afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close();
});

async function listen(credentials = ADMIN): Promise<Listener> {
  const listener = await service.listen(await service.tokenOf(credentials.login, credentials.password));
  listeners.push(listener);
  return listener;
}

/** One packet and one update of each object, and which of them each listener received. */
async function receivedBy(...received: Listener[]): Promise<string[][]> {
  for (const { id } of [first, second]) {
    await service.admin('POST', `objects/${id}/packets`, {});
    await service.admin('PATCH', `objects/${id}`, { status: `${performance.now()}` });
  }
  await service.settled();
  const nameOf = (_id: string) => (_id === first._id ? 'first' : 'second');
  return received.map((listener) =>
    listener
      .take()
      .map(({ name, payload }) => (name === 'object-packet' ? `${payload.id} packet` : `${nameOf(payload.id)} update`)),
  );
}

const ALL = ['first packet', 'first update', 'second packet', 'second update'];
const ids = (...names: ('first' | 'second')[]) => names.map((name) => (name === 'first' ? first : second)._id);

const ROWS: [name: string, ask: () => object, objects: () => string[] | undefined, received: string[]][] = [
  ['everything', () => ({}), () => undefined, ALL],
  ['an object by its _id', () => ({ objects: [first._id] }), () => ids('first'), ALL.slice(0, 2)],
  [
    'an object by its _id in capitals',
    () => ({ objects: [first._id.toUpperCase()] }),
    () => ids('first'),
    ALL.slice(0, 2),
  ],
  ['an object by its own id', () => ({ objects: ['second'] }), () => ids('second'), ALL.slice(2)],
  ['both', () => ({ objects: [second._id, 'first'] }), () => ids('first', 'second'), ALL],
  ['packets', () => ({ events: ['object-packet'] }), () => undefined, ['first packet', 'second packet']],
  ['updates of one', () => ({ objects: ['first'], events: ['object-update'] }), () => ids('first'), ['first update']],
  ['no object', () => ({ objects: [] }), () => [], []],
  ['no event', () => ({ events: [] }), () => undefined, []],
  ['what does not exist', () => ({ objects: ['third', 'f'.repeat(24), '*', ''] }), () => [], []],
];

test.each(ROWS)('is answered: %s', async (_name, ask, objects, received) => {
  const listener = await listen();
  const answer = await listener.subscribe(ask());
  expect(answer).toEqual({ success: true, ...(objects() && { objects: expect.arrayContaining(objects() ?? []) }) });
  expect(answer.objects?.length).toBe(objects()?.length);
  expect(await receivedBy(listener)).toEqual([received]);
});

test('replaces the filter, and removes it with {}', async () => {
  const listener = await listen();
  await listener.subscribe({ objects: ['first'] });
  await listener.subscribe({ objects: ['second'], events: ['object-packet'] });
  expect(await receivedBy(listener)).toEqual([['second packet']]);
  await listener.subscribe({});
  expect(await receivedBy(listener)).toEqual([ALL]);
});

test('applies the filter only to its own socket', async () => {
  const narrow = await listen();
  const wide = await listen();
  await narrow.subscribe({ objects: ['first'] });
  expect(await receivedBy(narrow, wide)).toEqual([ALL.slice(0, 2), ALL]);
});

test('treats invisible objects like unknown ones', async () => {
  const listener = await listen(outsider);
  const foreign = await listener.subscribe({ objects: [first._id, 'second'] });
  expect(foreign).toEqual({ success: true, objects: [] });
  expect(await listener.subscribe({ objects: ['f'.repeat(24), 'nothing'] })).toEqual(foreign);
  expect(await receivedBy(listener)).toEqual([[]]);
});

test('sends no events of an object that is no longer shared', async () => {
  const listener = await listen(outsider);
  const { body: users } = await service.admin('GET', `users?where.login=${outsider.login}`);
  await service.admin('POST', 'objects/first/access', { user: users[0]._id });
  expect(await listener.subscribe({ objects: ['first', 'second'] })).toEqual({ success: true, objects: ids('first') });
  listener.take();
  expect(await receivedBy(listener)).toEqual([ALL.slice(0, 2)]);
  await service.admin('DELETE', `objects/first/access/${users[0]._id}`);
  expect(await receivedBy(listener)).toEqual([[]]);
});

test('refuses other objects to a token for one object', async () => {
  const { body } = await service.as(null)('POST', 'auth/token', { ...ADMIN, scopes: ['GET /objects/first'] });
  const listener = await service.listen(body.token);
  listeners.push(listener);
  expect(await listener.subscribe({ objects: ['first', 'second'] })).toEqual({ success: true, objects: ids('first') });
  expect(await listener.subscribe({ objects: ['second'] })).toEqual({ success: true, objects: [] });
  expect(await receivedBy(listener)).toEqual([[]]);
  expect(await listener.subscribe({})).toEqual({ success: true, objects: ids('first') });
  expect(await receivedBy(listener)).toEqual([ALL.slice(0, 2)]);
});

test.each([
  ['subscribe', 'all'],
  ['subscribe', null],
  ['subscribe', ['first']],
  ['objects', { objects: 'first' }],
  ['objects', { objects: [{ $ne: null }] }],
  ['objects', { objects: Array(1_001).fill('x') }],
  ['events', { events: ['object-renamed'] }],
])('refuses bad input with the name of the %s, and changes nothing', async (field, request) => {
  const listener = await listen();
  await listener.subscribe({ objects: ['first'] });
  expect(await listener.subscribe(request as object)).toEqual({
    success: false,
    code: '400',
    message: expect.stringMatching(new RegExp(`^${field}: expected`)),
  });
  expect(await receivedBy(listener)).toEqual([ALL.slice(0, 2)]);
});

test('sets the filter without an acknowledgement callback', async () => {
  const listener = await listen();
  const received: ReceivedEvent[] = [];
  const narrowed = { objects: ['second'], events: ['object-packet'] };
  listener.socket.emit('subscribe', narrowed);
  // The rooms of one socket change in turn: when this is acknowledged, the one before is done.
  expect(await listener.subscribe(narrowed)).toMatchObject({ success: true });
  await service.admin('POST', 'objects/first/packets', {});
  const { body } = await service.admin('POST', 'objects/second/packets', {});
  await until(() => received.push(...listener.take()) > 0);
  expect(received.map(({ payload }) => payload._id)).toEqual([body._id]);
});
