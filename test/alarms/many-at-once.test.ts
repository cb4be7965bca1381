/** Many alarms at once: each is raised and cleared once, told to those who listen, in transactions that others need not wait long for. */
import { expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { ADMIN, type Listener, useService } from '../support/fixture.js';
import { storeFleet } from '../support/fleet.js';
import { type Received, useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

/** More than one transaction may have. */
const ALARMS = 600;
const SENDERS = 20;
/** As docs/reference/notifications.md promises: what comes after so many messages is one that counts them. */
const SINGLE_MESSAGES = 20;

// How often the sender looks for what is due.
Object.assign(LIMITS, { notificationCheckMs: 100 });

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8' } });
const receiver = useReceiver();

async function sendAll(ids: readonly string[], packet: object): Promise<void> {
  const waiting = [...ids];
  const one = async (): Promise<void> => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
      expect((await service.admin('POST', `objects/${id}/packets`, packet)).status).toBe(200);
  };
  await Promise.all(Array.from({ length: SENDERS }, one));
}

/** The next events, once there is one for each alarm. */
async function take(listener: Listener, name: string): Promise<string[]> {
  await until(() => listener.received().length >= ALARMS, `${ALARMS} events ${name}`);
  await service.settled();
  const events = listener.take();
  expect(events.filter((event) => event.name !== name)).toEqual([]);
  return events.map(({ payload }) => payload.alarm._id).sort();
}

/** How many alarms each transaction clears from now on. */
async function watchTransactions(): Promise<{ sizes(): number[]; stop(): Promise<void> }> {
  const db = service.client.db();
  const counts = new Map<string, number>();
  const isCleared = { 'updateDescription.updatedFields.status': 'cleared' };
  const { operationTime } = await db.command({ ping: 1 });
  const stream = db.collection('alarms').watch([{ $match: isCleared }], { startAtOperationTime: operationTime });
  stream.on('change', (change) => {
    const { lsid, txnNumber } = change as { lsid?: { id: unknown }; txnNumber?: unknown };
    const key = `${lsid?.id} ${txnNumber}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  });
  return { sizes: () => [...counts.values()], stop: () => stream.close() };
}

const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0);

test('raises and clears many alarms at once, in transactions of a bounded size, and tells a person in few messages', async () => {
  const { ids } = await storeFleet(service.client.db(), ALARMS, () => ({}));
  const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
  await person.call('PATCH', 'account', { channels: [{ ntfy: `${receiver.url}topic` }] });
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  await listener.subscribe({ events: ['alarm-raised', 'alarm-cleared'] });
  const rule = { name: 'Hot', when: { param: 't', op: '>', value: 8 }, then: [{ notify: { users: [person.id] } }] };
  const { _id } = entityOf(await service.admin('POST', 'rules', rule));
  for (let index = 0; index < 3; index++) await service.settled();

  await sendAll(ids.map(String), { t: 9 });
  const raised = await take(listener, 'alarm-raised');
  expect(raised).toHaveLength(ALARMS);
  expect(new Set(raised).size).toBe(ALARMS);

  const transactions = await watchTransactions();
  expect((await service.admin('PATCH', `rules/${_id}`, { active: false })).status).toBe(200);
  expect(await take(listener, 'alarm-cleared')).toEqual(raised);
  await until(() => sum(transactions.sizes()) >= ALARMS, 'the transactions are seen');
  expect(sum(transactions.sizes())).toBe(ALARMS);
  // The last task of a transaction may take more than is left in it.
  expect(Math.max(...transactions.sizes())).toBeLessThan(2 * LIMITS.commitTasks);
  await transactions.stop();

  const isDigest = ({ text }: Received): boolean => text.startsWith('Too many at once');
  await until(() => receiver.received.some(isDigest), 'a message that counts others');
  const singles = receiver.received.filter((received) => !isDigest(received));
  expect(singles.length).toBeLessThanOrEqual(SINGLE_MESSAGES);
  const alarms = await service.client.db().collection('alarms').countDocuments({ status: 'cleared' });
  expect(alarms).toBe(ALARMS);
});
