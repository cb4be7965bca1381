/** Rules whose expressions take many steps: they are slowed, or say what they cannot do, and no other tenant waits for them. */
import { expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { createPerson } from '../support/callers.js';
import { type Call, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const PACKETS = 200;
/** So that one packet takes a whole turn of its tenant. */
const RULES = Math.ceil(LIMITS.commitTenantSteps / LIMITS.expressionSteps) + 1;
/** Of the steps that a rule has for a packet. */
const SHARE = 0.9;

const textOf = (steps: number): string => 'a'.repeat(Math.min(steps, LIMITS.packetBytes - 1_000));
/** About as many steps as the rule has for a packet, over a text of some length. */
const dearOver = (text: string): string => {
  const times = Math.max(1, Math.floor((LIMITS.expressionSteps * SHARE) / text.length));
  return Array.from({ length: times }, (_, nth) => `size(p.text) > ${nth}`).join(' && ');
};

/** What is written in one transaction has one time of the database, after the first byte of its positions. */
const transactionOf = (position: string): string => Buffer.from(position, 'base64url').toString('hex', 0, 9);

async function createTenant(name: string): Promise<{ call: Call; objectId: string }> {
  const { _id: group } = entityOf(await service.admin('POST', 'groups', { name }));
  const { call } = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
  const { _id: objectId } = entityOf(await call('POST', 'objects', { id: `${name}-object`, name, group }));
  return { call, objectId };
}

test('let the alarm of another tenant come before most of their own', async () => {
  const dear = await createTenant('dear');
  const other = await createTenant('other');
  const text = textOf(LIMITS.expressionSteps / 12);
  for (let nth = 0; nth < RULES; nth++) {
    const when = { expr: `${dearOver(text)} && p.n > ${nth === 0 ? 8 : 100}` };
    entityOf(await dear.call('POST', 'rules', { name: `dear ${nth}`, when }));
  }
  entityOf(await other.call('POST', 'rules', { name: 'other', when: { param: 'n', op: '>', value: 8 } }));
  await service.settled();
  // Every second one raises an alarm.
  const packets = Array.from({ length: PACKETS }, (_, nth) => ({ time: 1_000 + nth, n: nth % 2 === 0 ? 9 : 1, text }));
  entityOf(await dear.call('POST', `objects/${dear.objectId}/packets`, packets[0]));
  expect((await dear.call('POST', `objects/${dear.objectId}/packets`, packets.slice(1))).status).toBe(200);
  entityOf(await other.call('POST', `objects/${other.objectId}/packets`, { n: 9 }));
  const raised = () => service.changes.filter(({ store, kind }) => store === 'alarms' && kind === 'created');
  await until(() => raised().length === PACKETS / 2 + 1, 'all alarms');
  const transactions = raised().map(({ position }) => transactionOf(position));
  const ofOther = transactions[raised().findIndex(({ after }) => after?.name === 'other')] as string;
  // Most of them have not even been evaluated by then.
  expect(transactions.slice(transactions.lastIndexOf(ofOther) + 1).length).toBeGreaterThan(PACKETS / 10);
});

test('say that they have taken too many steps, and leave the other rules of the object what they need', async () => {
  const { call, objectId } = await createTenant('many');
  const text = textOf(LIMITS.expressionSteps / 4);
  const dear = { expr: `${dearOver(text)} && ${dearOver(text)} && p.n > 8` };
  const { _id: dearId } = entityOf(await call('POST', 'rules', { name: 'dear', when: dear }));
  const { _id: cheapId } = entityOf(await call('POST', 'rules', { name: 'cheap', when: { expr: 'p.n > 8' } }));
  await service.settled();
  entityOf(await call('POST', `objects/${objectId}/packets`, { n: 9, text }));
  const reasonOf = async (id: string) => entityOf(await call('GET', `rules/${id}`)).disabledReason;
  await until(async () => (await reasonOf(dearId)) !== undefined, 'a reason');
  expect(await reasonOf(dearId)).toMatch(/too many steps/);
  expect(await reasonOf(cheapId)).toBeUndefined();
  const { body } = await call('GET', `alarms?where.object=${objectId}`);
  expect(body.map(({ name }: { name: string }) => name)).toEqual(['cheap']);
  // Changed, it runs again.
  entityOf(await call('PATCH', `rules/${dearId}`, { when: { expr: 'size(p.text) > 3 && p.n > 8' } }));
  await until(async () => (await reasonOf(dearId)) === undefined, 'no reason');
});
