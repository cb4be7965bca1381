/** What happened while no instance ran, for an hour or a day: it is made up for, once, at its own time. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { startSecond, startTestService, type TestService } from '../support/fixture.js';
import { type Receiver, startReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const HOT = { param: 't', op: '>', value: 8 };
const env = { WEBHOOK_NETWORKS: '127.0.0.0/8' };
// Its messages are kept from test to test: what comes after the absence may come before the test of it.
let receiver: Receiver;
// How often the sender looks for what is due.
Object.assign(LIMITS, { notificationCheckMs: 100 });

let aheadMs = 0;
const now = (): number => Date.now() + aheadMs;
let count = 0;

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

/** Prepares an object before the absence; returns what is asserted of it afterwards. */
type Case = (before: TestService) => Promise<(after: TestService) => Promise<void>>;

/** The alarm of silence of an object, whose rule existed before the absence. */
const silenceAfter =
  (act: (service: TestService, objectId: string) => Promise<unknown>): Case =>
  async (before) => {
    const objectId = await createObject(before);
    await createRule(before, { when: { silent: '30 min' }, select: { objects: [objectId] } });
    await act(before, objectId);
    const [sent] = (await before.admin('GET', `objects/${objectId}/packets`)).body;
    return async (after) => {
      await until(async () => (await alarmsOf(after, objectId)).length > 0, 'an alarm');
      await settle(after);
      const [alarm, ...others] = await alarmsOf(after, objectId);
      expect([alarm.raised, others]).toEqual([(sent?.time ?? alarm.revision) + 30 * MINUTE_MS, []]);
    };
  };

const CASES: Record<string, Case> = {
  'raises what ran out meanwhile at its own time, marks it late, and tells and commands it once': async (before) => {
    const objectId = await createObject(before);
    const { topic } = await createRule(before, { when: HOT, for: '10 min', select: { objects: [objectId] } });
    const time = now();
    await send(before, objectId, { t: 9, time });
    await until(async () => (await statesOf(before, objectId, 'pending')) === 1, 'a pending state');
    return async (after) => {
      await until(async () => (await alarmsOf(after, objectId)).length > 0, 'an alarm');
      await until(() => told(topic) > 0, 'a message');
      await settle(after);
      expect(await alarmsOf(after, objectId)).toMatchObject([{ status: 'raised', raised: time + 600_000, late: true }]);
      expect([told(topic), await commandsOf(after, objectId)]).toEqual([1, 1]);
    };
  },
  'raises silence at its own time, once': async (before) => {
    const objectId = await createObject(before);
    const { topic } = await createRule(before, { when: { silent: '30 min' }, select: { objects: [objectId] } });
    await until(async () => (await statesOf(before, objectId, 'idle')) === 1, 'a state');
    const time = now() + 1_000;
    await send(before, objectId, { t: 1, time });
    // What is evaluated after it shows that the silence of the object counts from here on.
    await settle(before);
    return async (after) => {
      await until(() => told(topic) > 0, 'a message');
      await settle(after);
      const raised = time + 30 * MINUTE_MS;
      expect(await alarmsOf(after, objectId)).toMatchObject([{ status: 'raised', raised, late: true }]);
      expect([told(topic), await commandsOf(after, objectId)]).toEqual([1, 1]);
    };
  },
  'raises silence of an object that never sent anything, since its rule': silenceAfter(async () => undefined),
  'raises silence of an object with a slow clock, since its first packet': silenceAfter(async (service, objectId) => {
    await until(async () => (await statesOf(service, objectId, 'idle')) === 1, 'a state');
    await send(service, objectId, { t: 1, time: now() - DAY_MS });
  }),
  'raises silence of an object that sent long before its rule, since the rule': async (before) => {
    const objectId = await createObject(before);
    await send(before, objectId, { t: 1, time: now() - 30 * MINUTE_MS });
    return async (after) => {
      await createRule(after, { when: { silent: '2 s' }, select: { objects: [objectId] } });
      await until(async () => (await alarmsOf(after, objectId)).length === 1, 'an alarm');
      const [alarm] = await alarmsOf(after, objectId);
      const [packet] = (await after.admin('GET', `objects/${objectId}/packets`)).body;
      // By the clock of the object, which is half an hour behind.
      const behindMs = packet._ts / 1_000 - packet.time;
      expect(alarm.raised).toBe(Math.round(alarm.revision + 2_000 - behindMs));
    };
  },
  'clears what ran out meanwhile, and does what nobody has acknowledged': async (before) => {
    const cooling = await createObject(before);
    const waiting = await createObject(before);
    const escalate = [{ after: '1 h', then: [{ command: 'late' }] }];
    const rule = { when: HOT, clearFor: '10 min', escalate };
    await createRule(before, { ...rule, select: { objects: [cooling, waiting] } });
    const time = now();
    for (const objectId of [cooling, waiting]) await send(before, objectId, { t: 9, time });
    await send(before, cooling, { t: 1, time: time + 1_000 });
    await until(async () => (await statesOf(before, cooling, 'clearing')) === 1, 'a clearing state');
    await until(async () => (await statesOf(before, waiting, 'raised')) === 1, 'a raised state');
    return async (after) => {
      await until(async () => (await commandsOf(after, waiting)) === 2, 'the command of the step');
      await settle(after);
      expect(await alarmsOf(after, cooling)).toMatchObject([{ status: 'cleared', cleared: time + 601_000 }]);
      expect([await commandsOf(after, cooling), await commandsOf(after, waiting)]).toEqual([1, 2]);
    };
  },
};

/** All objects share one absence, after which two instances come at once. */
const checks = new Map<string, (after: TestService) => Promise<void>>();
const endings: (() => unknown)[] = [];
let after: TestService;

beforeAll(async () => {
  receiver = await startReceiver();
  endings.push(() => receiver.stop());
  const before = await startTestService({ env, now });
  for (const [title, prepare] of Object.entries(CASES)) checks.set(title, await prepare(before));
  await before.service.stop();
  await before.client.close();
  aheadMs += DAY_MS;
  after = await startTestService({ env, now }, before.mongodbUri);
  endings.push(() => after.stop());
  await startSecond(after, endings, { env, now });
});
afterAll(async () => {
  for (const end of endings.reverse()) await end();
});

describe('after a day without an instance', () => {
  for (const title of Object.keys(CASES)) test(title, () => checks.get(title)?.(after));
});

describe('a rule that changes while its condition holds, but not yet for long enough', () => {
  test.each([
    ['anew where its condition changes', { when: { param: 't', op: '>', value: 7 } }, 11],
    ['on where only other fields change', { severity: 'critical' }, 10],
  ])('counts %s', async (_about, change, afterMinutes) => {
    const objectId = await createObject(after);
    const { ruleId } = await createRule(after, { when: HOT, for: '10 min', select: { objects: [objectId] } });
    const time = now() - 15 * MINUTE_MS;
    await send(after, objectId, { t: 9, time });
    await until(async () => (await statesOf(after, objectId, 'pending')) === 1, 'a pending state');
    expect((await after.admin('PATCH', `rules/${ruleId}`, change)).status).toBe(200);
    await settle(after);
    for (const minutes of [1, 14]) await send(after, objectId, { t: 9, time: time + minutes * MINUTE_MS });
    await until(async () => (await alarmsOf(after, objectId)).length > 0, 'an alarm');
    expect(await alarmsOf(after, objectId)).toMatchObject([{ raised: time + afterMinutes * MINUTE_MS }]);
  });
});
