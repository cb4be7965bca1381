/** Changes that the database cannot report, as they are too large: what a subscriber names is looked up again after them. */
import { afterEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { MIB } from '../../src/core/units.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { type Listener, openListener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const opened: Listener[] = [];
afterEach(() => {
  for (const listener of opened.splice(0)) listener.close();
});
// Both images of a change together are larger than a document may be.
const LARGE_BYTES = 8.1 * MIB;
let count = 0;
const make = async (path: string, fields: object) => entityOf(await service.admin('POST', path, fields));

/** An object of another program: the service stores none of that size. */
async function insertLarge(group: string, id: string): Promise<string> {
  const { _id: _, success: _success, ...common } = await make('objects', { id: `like-${++count}`, name: 'O', group });
  const _id = new ObjectId();
  await objects().insertOne({
    ...common,
    _id,
    id,
    owner: new ObjectId(String(common.owner)),
    group: new ObjectId(group),
    branch: (common.branch as string[]).map((one) => new ObjectId(one)),
    access: [],
    large: 'a'.repeat(LARGE_BYTES),
  });
  await service.settled();
  return _id.toHexString();
}

const objects = () => service.client.db().collection('objects');

/** Not by the service, as the database cannot report the change. */
async function rename(objectId: string, id: string): Promise<void> {
  await objects().updateOne({ _id: new ObjectId(objectId) }, { $set: { id, large: 'b'.repeat(LARGE_BYTES) } });
  await until(
    () => service.logLines.join('').includes('skipped changes that are too large'),
    'the change to be skipped',
  );
}

async function changeRole(roleId: string, credentials: string[]): Promise<void> {
  service.changes.splice(0);
  expect((await service.admin('PATCH', `roles/${roleId}`, { credentials })).status).toBe(200);
  await until(() => service.changes.some(({ id }) => id === roleId), 'the change of the role');
}

/** What the listener receives of a packet of this object. */
async function receive(listener: Listener, objectId: string): Promise<unknown[]> {
  listener.take();
  await make(`objects/${objectId}/packets`, { n: ++count });
  const last = await make('objects', { id: `last-${++count}`, name: 'last' });
  await until(() => service.changes.some(({ id }) => id === last._id), 'every packet');
  // Its answer comes after all events.
  await listener.socket.timeout(60_000).emitWithAck('subscribe', 'refused');
  const packets = listener.take().filter(({ name }) => name === 'object-packet');
  return packets.map(({ payload }) => payload.id);
}

async function listen(credentials: string[], group: string) {
  const role = (await make('roles', { name: `r${++count}`, credentials }))._id;
  const person = await createPerson(service, { role, group });
  const listener = await openListener(service.url, person.token);
  opened.push(listener);
  return { role, person, listener };
}

test('takes a permission for a name from a large object that was renamed', async () => {
  const group = (await make('groups', { name: 'g' }))._id;
  const name = `large-${++count}`;
  const large = await insertLarge(group, name);
  const { role, person, listener } = await listen([`GET /objects/${name}`], group);
  expect(await receive(listener, large)).toEqual([name]);
  service.logLines.splice(0);
  await rename(large, `${name}-renamed`);
  await changeRole(role, [`GET /objects/${name}`, 'GET /models']);
  expect((await person.call('GET', `objects/${large}`)).status).toBe(403);
  expect(await receive(listener, large)).toEqual([]);
});

test('sends the events of a large object that got the name of a filter', async () => {
  const group = (await make('groups', { name: 'g' }))._id;
  const name = `large-${++count}`;
  const large = await insertLarge(group, `${name}-before`);
  const { role, person, listener } = await listen(['GET /*'], group);
  expect(await listener.subscribe({ objects: [name] })).toMatchObject({ success: true });
  service.logLines.splice(0);
  await rename(large, name);
  await changeRole(role, ['GET /*', 'GET /models']);
  expect((await person.call('GET', `objects/${name}`)).status).toBe(200);
  expect(await receive(listener, large)).toEqual([name]);
});
