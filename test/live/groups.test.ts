/** Clients that subscribe to groups receive the events of objects in and below them, and only visible ones. */
import { beforeAll, expect, test } from '@jest/globals';
import { VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { openListener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
let count = 0;
let viewer: Person;
let ids: Record<'fleet' | 'trucks' | 'small' | 'ships' | 'foreign', string>;
const make = async (path: string, fields: object) => entityOf(await service.admin('POST', path, fields));
const newGroup = async (name: string, parent?: string): Promise<string> =>
  (await make('groups', { name, ...(parent && { parent }) }))._id;
const newObject = async (group: string): Promise<string> =>
  (await make('objects', { id: `grouped-${++count}`, name: 'O', group }))._id;
const send = async (object: string, n: number) =>
  entityOf(await service.admin('POST', `objects/${object}/packets`, { n }));

beforeAll(async () => {
  const fleet = await newGroup('fleet');
  const trucks = await newGroup('trucks', fleet);
  ids = {
    fleet,
    trucks,
    small: await newGroup('small', trucks),
    ships: await newGroup('ships', fleet),
    foreign: await newGroup('foreign'),
  };
  viewer = await createPerson(service, { group: fleet, role: VIEWER_ROLE_ID });
});

/** The packets that a client receives of an object in each group, by the name of the group. */
async function receivedOf(groups: readonly (keyof typeof ids)[], take: () => readonly { payload: { n?: number } }[]) {
  const names = Object.keys(ids) as (keyof typeof ids)[];
  const objects = await Promise.all(names.map((name) => newObject(ids[name])));
  for (const [nth, object] of objects.entries()) await send(object, nth);
  await service.settled();
  expect(take().flatMap(({ payload: { n } }) => (n === undefined ? [] : [names[n]]))).toEqual(groups);
}

test.each<[asked: (keyof typeof ids)[], permitted: (keyof typeof ids)[], received: (keyof typeof ids)[]]>([
  [['trucks'], ['trucks'], ['trucks', 'small']],
  [
    ['small', 'ships'],
    ['small', 'ships'],
    ['small', 'ships'],
  ],
  [
    ['trucks', 'small'],
    ['trucks', 'small'],
    ['trucks', 'small'],
  ],
  [['fleet'], ['fleet'], ['fleet', 'trucks', 'small', 'ships']],
  [['foreign'], [], []],
  [['foreign', 'ships'], ['ships'], ['ships']],
  [[], [], []],
])('delivers the events of the groups %j to their subscriber', async (asked, permitted, received) => {
  const listener = await service.listen(viewer.token);
  const answer = await listener.subscribe({ groups: asked.map((name) => ids[name]) });
  expect(answer).toEqual({ success: true, groups: expect.arrayContaining(permitted.map((name) => ids[name])) });
  expect((answer as { groups?: string[] }).groups).toHaveLength(permitted.length);
  await receivedOf(received, () => listener.take());
  await listener.subscribe({});
  await receivedOf(['fleet', 'trucks', 'small', 'ships'], () => listener.take());
});

test('excludes objects that are shared from other groups', async () => {
  const listener = await service.listen(viewer.token);
  const shared = await newObject(ids.foreign);
  entityOf(await service.admin('POST', `objects/${shared}/access`, { user: viewer.id }));
  await listener.subscribe({ groups: [ids.fleet, ids.foreign] });
  listener.take();
  await send(shared, 1);
  await service.settled();
  expect(listener.take()).toEqual([]);
});

test('sends object-created and object-removed when an object enters or leaves the group', async () => {
  const listener = await service.listen(viewer.token, 'everything');
  await listener.subscribe({ groups: [ids.trucks], events: ['object-created', 'object-removed'] });
  const moving = await newGroup('moving', ids.ships);
  const object = await newObject(moving);
  for (const parent of [ids.trucks, ids.ships]) {
    entityOf(await service.admin('PATCH', `groups/${moving}`, { parent }));
  }
  await service.settled();
  expect(listener.take().map(({ name, payload }) => [name, payload.id])).toEqual([
    ['object-created', object],
    ['object-removed', object],
  ]);
});

test('stops events of a group as soon as it is no longer visible', async () => {
  const leaving = await newGroup('leaving', ids.fleet);
  const object = await newObject(leaving);
  const listener = await service.listen(viewer.token);
  await listener.subscribe({ groups: [leaving] });
  await send(object, 1);
  entityOf(await service.admin('PATCH', `groups/${leaving}`, { parent: ids.foreign }));
  await send(object, 2);
  entityOf(await service.admin('PATCH', `objects/${object}`, { name: 'unseen' }));
  await service.settled();
  expect(listener.take().map(({ name, payload }) => [name, payload.n])).toEqual([['object-packet', 1]]);
  expect(await listener.subscribe({ groups: [leaving] })).toEqual({ success: true, groups: [] });
});

test('applies the filter to resuming clients and to server-sent events', async () => {
  const truck = await newObject(ids.small);
  const ship = await newObject(ids.ships);
  // The position is one after their creation.
  await service.settled();
  const { body: start } = await viewer.call('GET', 'events');
  for (const [nth, object] of [truck, ship, truck].entries()) await send(object, nth);
  await service.settled();
  const query = { since: start.position, groups: `${ids.trucks},${ids.foreign}` };
  const back = await openListener(service.url, viewer.token, query);
  await until(async () => (await back.subscribe({ groups: [ids.trucks] })) && back.received().length >= 2);
  expect(back.take().map(({ payload }) => payload.n)).toEqual([0, 2]);
  back.close();
  const { body } = await viewer.call('GET', `events?${new URLSearchParams(query)}`);
  expect(body.events.map(({ data }: { data: { n: number } }) => data.n)).toEqual([0, 2]);
});

test.each([
  ['groups=north', 'groups'],
  [`groups=${Array(LIMITS.subscribedGroups + 1).fill('a'.repeat(24))}`, 'groups'],
  [`groups=${'a'.repeat(24)}&objects=x`, 'groups'],
])('refuses %s', async (query, field) => {
  const { status, body } = await viewer.call('GET', `events?${query}`);
  expect([status, body.helper.message]).toEqual([400, expect.stringContaining(field)]);
});
