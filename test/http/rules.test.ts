/** Rules: what is stored and refused, dry runs over packets of the past; and what people do with alarms. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID, ROOT_GROUP_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { useService } from '../support/fixture.js';

const service = useService();
const HOT = { param: 'temperature', op: '>', value: 8 };
const START = Date.parse('2026-01-01T00:00:00Z');
const MINUTE_MS = 60_000;
const MISSING = 'a'.repeat(24);

let objectId: string;
beforeAll(async () => {
  objectId = entityOf(await service.admin('POST', 'objects', { id: 'cold-1', name: 'Cold', config: { max: 7 } }))._id;
  const packets = [5, 9, 9, 9, 5, 6].map((temperature, index) => ({ time: START + index * MINUTE_MS, temperature }));
  await service.admin('POST', 'objects/cold-1/packets', packets);
});

const create = (fields: object) => service.admin('POST', 'rules', { name: 'Too warm', when: HOT, ...fields });

describe('a rule', () => {
  test('is stored with defaults, and replaces conditions as a whole', async () => {
    const rule = entityOf(await create({ for: '10 min', select: { objects: ['cold-1'] } }));
    expect(rule).toMatchObject({ active: true, severity: 'warning', when: HOT, for: '10 min' });
    const when = { all: [HOT, { silent: '1 h' }] };
    const changed = entityOf(await service.admin('PATCH', `rules/${rule._id}`, { when, select: null }));
    expect([changed.when, changed.select, changed.for]).toEqual([when, null, '10 min']);
    expectRefusal(
      await service.admin('PATCH', `rules/${rule._id}`, { when: { all: [{ param: 'a', op: 'x' }] } }),
      400,
      'when.all[0].op',
    );
    expectRefusal(await service.admin('PATCH', `rules/${rule._id}`, { for: 'long' }), 400, 'for');
    expect(entityOf(await service.admin('GET', `rules/${rule._id}`)).when).toEqual(when);
    await service.admin('DELETE', `rules/${rule._id}`);
  });

  test.each<[string, object]>([
    ['when', { when: null }],
    ['when.op', { when: { param: 'a', op: '=>' } }],
    ['when.expr: line 1, column 10', { when: { expr: 'p.speed >' } }],
    ['when.geofence: there is no such entity in geofences', { when: { geofence: MISSING, is: 'inside' } }],
    ['clear.any[0].geofence', { clear: { any: [{ geofence: [MISSING], on: 'exit' }] } }],
    ['select.objects[1]: there is no such object', { select: { objects: ['cold-1', 'cold-2'] } }],
    ['select.group', { select: { group: MISSING } }],
    ['select.model', { select: { model: MISSING } }],
    ['then[0].webhook: there is no such entity in handlers', { then: [{ webhook: MISSING }] }],
    ['then[0].notify.users[0]: there is no such entity in users', { then: [{ notify: { users: [MISSING] } }] }],
    ['severity', { severity: 'high' }],
  ])('is refused with %s', async (message, fields) => expectRefusal(await create(fields), 400, message));

  test('is one of a bounded number of a tenant', async () => {
    const group = entityOf(await service.admin('POST', 'groups', { name: 'tenant' }))._id;
    const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
    const { _id, ...rule } = entityOf(await person.call('POST', 'rules', { name: 'x', when: HOT }));
    const branch = [new ObjectId(ROOT_GROUP_ID), new ObjectId(group)];
    const rows = Array.from({ length: LIMITS.rulesPerTenant - 3 }, () => ({ ...rule, active: false, branch }));
    await service.client.db().collection('rules').insertMany(rows);
    const atOnce = Array.from({ length: 8 }, () => person.call('POST', 'rules', { name: 'x', when: HOT }));
    const statuses = (await Promise.all(atOnce)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 400, 400, 400, 400, 400, 400]);
    expectRefusal(await person.call('POST', 'rules', { name: 'x', when: HOT }), 400, 'there are 1000 rules');
    // Nor does another tenant's object exist for it.
    const select = { objects: ['cold-1'] };
    expectRefusal(
      await person.call('POST', 'rules/test', { rule: { when: HOT, select }, object: 'cold-1' }),
      400,
      'object',
    );
    entityOf(await create({}));
  });
});

describe('a dry run', () => {
  const run = (rule: object, more: object = {}) =>
    service.admin('POST', 'rules/test', {
      rule,
      object: 'cold-1',
      from: '2026-01-01',
      to: '2026-01-01T01:00',
      ...more,
    });

  test('tells which alarms the rule would have raised', async () => {
    const { body } = await run({ when: HOT, for: '2 min' });
    const at = (minute: number) => START + minute * MINUTE_MS;
    expect(body).toMatchObject({
      success: true,
      evaluated: 6,
      alarms: [
        {
          raised: at(3),
          cleared: at(4),
          values: { temperature: 9 },
          why: [{ place: 'when', condition: 'temperature > 8', holds: true, value: 9, since: at(1) }],
        },
      ],
      nearly: [{ place: 'when', heldMs: 3 * MINUTE_MS, since: at(1), forMs: 2 * MINUTE_MS, closest: 9, at: at(1) }],
    });
    const { body: packet } = await service.admin('GET', `objects/cold-1/packets/${body.alarms[0].packet}`);
    expect(packet.time).toBe(at(3));
  });

  test.each([
    ['too many packets', { testedPackets: 3 }, 'more than 3 packets: name a shorter interval'],
    ['too much work', { testBusyMs: -1 }, 'computing time, after 6 packets: name a shorter interval'],
  ])('is refused with %s', async (_about, limits, reason) => {
    const { testedPackets, testBusyMs } = LIMITS;
    Object.assign(LIMITS, limits);
    try {
      expectRefusal(await run({ when: HOT }), 413, reason);
    } finally {
      Object.assign(LIMITS, { testedPackets, testBusyMs });
    }
  });

  test('reads thresholds of the object, and geofences', async () => {
    const config = await run({ when: { param: 'temperature', op: '>', value: { config: 'max' } } });
    expect(config.body.alarms).toHaveLength(1);
    const geometry = { type: 'Point', coordinates: [10, 50] };
    const { _id } = entityOf(await service.admin('POST', 'geofences', { name: 'home', geometry, radius: 100 }));
    const fence = await run({ when: { geofence: _id, is: 'inside' } });
    expect([fence.status, fence.body.alarms]).toEqual([200, []]);
  });

  test('misses no object before there was one', async () => {
    const created = entityOf(await service.admin('POST', 'objects', { id: 'new-1', name: 'New' }));
    const asked = { object: 'new-1', from: '2026-01-01', to: undefined };
    const { body } = await run({ when: { silent: '1 s' } }, asked);
    const raised = body.alarms.map((alarm: { raised: number }) => alarm.raised - created.time);
    expect(raised.filter((afterMs: number) => afterMs < 1_000)).toEqual([]);
    const { body: later } = await run({ when: { silent: '1 h' } }, asked);
    expect([later.alarms, later.evaluated]).toEqual([[], 0]);
  });

  test('runs a stored rule', async () => {
    const { _id } = entityOf(await create({ for: '1 h' }));
    const { body } = await service.admin('POST', `rules/${_id}/test`, {
      object: objectId,
      from: START,
      to: START + MINUTE_MS,
    });
    expect([body.alarms, body.evaluated]).toEqual([[], 2]);
    expectRefusal(await service.admin('POST', `rules/${MISSING}/test`, { object: objectId }), 404);
    await service.admin('DELETE', `rules/${_id}`);
  });

  test.each<[number, string, object, object]>([
    [400, 'when', {}, {}],
    [400, 'object: there is no such object', { when: HOT }, { object: 'missing' }],
    [400, 'from', { when: HOT }, { from: 'yesterday' }],
    [400, 'from: expected a time before to', { when: HOT }, { from: '2026-01-02' }],
    [400, 'rule', [], {}],
  ])('is refused with %s %s', async (status, message, rule, more) =>
    expectRefusal(await run(rule, more), status, message),
  );
});

describe('an alarm', () => {
  const insert = async (): Promise<string> => {
    const _id = new ObjectId();
    const root = new ObjectId(ROOT_GROUP_ID);
    const common = { object: new ObjectId(objectId), rule: new ObjectId(), group: root, branch: [root], access: [] };
    const fields = { status: 'raised', raised: START, cleared: null, acknowledged: null, notes: [], time: START };
    await service.client
      .db()
      .collection('alarms')
      .insertOne({ _id, ...common, ...fields, name: 'Too warm' });
    return _id.toHexString();
  };
  const userId = async (): Promise<string> => (await service.admin('GET', 'auth')).body._id;

  test('is acknowledged once', async () => {
    const id = await insert();
    const { body: first } = await service.admin('POST', `alarms/${id}/acknowledge`, { note: 'seen' });
    expect(first).toMatchObject({ success: true, _id: id, acknowledged: { user: await userId(), note: 'seen' } });
    const { body: second } = await service.admin('POST', `alarms/${id}/acknowledge`, { note: 'again' });
    expect(second.acknowledged).toEqual(first.acknowledged);
    expect(second._at).toBe(first._at);
  });

  test('is cleared and noted', async () => {
    const id = await insert();
    const { body } = await service.admin('POST', `alarms/${id}/clear`, { note: 'door closed' });
    expect(body).toMatchObject({ status: 'cleared', clearReason: 'user', clearedBy: { note: 'door closed' } });
    const again = await service.admin('POST', `alarms/${id}/clear`);
    expect(again.body.clearedBy).toEqual(body.clearedBy);
    await service.admin('POST', `alarms/${id}/notes`, { text: 'one' });
    const noted = await service.admin('POST', `alarms/${id}/notes`, { text: 'two' });
    expect(noted.body.notes).toMatchObject([{ text: 'one' }, { text: 'two', user: await userId() }]);
    expectRefusal(await service.admin('POST', `alarms/${id}/notes`, { text: '' }), 400, 'text');
    expectRefusal(await service.admin('POST', `alarms/${id}/notes`, { text: '  \n' }), 400, 'text');
    expectRefusal(await service.admin('PATCH', `alarms/${id}`, { status: 'raised' }), 405);
  });

  test('is acknowledged with others', async () => {
    const one = await insert();
    const two = await insert();
    await service.admin('POST', `alarms/${one}/acknowledge`);
    const { body } = await service.admin('POST', 'alarms/acknowledge', { ids: [one, two, MISSING], note: 'all' });
    expect(body).toEqual({ count: 3, done: 1, failed: [{ _id: MISSING, code: '404' }], success: true });
    expect(entityOf(await service.admin('GET', `alarms/${two}`)).acknowledged).toMatchObject({ note: 'all' });
    expectRefusal(await service.admin('POST', 'alarms/acknowledge', { ids: 'all' }), 400, 'ids');
  });
});
