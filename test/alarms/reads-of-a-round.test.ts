/** How often the database is asked when many alarms are raised and told together: what they have in common is asked once. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { MIB } from '../../src/core/units.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { useService } from '../support/fixture.js';
import { storeFleet, storePackets } from '../support/fleet.js';
import { useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const ALARMS = 100;
/** How often they are raised or told: the first time may have few of them, and the others wait for it. */
const TIMES = 20;

Object.assign(LIMITS, { partitions: 1, notificationCheckMs: 100 });

// Before the database is dropped: what is profiled is written into it.
afterAll(() => service.client.db().command({ profile: 0 }));
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
const receiver = useReceiver();
let person: Person;

beforeAll(async () => {
  person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  const channels = [{ ntfy: `${receiver.url}topic` }];
  expect((await person.call('PATCH', 'account', { channels })).status).toBe(200);
});

const notices = () => service.client.db().collection('alarmNotices');

async function createModel(): Promise<ObjectId> {
  const model = { name: 'Fridge', data: { commands: { defrost: {} } } };
  return new ObjectId(String(entityOf(await service.admin('POST', 'models', model))._id));
}

/** How often each of these collections was read in a way that only alarms do. */
async function countReads(): Promise<Record<string, number>> {
  const db = service.client.db();
  const count = (collection: string, query: object) =>
    db.collection('system.profile').countDocuments({ ns: `${db.databaseName}.${collection}`, ...query });
  return {
    stored: await count('alarms', { 'command.find': 'alarms', 'command.readConcern.level': 'majority' }),
    handlers: await count('handlers', { 'command.find': 'handlers', 'command.filter.$and': { $exists: true } }),
    commands: await count('commands', { 'command.aggregate': 'commands' }),
    told: await count('alarms', {
      'command.find': 'alarms',
      'command.filter._id': { $exists: true },
      'command.readConcern.level': { $exists: false },
    }),
    recipients: await count('users', { 'command.find': 'users', 'command.filter.$or': { $exists: true } }),
  };
}

test('asks once for what alarms have in common that are raised, and told, together', async () => {
  const db = service.client.db();
  const model = await createModel();
  const fleet = await storeFleet(db, ALARMS, () => ({ model }));
  // Only what the rule tells it.
  const webhook = { url: `${receiver.url}hook`, events: ['object-removed'], objects: ['nothing'] };
  const handler = entityOf(await service.admin('POST', 'handlers', { name: 'h', ...webhook }));
  const then = [{ notify: { users: [person.id] } }, { webhook: handler._id }, { command: 'defrost' }];
  entityOf(await service.admin('POST', 'rules', { name: 'Hot', when: { param: 't', op: '>', value: 8 }, then }));
  for (let index = 0; index < 3; index++) await service.settled();

  await db.createCollection('system.profile', { capped: true, size: 16 * MIB });
  await db.command({ profile: 2 });
  await storePackets(db, fleet, () => ({ t: 9 }));
  const told = () => notices().countDocuments({ isRaisedTold: true });
  await until(async () => (await told()) === ALARMS, `${ALARMS} alarms are told`);
  await db.command({ profile: 0 });

  const alarms = await db.collection('alarms').find().toArray();
  for (const { actions } of alarms) {
    expect(actions).toEqual([{ webhook: handler._id }, { command: 'defrost', _id: expect.any(String) }]);
  }
  expect(await db.collection('commands').countDocuments()).toBe(ALARMS);
  const messages = db.collection('notifications');
  expect(await messages.countDocuments({ step: 'raised' })).toBe(ALARMS);
  expect(await messages.distinct('alarm', { step: 'raised' })).toHaveLength(ALARMS);
  const raised = () => receiver.received.filter(({ path }) => path === '/hook').map(({ body }) => body.data.id);
  await until(() => raised().length >= ALARMS, `${ALARMS} messages to the webhook`);
  expect(new Set(raised()).size).toBe(ALARMS);
  expect(raised()).toHaveLength(ALARMS);
  const reads = await countReads();
  for (const [what, count] of Object.entries(reads)) expect({ what, few: count <= TIMES }).toEqual({ what, few: true });
});

test('tells the other alarms where one of those that are told together cannot be', async () => {
  const all = await notices().find().limit(10).toArray();
  const [broken, ...others] = all.map(({ _id }) => _id);
  const again = { isRaisedTold: false, due: 0 };
  const isTold = { _id: { $in: others }, isRaisedTold: true };
  const write = { $set: again };
  await notices().bulkWrite([
    { updateOne: { filter: { _id: broken }, update: { $set: { ...again, notify: [{ users: ['nobody'] }] } } } },
    { updateMany: { filter: { _id: { $in: others } }, update: write } },
  ]);
  await until(async () => (await notices().countDocuments(isTold)) === others.length, 'the others are told');
  const isPostponed = { _id: broken, isRaisedTold: false, due: { $gt: 0 } };
  await until(async () => (await notices().findOne(isPostponed)) !== null, 'the broken one is tried again later');
  expect(service.logLines.join('')).toContain('failed to notify of an alarm; retrying');
});
