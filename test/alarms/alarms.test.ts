/** Rules on arriving packets: alarms are raised and cleared by packets, by time and by silence, and survive the end of an instance. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { ADMIN, startSecond, useService } from '../support/fixture.js';
import { useReceiver, useWebhooks } from '../support/receiver.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createHandler, remove } = useWebhooks(service, receiver);
const endings: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of endings.reverse()) await end();
});

const HOT = { param: 't', op: '>', value: 8 };
let count = 0;

interface Alarm {
  readonly _id: string;
  readonly status: string;
  readonly [name: string]: unknown;
}

async function createObject(fields: object = {}): Promise<string> {
  const id = `object-${count++}`;
  return entityOf(await service.admin('POST', 'objects', { id, name: id, ...fields }))._id;
}

const createRule = async (objectId: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', 'rules', { name: 'rule', select: { objects: [objectId] }, ...fields }))._id;

const send = async (objectId: string, packet: object): Promise<string> =>
  entityOf(await service.admin('POST', `objects/${objectId}/packets`, packet))._id;

/** The alarms of an object as they were raised: the `_id`s of those of one second are in no order. */
const alarmsOf = async (objectId: string): Promise<Alarm[]> =>
  (await service.admin('GET', `alarms?where.object=${objectId}&sortBy=raised`)).body;

/** The alarms of an object, once these are their statuses. */
async function alarmsWith(objectId: string, ...statuses: string[]): Promise<Alarm[]> {
  let alarms: Alarm[] = [];
  await until(async () => {
    alarms = await alarmsOf(objectId);
    return alarms.map(({ status }) => status).join() === statuses.join();
  }, `alarms ${statuses.join()}`);
  return alarms;
}

/** Resolves when everything that was sent before is evaluated: another rule has seen a later packet. */
async function settle(): Promise<void> {
  const objectId = await createObject();
  await createRule(objectId, { when: HOT });
  for (let index = 0; index < 3; index++) await service.settled();
  await send(objectId, { t: 9 });
  await alarmsWith(objectId, 'raised');
}

describe('a packet', () => {
  test('raises an alarm, and another one clears it', async () => {
    const objectId = await createObject();
    const ruleId = await createRule(objectId, { when: HOT, severity: 'critical' });
    const time = Date.now() - 1_000;
    await send(objectId, { t: 7, time: time - 1_000 });
    const packet = await send(objectId, { t: 9, time, lat: 50, lon: 10 });
    const [alarm] = await alarmsWith(objectId, 'raised');
    expect(alarm).toMatchObject({
      rule: ruleId,
      object: objectId,
      name: 'rule',
      severity: 'critical',
      raised: time,
      cleared: null,
      acknowledged: null,
      values: { t: 9 },
      position: { lat: 50, lon: 10 },
      packet,
      why: [{ place: 'when', condition: 't > 8', holds: true, value: 9, since: time }],
      notes: [],
    });
    await send(objectId, { t: 10, time: time + 100 });
    await send(objectId, { t: 5, time: time + 200 });
    const [cleared] = await alarmsWith(objectId, 'cleared');
    expect(cleared).toMatchObject({ _id: alarm?._id, clearReason: 'condition' });
    await send(objectId, { t: 9, time: time + 300 });
    const [, second] = await alarmsWith(objectId, 'cleared', 'raised');
    expect(second?._id).not.toBe(alarm?._id);
  });

  test('raises and clears the alarms of more conditions than are evaluated while the feed waits', async () => {
    const objectId = await createObject();
    const all = Array.from({ length: 50 }, (_, index) => ({ param: 't', op: '>', value: index / 10 }));
    for (let index = 0; index < 6; index++) await createRule(objectId, { when: { all } });
    await send(objectId, { t: 4 });
    await send(objectId, { t: 9 });
    await alarmsWith(objectId, ...Array(6).fill('raised'));
    await send(objectId, { t: 3 });
    await alarmsWith(objectId, ...Array(6).fill('cleared'));
  });

  test('raises nothing where its object is not selected, or the condition does not hold', async () => {
    const objectId = await createObject();
    const other = await createObject();
    await createRule(objectId, { when: HOT });
    await send(other, { t: 9 });
    await send(objectId, { x: 9 });
    await settle();
    expect([await alarmsOf(objectId), await alarmsOf(other)]).toEqual([[], []]);
  });
});

describe('time', () => {
  test('completes an alarm, though no further packet comes', async () => {
    const objectId = await createObject();
    await createRule(objectId, { when: HOT, for: '1 s', clearFor: '1 s' });
    const time = Date.now();
    const packet = await send(objectId, { t: 9, time });
    const [alarm] = await alarmsWith(objectId, 'raised');
    expect(alarm).toMatchObject({ raised: time + 1_000, packet });
    await send(objectId, { t: 1, time: time + 2_000 });
    const [cleared] = await alarmsWith(objectId, 'cleared');
    expect(cleared).toMatchObject({ cleared: time + 3_000 });
  });

  test('is counted again from the beginning where the condition ended', async () => {
    const objectId = await createObject();
    await createRule(objectId, { when: HOT, for: '1 h' });
    await send(objectId, { t: 9, time: Date.now() - 3_700_000 });
    await send(objectId, { t: 5, time: Date.now() - 3_000_000 });
    await send(objectId, { t: 9 });
    await settle();
    expect(await alarmsOf(objectId)).toEqual([]);
  });

  test('passes by the clock of the object, also where the service reports its presence', async () => {
    const objectId = await createObject();
    const time = Date.now() - 3_600_000;
    await createRule(objectId, { when: HOT, for: '30 min' });
    await createRule(objectId, { name: 'offline', when: { online: false }, for: '1 s' });
    await send(objectId, { t: 9, time });
    await send(objectId, { online: false });
    // The other rule has seen the report, and time that passed after it: by the same clock as the data.
    const [alarm, ...others] = await alarmsWith(objectId, 'raised');
    expect([alarm?.name, others]).toEqual(['offline', []]);
    expect(alarm?.raised).toBeLessThan(time + 1_800_000);
  });

  test('raises an alarm of silence, also of an object that never sent anything', async () => {
    const objectId = await createObject();
    await createRule(objectId, { when: { silent: '1 s' } });
    await alarmsWith(objectId, 'raised');
    await send(objectId, { t: 1 });
    await alarmsWith(objectId, 'cleared', 'raised');
  });
});

describe('the end of an alarm', () => {
  const raise = async (fields: object = {}): Promise<{ objectId: string; ruleId: string; alarm: Alarm }> => {
    const objectId = await createObject();
    const ruleId = await createRule(objectId, { when: HOT, ...fields });
    await send(objectId, { t: 9 });
    const [alarm] = await alarmsWith(objectId, 'raised');
    return { objectId, ruleId, alarm: alarm as Alarm };
  };

  test.each<[string, string, (ids: { objectId: string; ruleId: string }) => Promise<unknown>]>([
    ['of its rule', 'rule removed', ({ ruleId }) => service.admin('DELETE', `rules/${ruleId}`)],
    [
      'when its rule is inactive',
      'rule inactive',
      ({ ruleId }) => service.admin('PATCH', `rules/${ruleId}`, { active: false }),
    ],
    [
      'of a rule that selects others',
      'object not selected',
      ({ ruleId }) => service.admin('PATCH', `rules/${ruleId}`, { select: { labels: ['others'] } }),
    ],
    ['of a removed object', 'object removed', ({ objectId }) => service.admin('DELETE', `objects/${objectId}`)],
  ])('is that %s, and says so', async (_about, clearReason, act) => {
    const ids = await raise();
    await act(ids);
    const [cleared] = await alarmsWith(ids.objectId, 'cleared');
    expect(cleared).toMatchObject({ clearReason });
  });

  test('comes by hand, and is raised anew by the next packet', async () => {
    const { objectId, alarm } = await raise();
    await service.admin('POST', `alarms/${alarm._id}/clear`, {});
    await settle();
    await send(objectId, { t: 9 });
    const [first, second] = await alarmsWith(objectId, 'cleared', 'raised');
    expect([first?._id, first?.clearReason]).toEqual([alarm._id, 'user']);
    expect(second?._id).not.toBe(alarm._id);
  });

  test('does not come when its rule changes, whose conditions then count', async () => {
    const { objectId, ruleId, alarm } = await raise();
    await service.admin('PATCH', `rules/${ruleId}`, { when: { param: 't', op: '>', value: 20 } });
    await settle();
    expect((await alarmsOf(objectId)).map(({ _id, status }) => [_id, status])).toEqual([[alarm._id, 'raised']]);
    await send(objectId, { t: 15 });
    await alarmsWith(objectId, 'cleared');
  });
});

/** All commands so far. Their lists have what a majority has, those of alarms what the primary has, which may be more. */
async function commandsOf(objectId: string): Promise<unknown[]> {
  await service.settled();
  return (await service.admin('GET', `objects/${objectId}/commands`)).body;
}

describe('actions', () => {
  test('sends a command once, with the rights of the owner of the rule', async () => {
    const objectId = await createObject();
    await createRule(objectId, { when: HOT, then: [{ command: 'defrost', params: { minutes: 5 } }] });
    await send(objectId, { t: 9 });
    const [alarm] = await alarmsWith(objectId, 'raised');
    await send(objectId, { t: 10 });
    await settle();
    const { body: commands } = await service.admin('GET', `objects/${objectId}/commands`);
    expect(commands).toMatchObject([{ command: 'defrost', params: { minutes: 5 }, status: 'queued' }]);
    expect(alarm?.actions).toEqual([{ command: 'defrost', _id: commands[0]._id }]);
  });

  test('sends no command because of packets that come too late', async () => {
    const objectId = await createObject();
    await createRule(objectId, { when: HOT, control: '1 min', then: [{ command: 'defrost' }] });
    await send(objectId, { t: 9, time: Date.now() - 120_000 });
    const [alarm] = await alarmsWith(objectId, 'raised');
    expect([alarm?.late, alarm?.actions]).toEqual([true, []]);
    expect((await service.admin('GET', `objects/${objectId}/commands`)).body).toEqual([]);
  });

  test('sends no more commands than a bound, and says so once', async () => {
    const { ruleCommands } = LIMITS;
    Object.assign(LIMITS, { ruleCommands: 2 });
    try {
      const objectId = await createObject();
      const ruleId = await createRule(objectId, { when: HOT, then: [{ command: 'defrost' }] });
      const time = Date.now() - 10_000;
      for (let nth = 0; nth < 4; nth++) {
        await send(objectId, { t: 9, time: time + nth * 1_000 });
        await alarmsWith(objectId, ...Array(nth).fill('cleared'), 'raised');
        await send(objectId, { t: 1, time: time + nth * 1_000 + 500 });
        await alarmsWith(objectId, ...Array(nth + 1).fill('cleared'));
      }
      const errors = (await alarmsOf(objectId)).map(({ actions }) => (actions as { error?: string }[])[0]?.error);
      const held = 'the rule has sent 2 commands to the object within an hour';
      expect(errors).toEqual([undefined, undefined, held, held]);
      expect(await commandsOf(objectId)).toHaveLength(2);
      const events = () => service.admin('GET', `audit?where.entity=${ruleId}&where.action=commands held back`);
      await until(async () => (await events()).body.length > 0, 'an event');
      expect((await events()).body[0].fields).toEqual([`object=${objectId}`, 'command=defrost']);
      // It goes on in a while: nothing is wrong with the rule.
      expect(entityOf(await service.admin('GET', `rules/${ruleId}`)).disabledReason).toBeUndefined();
    } finally {
      Object.assign(LIMITS, { ruleCommands });
    }
  });

  test('counts the commands of alarms that are written together', async () => {
    const { ruleCommands } = LIMITS;
    Object.assign(LIMITS, { ruleCommands: 5 });
    try {
      const objectId = await createObject();
      await createRule(objectId, { when: HOT, then: [{ command: 'defrost' }] });
      const time = Date.now() - 10_000;
      const packets = Array.from({ length: 40 }, (_, at) => ({ t: at % 2 === 0 ? 9 : 1, time: time + at * 100 }));
      expect((await service.admin('POST', `objects/${objectId}/packets`, packets)).status).toBe(200);
      const alarms = await alarmsWith(objectId, ...Array(20).fill('cleared'));
      const sent = alarms.filter(({ actions }) => (actions as { error?: string }[])[0]?.error === undefined);
      expect(sent).toHaveLength(5);
      expect(await commandsOf(objectId)).toHaveLength(5);
    } finally {
      Object.assign(LIMITS, { ruleCommands });
    }
  });

  test('sends no command that its owner may not send, and show that', async () => {
    const role = entityOf(
      await service.admin('POST', 'roles', { name: 'watcher', credentials: ['GET /*', 'POST /rules'] }),
    )._id;
    const person = await createPerson(service, { role });
    const objectId = await createObject();
    const rule = { name: 'rule', when: HOT, select: { objects: [objectId] }, then: [{ command: 'defrost' }] };
    const ruleId = entityOf(await person.call('POST', 'rules', rule))._id;
    await send(objectId, { t: 9 });
    const [alarm] = await alarmsWith(objectId, 'raised');
    expect(alarm?.actions).toMatchObject([{ error: 'the owner of the rule may not send it' }]);
    const stored = entityOf(await service.admin('GET', `rules/${ruleId}`));
    expect(stored.disabledReason).toContain('defrost');
  });
});

describe('events', () => {
  test('reach those who see the object and may read alarms, in order', async () => {
    const credentials = ['GET /objects/*'];
    const role = entityOf(await service.admin('POST', 'roles', { name: 'no alarms', credentials }))._id;
    const blind = await createPerson(service, { role });
    const watching = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
    const other = await service.listen(blind.token);
    const objectId = await createObject();
    await watching.subscribe({ objects: [objectId], events: ['alarm-raised', 'alarm-updated', 'alarm-cleared'] });
    const ruleId = await createRule(objectId, { when: HOT });
    await send(objectId, { t: 9 });
    const [alarm] = await alarmsWith(objectId, 'raised');
    await service.admin('POST', `alarms/${alarm?._id}/acknowledge`, { note: 'seen' });
    for (const fields of [{ severity: 'critical' }, { severity: 'critical' }, { name: 'another' }]) {
      entityOf(await service.admin('PATCH', `rules/${ruleId}`, fields));
    }
    expect(await alarmsOf(objectId)).toMatchObject([{ severity: 'critical', name: 'rule' }]);
    await send(objectId, { t: 1 });
    await alarmsWith(objectId, 'cleared');
    entityOf(await service.admin('PATCH', `rules/${ruleId}`, { severity: 'info' }));
    await service.settled();
    const events = watching.take();
    const names = ['alarm-raised', 'alarm-updated', 'alarm-updated', 'alarm-cleared'];
    expect(events.map(({ name }) => name)).toEqual(names);
    expect(events.map(({ payload }) => payload.alarm.severity)).toEqual(['warning', 'warning', 'critical', 'critical']);
    expect(events[1]?.payload).toMatchObject({
      id: objectId,
      alarm: { _id: alarm?._id, acknowledged: { note: 'seen' } },
    });
    expect(other.take().filter(({ name }) => name.startsWith('alarm-'))).toEqual([]);
    const { body: past } = await service.admin('GET', `objects/${objectId}/events?events=alarm-raised,alarm-cleared`);
    expect(past.map(({ event }: { event: string }) => event)).toEqual(['alarm-raised', 'alarm-cleared']);
    expect((await blind.call('GET', `objects/${objectId}/events?events=alarm-raised`)).body).toEqual([]);
  });

  test('reach the handler that a rule names, and one that selects them', async () => {
    const objectId = await createObject();
    const named = await createHandler({ events: ['object-removed'], objects: ['nothing'] });
    const selecting = await createHandler({ events: ['alarm-raised'], objects: [objectId] });
    await createRule(objectId, { when: HOT, then: [{ webhook: named._id }] });
    await send(objectId, { t: 9 });
    const received = await receiver.got(2);
    expect(received.map(({ body }) => body.type)).toEqual(['alarm-raised', 'alarm-raised']);
    await send(objectId, { t: 1 });
    const [, , cleared] = await receiver.got(3);
    expect(cleared?.body).toMatchObject({
      type: 'alarm-cleared',
      data: { id: objectId, alarm: { status: 'cleared' } },
    });
    for (const handler of [named, selecting]) await remove(handler);
  });
});

test('shows alarms to those who see the object, and to nobody else', async () => {
  const group = entityOf(await service.admin('POST', 'groups', { name: 'tenant' }))._id;
  const inside = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
  const other = entityOf(await service.admin('POST', 'groups', { name: 'other' }))._id;
  const outside = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group: other });
  const objectId = await createObject({ group });
  await createRule(objectId, { when: HOT });
  await send(objectId, { t: 9 });
  const [alarm] = await alarmsWith(objectId, 'raised');
  expect((await inside.call('GET', `alarms/${alarm?._id}`)).status).toBe(200);
  expect((await outside.call('GET', `alarms/${alarm?._id}`)).status).toBe(404);
});

test('forgets how far an object was evaluated that is removed, also one without an open alarm', async () => {
  const objectId = await createObject();
  await createRule(objectId, { when: HOT });
  await send(objectId, { t: 9 });
  await alarmsWith(objectId, 'raised');
  await send(objectId, { t: 1 });
  await alarmsWith(objectId, 'cleared');
  const states = service.client.db().collection<{ _id: string }>('alarmStates');
  const count = (): Promise<number> => states.countDocuments({ _id: { $regex: objectId } });
  expect(await count()).toBe(1);
  expect((await service.admin('DELETE', `objects/${objectId}`)).status).toBe(200);
  await until(async () => (await count()) === 0, 'no row of the object');
});

test('goes on in another instance with what is pending and raised', async () => {
  const objectId = await createObject();
  await createRule(objectId, { when: { all: [HOT, { param: 'door', op: '==', value: 'open' }] }, for: '2 s' });
  await send(objectId, { door: 'open' });
  await settle();
  const time = Date.now();
  await send(objectId, { t: 9, time });
  await settle();
  const second = await startSecond(service, endings);
  await service.service.stop();
  const alarm = await new Promise<Record<string, unknown>>((resolve) => {
    void until(async () => {
      const found = await second.client
        .db()
        .collection('alarms')
        .findOne({ object: new ObjectId(objectId) });
      if (found !== null) resolve(found);
      return found !== null;
    }, 'an alarm of the other instance');
  });
  expect(alarm).toMatchObject({ status: 'raised', raised: time + 2_000 });
});
