/** A role is changed that many listeners have: what they name is looked up again only where the change concerns it, and as it is by then. */
import { afterEach, expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Listener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const LISTENERS = 12;
const DEVICES = 4;

const service = useService();
const opened: Listener[] = [];
let count = 0;

afterEach(() => {
  for (const listener of opened.splice(0)) listener.close();
});

const make = async (path: string, fields: object) => entityOf(await service.admin('POST', path, fields));
const change = async (path: string, fields: object) => entityOf(await service.admin('PATCH', path, fields));
const newGroup = async (parent?: string): Promise<string> =>
  (await make('groups', { name: `group ${++count}`, ...(parent && { parent }) }))._id;
const newObject = (group: string, fields: object = {}): Promise<{ _id: string; id: string }> =>
  make('objects', { id: `named-${++count}`, name: 'O', group, ...fields });
const newRole = async (credentials: string[]): Promise<string> =>
  (await make('roles', { name: `role ${++count}`, credentials }))._id;

async function listen(person: Person, filter: object): Promise<Listener> {
  const listener = await service.listen(person.token);
  opened.push(listener);
  expect(await listener.subscribe(filter)).toMatchObject({ success: true });
  return listener;
}

const listenTimes = async (times: number, person: Person, filter: object): Promise<Listener[]> => {
  const listeners: Listener[] = [];
  while (listeners.length < times) listeners.push(await listen(person, filter));
  return listeners;
};

/** Changes the role, and resolves when every listener has the permissions of it. */
async function changeRole(role: string, credentials: string[]): Promise<void> {
  service.changes.splice(0);
  await change(`roles/${role}`, { credentials });
  await until(
    () => service.changes.some(({ store, id }) => store === 'roles' && id === role),
    'the change of the role',
  );
}

/** The queries of objects and groups so far. */
async function countLookUps(): Promise<number> {
  const db = service.client.db();
  const { totals } = await db.admin().command({ top: 1 });
  const queriesOf = (name: string): number => totals[`${db.databaseName}.${name}`]?.queries.count ?? 0;
  return queriesOf('objects') + queriesOf('groups');
}

/** How many queries of objects and groups a change of the role takes. */
async function lookUpsOf(role: string, credentials: string[]): Promise<number> {
  const before = await countLookUps();
  await changeRole(role, credentials);
  return (await countLookUps()) - before;
}

/** The `n` of the packets that each listener receives when one is sent to each of the objects, with its place in the list. */
async function receivedOf(listeners: readonly Listener[], objects: readonly { _id: string }[]): Promise<unknown[][]> {
  for (const listener of listeners) listener.take();
  for (const [n, { _id }] of objects.entries()) await make(`objects/${_id}/packets`, { n });
  // The last one may be of nobody.
  const last = await make('objects', { id: `last-${++count}`, name: 'last' });
  await until(() => service.changes.some(({ id }) => id === last._id), 'every packet to be published');
  await Promise.all(listeners.map(({ socket }) => socket.timeout(60_000).emitWithAck('subscribe', 'refused')));
  // The update of an object that was changed before may come only now.
  const packetsOf = (listener: Listener) => listener.take().filter(({ name }) => name === 'object-packet');
  return listeners.map((listener) => packetsOf(listener).map(({ payload }) => payload.n));
}

test('looks up nothing for listeners with filters of objects or groups, while a changed role permits all objects', async () => {
  const group = await newGroup();
  const role = await newRole(['GET /*']);
  const person = await createPerson(service, { role, group });
  const objects = [await newObject(group), await newObject(group)] as const;
  const listeners = [
    ...(await listenTimes(LISTENERS, person, { objects: [objects[0].id] })),
    ...(await listenTimes(LISTENERS, person, { groups: [group] })),
  ];
  expect(await lookUpsOf(role, ['GET /*', 'POST /objects/*'])).toBe(0);
  expect(await receivedOf(listeners, objects)).toEqual([
    ...Array(LISTENERS).fill([0]),
    ...Array(LISTENERS).fill([0, 1]),
  ]);
});

test('looks up nothing for devices that a changed role permits their own objects, as before', async () => {
  const group = await newGroup();
  const credentials = ['GET /objects/:object', 'GET /objects/:object/*'];
  const role = await newRole(credentials);
  const objects = [];
  const listeners = [];
  for (let nth = 0; nth < DEVICES; nth++) {
    const object = await newObject(group);
    const person = await createPerson(service, { role, group, object: object._id });
    objects.push(object);
    listeners.push(await listen(person, {}));
  }
  expect(await lookUpsOf(role, [...credentials, 'GET /models'])).toBe(0);
  expect(await receivedOf(listeners, objects)).toEqual(objects.map((_, nth) => [nth]));
});

test('looks up nothing for listeners of a changed role that names the same objects as before', async () => {
  const group = await newGroup();
  const objects = [await newObject(group), await newObject(group)] as const;
  const credentials = [`GET /objects/${objects[0].id}`, `GET /objects/${objects[0].id}/*`];
  const role = await newRole(credentials);
  const person = await createPerson(service, { role, group });
  const listeners = await listenTimes(LISTENERS, person, {});
  expect(await lookUpsOf(role, [...credentials, 'GET /models'])).toBe(0);
  expect(await receivedOf(listeners, objects)).toEqual(Array(LISTENERS).fill([0]));
});

test('looks up once what all listeners of a user name after a change of their role', async () => {
  const group = await newGroup();
  const objects = [await newObject(group), await newObject(group)] as const;
  const role = await newRole([`GET /objects/${objects[0].id}`]);
  const person = await createPerson(service, { role, group });
  const listeners = await listenTimes(LISTENERS, person, {});
  expect(await lookUpsOf(role, [`GET /objects/${objects[1].id}`])).toBe(1);
  expect(await receivedOf(listeners, objects)).toEqual(Array(LISTENERS).fill([1]));
});

test('looks up for each user what a changed role names, and sends nobody what only another one sees', async () => {
  const groups = [await newGroup(), await newGroup()] as const;
  const objects = [await newObject(groups[0]), await newObject(groups[1])];
  const role = await newRole(['GET /models']);
  const people = [
    await createPerson(service, { role, group: groups[0] }),
    await createPerson(service, { role, group: groups[1] }),
  ] as const;
  const listeners = [await listen(people[0], {}), await listen(people[1], {})];
  await changeRole(
    role,
    objects.map(({ id }) => `GET /objects/${id}`),
  );
  expect(await receivedOf(listeners, objects)).toEqual([[0], [1]]);
});

test('keeps a filter while a role is narrowed and widened', async () => {
  const group = await newGroup();
  const inner = await newGroup(group);
  const objects = [await newObject(group), await newObject(inner), await newObject(inner)] as const;
  const role = await newRole(['GET /*']);
  const person = await createPerson(service, { role, group });
  const listeners = [
    await listen(person, { objects: [objects[0].id, objects[1].id] }),
    await listen(person, { groups: [inner] }),
    await listen(person, {}),
  ];
  const received = () => receivedOf(listeners, objects);
  await changeRole(role, [`GET /objects/${objects[1].id}`]);
  expect(await received()).toEqual([[1], [1], [1]]);
  await changeRole(role, [`GET /objects/${objects[0]._id}`, `GET /objects/${objects[2]._id}`]);
  expect(await received()).toEqual([[0], [2], [0, 2]]);
  await changeRole(role, ['GET /models']);
  expect(await received()).toEqual([[], [], []]);
  await changeRole(role, ['GET /objects/*']);
  expect(await received()).toEqual([
    [0, 1],
    [1, 2],
    [0, 1, 2],
  ]);
});

test('looks up again what a listener names after an object was moved to its group', async () => {
  const group = await newGroup();
  const role = await newRole(['GET /*']);
  const person = await createPerson(service, { role, group });
  const object = await newObject(await newGroup());
  const listeners = [await listen(person, { objects: [object.id] }), await listen(person, { objects: [object._id] })];
  await make(`objects/${object._id}/move`, { group });
  await changeRole(role, ['GET /*', 'POST /objects/*']);
  expect(await receivedOf(listeners, [object])).toEqual([[0], [0]]);
});

test('looks up again what a listener names after another object was given the name', async () => {
  const group = await newGroup();
  const role = await newRole(['GET /*']);
  const person = await createPerson(service, { role, group });
  const objects = [await newObject(group), await newObject(group)] as const;
  const listeners = [await listen(person, { objects: [objects[0].id] })];
  await change(`objects/${objects[0]._id}`, { id: `renamed-${++count}` });
  await change(`objects/${objects[1]._id}`, { id: objects[0].id });
  expect(await receivedOf(listeners, objects)).toEqual([[0]]);
  await changeRole(role, ['GET /*', 'POST /objects/*']);
  expect(await receivedOf(listeners, objects)).toEqual([[1]]);
});

test('takes the names of a role for the objects that have them by then, also after a subscription', async () => {
  const group = await newGroup();
  const objects = [await newObject(group), await newObject(group)] as const;
  const name = objects[0].id;
  const role = await newRole(['GET /*', '* /tokens/*']);
  const person = await createPerson(service, { role, group, object: objects[0]._id });
  const { body } = await service.as(null)('POST', 'auth/token', {
    login: person.login,
    password: person.password,
    scopes: [`GET /objects/${objects[0]._id}`],
  });
  const listeners = [await listen(person, {}), await listen({ ...person, token: body.token }, {})];
  await changeRole(role, ['GET /models']);
  await change(`objects/${objects[0]._id}`, { id: `renamed-${++count}` });
  await change(`objects/${objects[1]._id}`, { id: name });
  for (const listener of listeners) await listener.subscribe({});
  await changeRole(role, [`GET /objects/${name}`]);
  expect(await receivedOf(listeners, objects)).toEqual([[1], []]);
  await changeRole(role, ['GET /objects/:object']);
  expect(await receivedOf(listeners, objects)).toEqual([[0], [0]]);
});

test('looks up again the groups of a listener after one of them was moved away', async () => {
  const group = await newGroup();
  const leaving = await newGroup(group);
  const object = await newObject(leaving);
  const role = await newRole(['GET /*']);
  const person = await createPerson(service, { role, group });
  const listeners = [await listen(person, { groups: [leaving] })];
  await change(`groups/${leaving}`, { parent: await newGroup() });
  await changeRole(role, ['GET /objects/*']);
  expect(await receivedOf(listeners, [object])).toEqual([[]]);
  await change(`groups/${leaving}`, { parent: group });
  await changeRole(role, ['GET /*']);
  expect(await receivedOf(listeners, [object])).toEqual([[0]]);
});

test('applies the last filter and the last role, where both change together', async () => {
  const group = await newGroup();
  const objects = [await newObject(group), await newObject(group)] as const;
  const role = await newRole(['GET /*']);
  const person = await createPerson(service, { role, group });
  const listener = await listen(person, { objects: [objects[1].id] });
  const named = objects.map(({ id }) => `GET /objects/${id}`);
  for (let round = 0; round < 6; round++) {
    const asked = listener.subscribe({ objects: [objects[round % 2]?.id] });
    await changeRole(role, round % 2 === 0 ? named : ['GET /*']);
    expect(await asked).toMatchObject({ success: true, objects: [objects[round % 2]?._id] });
    expect(await receivedOf([listener], objects)).toEqual([[round % 2]]);
  }
});
