/** What happened while no instance ran, for an hour or a day: it is made up for, once, at its own time. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const HOT = { param: 't', op: '>', value: 8 };
const env = { WEBHOOK_NETWORKS: '127.0.0.0/8' };
const receiver = useReceiver();
const running = new Set<TestService>();
afterAll(async () => {
  for (const service of running) await service.stop();
});

let aheadMs = 0;
const now = (): number => Date.now() + aheadMs;
let count = 0;

async function start(uri: string): Promise<TestService> {
  const service = await startTestService({ env, now }, uri);
  running.add(service);
  return service;
}

async function end(service: TestService): Promise<void> {
  running.delete(service);
  await service.service.stop();
  await service.client.close();
}

async function createObject(service: TestService): Promise<string> {
  const id = `absent-${count++}`;
  return entityOf(await service.admin('POST', 'objects', { id, name: id }))._id;
}

/** A rule for all objects that notifies a user, and commands. */
async function createRule(service: TestService, fields: object): Promise<{ ruleId: string; topic: string }> {
  const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  const topic = `/topic-${count++}`;
  const channels = [{ ntfy: `${receiver.url}${topic.slice(1)}` }];
  expect((await person.call('PATCH', 'account', { channels })).status).toBe(200);
  const then = [{ notify: { users: [person.id] } }, { command: 'stop' }];
  const ruleId = entityOf(await service.admin('POST', 'rules', { name: 'rule', then, ...fields }))._id;
  return { ruleId, topic };
}

async function send(service: TestService, objectId: string, fields: object): Promise<void> {
  expect((await service.admin('POST', `objects/${objectId}/packets`, fields)).status).toBe(200);
}

const statesOf = (service: TestService, objectId: string, phase: string): Promise<number> =>
  service.client
    .db()
    .collection('alarmStates')
    .countDocuments({ object: new ObjectId(objectId), 'state.phase': phase });

// biome-ignore lint/suspicious/noExplicitAny: alarms of every shape
const alarmsOf = async (service: TestService, objectId: string): Promise<any[]> =>
  (await service.admin('GET', `alarms?where.object=${objectId}&sortBy=raised`)).body;

const commandsOf = async (service: TestService, objectId: string): Promise<number> =>
  (await service.admin('GET', `objects/${objectId}/commands`)).body.length;

const told = (topic: string): number => receiver.received.filter(({ path }) => path === topic).length;

/** Resolves when an alarm of another object was raised by time, and told. */
async function settle(service: TestService): Promise<void> {
  const objectId = await createObject(service);
  const select = { objects: [objectId] };
  const { topic } = await createRule(service, { when: HOT, for: '1 s', select });
  await send(service, objectId, { t: 9 });
  await until(() => told(topic) > 0, 'a message');
}

describe('after a day without an instance', () => {
  test('raises what ran out meanwhile at its own time, marks it late, and tells and commands it once', async () => {
    const uri = testUri();
    const first = await start(uri);
    const objectId = await createObject(first);
    const { topic } = await createRule(first, { when: HOT, for: '10 min', select: { objects: [objectId] } });
    const time = now();
    await send(first, objectId, { t: 9, time });
    await until(async () => (await statesOf(first, objectId, 'pending')) === 1, 'a pending state');
    await end(first);
    aheadMs += DAY_MS;
    const second = await start(uri);
    const third = await start(uri);
    await until(async () => (await alarmsOf(second, objectId)).length > 0, 'an alarm');
    await until(() => told(topic) > 0, 'a message');
    await settle(second);
    expect(await alarmsOf(third, objectId)).toMatchObject([{ status: 'raised', raised: time + 600_000, late: true }]);
    expect([told(topic), await commandsOf(second, objectId)]).toEqual([1, 1]);
    await end(second);
    await end(third);
  });

  test('raises silence at its own time, once', async () => {
    const uri = testUri();
    const first = await start(uri);
    const objectId = await createObject(first);
    const { topic } = await createRule(first, { when: { silent: '30 min' }, select: { objects: [objectId] } });
    await until(async () => (await statesOf(first, objectId, 'idle')) === 1, 'a state');
    const time = now() + 1_000;
    await send(first, objectId, { t: 1, time });
    // What is evaluated after it shows that the silence of the object counts from here on.
    await settle(first);
    await end(first);
    aheadMs += DAY_MS;
    const second = await start(uri);
    await until(() => told(topic) > 0, 'a message');
    await settle(second);
    expect(await alarmsOf(second, objectId)).toMatchObject([
      { status: 'raised', raised: time + 30 * 60_000, late: true },
    ]);
    expect([told(topic), await commandsOf(second, objectId)]).toEqual([1, 1]);
    await end(second);
  });

  test.each<[string, (service: TestService, objectId: string) => Promise<unknown>]>([
    ['of an object that never sent anything, since its rule', async () => undefined],
    [
      'of an object with a slow clock, since its first packet',
      async (service, objectId) => {
        await until(async () => (await statesOf(service, objectId, 'idle')) === 1, 'a state');
        await send(service, objectId, { t: 1, time: now() - DAY_MS });
      },
    ],
  ])('raises silence %s', async (_about, act) => {
    const uri = testUri();
    const first = await start(uri);
    const objectId = await createObject(first);
    await createRule(first, { when: { silent: '30 min' }, select: { objects: [objectId] } });
    await act(first, objectId);
    const [sent] = (await first.admin('GET', `objects/${objectId}/packets`)).body;
    await end(first);
    aheadMs += 60 * MINUTE_MS;
    const second = await start(uri);
    await until(async () => (await alarmsOf(second, objectId)).length > 0, 'an alarm');
    await settle(second);
    const [alarm, ...others] = await alarmsOf(second, objectId);
    expect([alarm.raised, others]).toEqual([(sent?.time ?? alarm.revision) + 30 * MINUTE_MS, []]);
    await end(second);
  });

  test('raises silence of an object that sent long before its rule, since the rule', async () => {
    const uri = testUri();
    const first = await start(uri);
    const objectId = await createObject(first);
    await send(first, objectId, { t: 1, time: now() - 30 * MINUTE_MS });
    await end(first);
    aheadMs += DAY_MS;
    const service = await start(uri);
    await createRule(service, { when: { silent: '2 s' }, select: { objects: [objectId] } });
    await until(async () => (await alarmsOf(service, objectId)).length === 1, 'an alarm');
    const [alarm] = await alarmsOf(service, objectId);
    const [packet] = (await service.admin('GET', `objects/${objectId}/packets`)).body;
    // By the clock of the object, which is half an hour behind.
    const behindMs = packet._ts / 1_000 - packet.time;
    expect(alarm.raised).toBe(Math.round(alarm.revision + 2_000 - behindMs));
    await end(service);
  });

  test('clears what ran out meanwhile, and does what nobody has acknowledged', async () => {
    const uri = testUri();
    const first = await start(uri);
    const cooling = await createObject(first);
    const waiting = await createObject(first);
    const escalate = [{ after: '1 h', then: [{ command: 'late' }] }];
    const rule = { when: HOT, clearFor: '10 min', escalate };
    await createRule(first, { ...rule, select: { objects: [cooling, waiting] } });
    const time = now();
    for (const objectId of [cooling, waiting]) await send(first, objectId, { t: 9, time });
    await send(first, cooling, { t: 1, time: time + 1_000 });
    await until(async () => (await statesOf(first, cooling, 'clearing')) === 1, 'a clearing state');
    await until(async () => (await statesOf(first, waiting, 'raised')) === 1, 'a raised state');
    await end(first);
    aheadMs += DAY_MS;
    const second = await start(uri);
    await until(async () => (await commandsOf(second, waiting)) === 2, 'the command of the step');
    await settle(second);
    expect(await alarmsOf(second, cooling)).toMatchObject([{ status: 'cleared', cleared: time + 601_000 }]);
    expect([await commandsOf(second, cooling), await commandsOf(second, waiting)]).toEqual([1, 2]);
    await end(second);
  });
});

describe('a rule that changes while its condition holds, but not yet for long enough', () => {
  test.each([
    ['anew where its condition changes', { when: { param: 't', op: '>', value: 7 } }, 11],
    ['on where only other fields change', { severity: 'critical' }, 10],
  ])('counts %s', async (_about, change, afterMinutes) => {
    const service = await start(testUri());
    const objectId = await createObject(service);
    const { ruleId } = await createRule(service, { when: HOT, for: '10 min', select: { objects: [objectId] } });
    const time = now() - 15 * MINUTE_MS;
    await send(service, objectId, { t: 9, time });
    await until(async () => (await statesOf(service, objectId, 'pending')) === 1, 'a pending state');
    expect((await service.admin('PATCH', `rules/${ruleId}`, change)).status).toBe(200);
    await settle(service);
    for (const minutes of [1, 14]) await send(service, objectId, { t: 9, time: time + minutes * MINUTE_MS });
    await until(async () => (await alarmsOf(service, objectId)).length > 0, 'an alarm');
    expect(await alarmsOf(service, objectId)).toMatchObject([{ raised: time + afterMinutes * MINUTE_MS }]);
    await end(service);
  });
});
