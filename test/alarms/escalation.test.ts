/** Webhooks and commands that follow while nobody acknowledges an alarm: each once, and none that is not wanted any more. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { ADMIN, startSecond, useService } from '../support/fixture.js';
import { useReceiver, useWebhooks } from '../support/receiver.js';
import { until } from '../support/until.js';

let aheadMs = 0;
const now = (): number => Date.now() + aheadMs;
const env = { WEBHOOK_NETWORKS: '127.0.0.0/8', OPS_PORT: '0' };
const service = useService({ env, now });
const receiver = useReceiver();
const { createHandler, remove } = useWebhooks(service, receiver);
const endings: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of endings.reverse()) await end();
});

const HOT = { param: 't', op: '>', value: 8 };
const MINUTE_MS = 60_000;
let count = 0;

async function createObject(fields: object = {}): Promise<string> {
  const id = `escalated-${count++}`;
  return entityOf(await service.admin('POST', 'objects', { id, name: id, ...fields }))._id;
}

const createRule = async (objectId: string, fields: object): Promise<string> =>
  entityOf(
    await service.admin('POST', 'rules', { name: 'rule', when: HOT, select: { objects: [objectId] }, ...fields }),
  )._id;

const send = async (objectId: string, fields: object) =>
  expect((await service.admin('POST', `objects/${objectId}/packets`, { ...fields, time: now() })).status).toBe(200);

// biome-ignore lint/suspicious/noExplicitAny: alarms of every shape
const alarmOf = async (objectId: string): Promise<any> =>
  (await service.admin('GET', `alarms?where.object=${objectId}`)).body[0];

/** All commands so far. Their lists have what a majority has, those of alarms what the primary has, which may be more. */
async function commandsOf(objectId: string): Promise<{ command: string; params: object; _id: string }[]> {
  await service.settled();
  return (await service.admin('GET', `objects/${objectId}/commands`)).body;
}

/** Raises the alarm of an object. */
async function raise(objectId: string): Promise<string> {
  await send(objectId, { t: 9 });
  await until(async () => (await alarmOf(objectId))?.status === 'raised', 'an alarm');
  return (await alarmOf(objectId))._id;
}

const actsOf = async (objectId: string, wanted: number) => {
  await until(async () => (await alarmOf(objectId)).actions.length >= wanted, `${wanted} actions`);
  return (await alarmOf(objectId)).actions;
};

/** Resolves when everything that was due before is done: a later step of another alarm is. */
async function settle(): Promise<void> {
  const objectId = await createObject();
  await createRule(objectId, { escalate: [{ after: 0, then: [{ command: 'last' }] }] });
  await raise(objectId);
  await actsOf(objectId, 1);
}

describe('a step of escalate', () => {
  test('sends its commands once when its time has come, in order, and shows them', async () => {
    const objectId = await createObject();
    await createRule(objectId, {
      then: [{ command: 'horn' }],
      escalate: [
        { after: '10 min', then: [{ command: 'slow', params: { to: [5, { kn: null }] } }, { command: 'lamp' }] },
        { after: '20 min', then: [{ command: 'stop' }] },
      ],
    });
    await raise(objectId);
    await settle();
    expect((await commandsOf(objectId)).map(({ command }) => command)).toEqual(['horn']);
    aheadMs += 11 * MINUTE_MS;
    await send(objectId, { t: 10 });
    const early = await actsOf(objectId, 3);
    aheadMs += 10 * MINUTE_MS;
    const all = await actsOf(objectId, 4);
    aheadMs += 30 * MINUTE_MS;
    await settle();
    const commands = await commandsOf(objectId);
    expect(commands.map(({ command }) => command).sort()).toEqual(['horn', 'lamp', 'slow', 'stop']);
    expect(commands.find(({ command }) => command === 'slow')?.params).toEqual({ to: [5, { kn: null }] });
    expect(early).toEqual(all.slice(0, 3));
    const idOf = (name: string) => commands.find(({ command }) => command === name)?._id;
    expect(all).toEqual([
      { command: 'horn', _id: idOf('horn') },
      { command: 'slow', _id: idOf('slow'), step: 1, time: expect.any(Number) },
      { command: 'lamp', _id: idOf('lamp'), step: 1, time: expect.any(Number) },
      { command: 'stop', _id: idOf('stop'), step: 2, time: expect.any(Number) },
    ]);
    expect((await alarmOf(objectId)).actions).toEqual(all);
  });

  test.each<[string, (ids: { objectId: string; ruleId: string; alarmId: string }) => Promise<unknown>]>([
    ['is acknowledged', ({ alarmId }) => service.admin('POST', `alarms/${alarmId}/acknowledge`, {})],
    ['is cleared by somebody', ({ alarmId }) => service.admin('POST', `alarms/${alarmId}/clear`, {})],
    ['is cleared by its condition', ({ objectId }) => send(objectId, { t: 1 })],
    ['has lost its rule', ({ ruleId }) => service.admin('DELETE', `rules/${ruleId}`)],
    ['has another step by now', ({ ruleId }) => service.admin('PATCH', `rules/${ruleId}`, { escalate: null })],
  ])('does nothing where the alarm %s', async (_about, act) => {
    const objectId = await createObject();
    const ruleId = await createRule(objectId, { escalate: [{ after: '1 h', then: [{ command: 'stop' }] }] });
    const alarmId = await raise(objectId);
    expect((await act({ objectId, ruleId, alarmId })) ?? { status: 200 }).toMatchObject({ status: 200 });
    for (let index = 0; index < 3; index++) await service.settled();
    await settle();
    aheadMs += 61 * MINUTE_MS;
    await settle();
    expect(await commandsOf(objectId)).toEqual([]);
    expect((await alarmOf(objectId)).actions).toEqual([]);
  });

  test('goes on where the conditions of its rule change, with the alarm that they raised', async () => {
    const objectId = await createObject();
    const ruleId = await createRule(objectId, { escalate: [{ after: '1 h', then: [{ command: 'stop' }] }] });
    await raise(objectId);
    await service.admin('PATCH', `rules/${ruleId}`, { when: { param: 't', op: '>', value: 7 } });
    aheadMs += 61 * MINUTE_MS;
    await actsOf(objectId, 1);
    expect((await commandsOf(objectId)).map(({ command }) => command)).toEqual(['stop']);
  });

  test('sends nothing because of packets that come too late', async () => {
    const objectId = await createObject();
    await createRule(objectId, { control: '1 min', escalate: [{ after: 0, then: [{ command: 'stop' }] }] });
    const late = { t: 9, time: now() - 2 * MINUTE_MS };
    await service.admin('POST', `objects/${objectId}/packets`, late);
    await until(async () => (await alarmOf(objectId))?.status === 'raised', 'an alarm');
    await settle();
    expect(await commandsOf(objectId)).toEqual([]);
  });

  test('tells its webhook from then on, and everyone that the alarm has escalated', async () => {
    const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
    const objectId = await createObject();
    const handler = await createHandler({ events: ['object-removed'] });
    await listener.subscribe({ objects: [objectId], events: ['alarm-raised', 'alarm-updated', 'alarm-cleared'] });
    await createRule(objectId, { escalate: [{ after: '5 min', then: [{ webhook: handler._id }] }] });
    await raise(objectId);
    await settle();
    expect(receiver.received).toEqual([]);
    aheadMs += 6 * MINUTE_MS;
    await receiver.got(1);
    await send(objectId, { t: 1 });
    await receiver.got(2);
    expect(receiver.received.map(({ body }) => [body.type, body.data.alarm.status])).toEqual([
      ['alarm-updated', 'raised'],
      ['alarm-cleared', 'cleared'],
    ]);
    await service.settled();
    const events = listener.take().map(({ name, payload }) => [name, payload.alarm.actions.length]);
    expect(events).toEqual([
      ['alarm-raised', 0],
      ['alarm-updated', 1],
      ['alarm-cleared', 1],
    ]);
    await remove(handler);
  });

  test('does what the owner of the rule may do at that time, and the rule says what that is not', async () => {
    const credentials = ['GET /*', 'POST /rules', 'POST /objects/*/commands/*'];
    const role = entityOf(await service.admin('POST', 'roles', { name: 'operator', credentials }))._id;
    const person = await createPerson(service, { role });
    const objectId = await createObject();
    const escalate = [{ after: '1 h', then: [{ command: 'stop' }] }];
    const rule = { name: 'rule', when: HOT, select: { objects: [objectId] }, escalate };
    const ruleId = entityOf(await person.call('POST', 'rules', rule))._id;
    await raise(objectId);
    await service.admin('PATCH', `roles/${role}`, { credentials: ['GET /*', 'POST /rules'] });
    await service.settled();
    aheadMs += 61 * MINUTE_MS;
    expect(await actsOf(objectId, 1)).toMatchObject([
      { command: 'stop', step: 1, error: 'the owner of the rule may not send it' },
    ]);
    expect(await commandsOf(objectId)).toEqual([]);
    expect(entityOf(await service.admin('GET', `rules/${ruleId}`)).disabledReason).toContain('stop');
  });

  test('is done once by the instance that goes on', async () => {
    const objectId = await createObject();
    await createRule(objectId, {
      escalate: [
        { after: '1 h', then: [{ command: 'slow' }] },
        { after: '2 h', then: [{ command: 'stop' }] },
      ],
    });
    await raise(objectId);
    aheadMs += 61 * MINUTE_MS;
    await actsOf(objectId, 1);
    await startSecond(service, endings, { env, now });
    await service.service.stop();
    aheadMs += 61 * MINUTE_MS;
    const commands = service.client.db().collection('commands');
    const names = async () =>
      (await commands.find({ object: new ObjectId(objectId) }).toArray()).map(({ command }) => command);
    await until(async () => (await names()).includes('stop'), 'the command of the second step');
    expect((await names()).sort()).toEqual(['slow', 'stop']);
  });
});
