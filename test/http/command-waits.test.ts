/** Requests that wait for a command: woken by any instance, limited, and ended with the access that they depend on. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEVICE_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Answer, type Call, startTestService, type TestService, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
let there: TestService;
let device: Person;
let object: { _id: string; id: string };

beforeAll(async () => {
  there = await startTestService({}, service.mongodbUri);
});
afterAll(async () => {
  await there.service.stop();
  await there.client.close();
});
beforeEach(async () => {
  object = entityOf(await service.admin('POST', 'objects', { id: `thing-${new ObjectId()}`, name: 'x' }));
  device = await createPerson(service, { role: DEVICE_ROLE_ID, object: object._id });
});

const path = (rest = '') => `objects/${object.id}/commands${rest}`;
const wait = (call: Call, seconds: number | string = 60) => call('GET', path(`?status=queued&wait=${seconds}`));
const ROOM = LIMITS.commandWaitersPerObject;
/** Until there is room: a look whether there is any may have taken the last. */
async function waitFirmly(call: Call): Promise<Answer> {
  for (;;) {
    const answer = await wait(call);
    if (answer.status !== 429) return answer;
  }
}
/** As many requests as there is room for: when this resolves, all of them wait. */
async function fill(calls: readonly Call[], at: TestService = service): Promise<Promise<Answer>[]> {
  const requests = calls.map(waitFirmly);
  const [call = at.admin] = calls;
  await until(async () => (await wait(call, 0.001)).status === 429, 'no room for another');
  return requests;
}
const times = (count: number, call: Call): Call[] => Array.from({ length: count }, () => call);
const send = async (command = 'go') => entityOf(await service.admin('GET', await sendTo(service.admin, command)));
const sendTo = async (call: Call, command: string) =>
  (await call('POST', path(`/${command}`))).headers.location as string;

test('answers waiting requests on every instance as soon as there is a command', async () => {
  const waiting = [
    ...(await fill(times(ROOM, device.call))),
    ...(await fill(times(ROOM, there.as(device.token)), there)),
  ];
  const command = await send();
  for (const answer of await Promise.all(waiting)) {
    expect([answer.status, answer.body]).toEqual([200, [command]]);
  }
});

test('answers at once if a command is queued, and with an empty list after the timeout', async () => {
  expect((await wait(device.call, 0.02)).body).toEqual([]);
  expect((await device.call('GET', path('?status=queued&wait=60&limit=0'))).body).toEqual([]);
  const command = await send();
  expect((await wait(device.call)).body).toEqual([command]);
});

test('keeps waiting at commands of other objects or other statuses', async () => {
  const [waiting] = await fill(times(ROOM, device.call));
  const other = entityOf(await service.admin('POST', 'objects', { id: `other-${new ObjectId()}`, name: 'x' }));
  await service.admin('POST', `objects/${other._id}/commands/go`);
  // Both have passed the watcher before the command that is waited for.
  const collection = service.client.db().collection('commands');
  await collection.insertOne({ object: new ObjectId(object._id), status: 'done', branch: [], access: [] });
  const command = await send();
  expect((await waiting)?.body).toEqual([command]);
});

test('stops counting requests of disconnected clients', async () => {
  const going = new AbortController();
  const url = new URL(`/api/v1/${path('?status=queued&wait=60')}`, service.url);
  const headers = { Authorization: `Bearer ${device.token}` };
  const waiting = Array.from({ length: 2 * ROOM }, () => fetch(url, { headers, signal: going.signal }));
  await until(async () => (await wait(device.call, 0.001)).status === 429, 'no room for another');
  expectRefusal(await wait(device.call), 429, 'wait');
  going.abort();
  await Promise.allSettled(waiting);
  await until(async () => (await wait(device.call, 0.001)).status === 200, 'room again');
});

test.each<[what: string, status: number, change: (role: string) => object]>([
  ['is disabled', 401, () => ({ active: false })],
  ['gets another role', 403, (role) => ({ role })],
])('answers without commands to a user who %s while waiting', async (_, status, change) => {
  const { _id: role } = entityOf(await service.admin('POST', 'roles', { name: 'none', credentials: ['GET /labels'] }));
  const own = await fill(times(ROOM, device.call));
  const others = await fill(times(ROOM, service.admin));
  entityOf(await service.admin('PATCH', `users/${device.id}`, change(role)));
  const command = await send();
  for (const answer of await Promise.all(own)) expectRefusal(answer, status);
  for (const answer of await Promise.all(others)) expect(answer.body).toEqual([command]);
});

test('answers 404 if the object is removed during the wait', async () => {
  const waiting = await fill(times(ROOM, service.admin));
  await service.client
    .db()
    .collection('objects')
    .deleteOne({ _id: new ObjectId(object._id) });
  const journal = service.client.db().collection('commands');
  await journal.insertOne({ object: new ObjectId(object._id), status: 'queued', branch: [], access: [] });
  for (const answer of await Promise.all(waiting)) expectRefusal(answer, 404);
});

test('answers waiting requests when the instance stops', async () => {
  const ending = await startTestService({}, service.mongodbUri);
  const waiting = await fill(times(ROOM, ending.as(device.token)), ending);
  await ending.service.stop();
  for (const answer of await Promise.all(waiting)) expect([answer.status, answer.body]).toEqual([200, []]);
  await ending.client.close();
});
