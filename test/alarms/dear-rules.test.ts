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

test('evaluate the packets of many geofences, most of which are elsewhere, without storing how far', async () => {
  const { call, objectId } = await createTenant('fences');
  const create = async (store: string, fields: object): Promise<string> =>
    entityOf(await call('POST', store, fields))._id;
  const fences: string[] = [];
  for (let nth = 0; nth < (2 * LIMITS.plannedConditions) / LIMITS.conditionsOfExpression; nth++) {
    const geometry = { type: 'Point', coordinates: [10 + nth / 10, 50] };
    fences.push(await create('geofences', { name: `fence ${nth}`, geometry, radius: 1_000 }));
  }
  await create('rules', { name: 'inside', when: { geofence: fences, is: 'inside' } });
  await create('rules', { name: 'entered', when: { geofence: fences, on: 'enter' } });
  await create('rules', { name: 'last', when: { param: 'n', op: '>', value: 8 } });
  await service.settled();
  const time = Date.now() - 60_000;
  const send = async (packet: object): Promise<void> =>
    void entityOf(await call('POST', `objects/${objectId}/packets`, packet));
  const rowOf = () => service.client.db().collection<{ _id: string }>('alarmStates').findOne({ _id: objectId });
  await send({ time, lat: 50.05, lon: 10 });
  await until(async () => (await rowOf()) !== null, 'the first packet is evaluated');
  for (let nth = 1; nth < 5; nth++) await send({ time: time + nth, lat: 50.05, lon: 10 + nth / 1_000 });
  const other = await create('objects', { id: 'fences-other', name: 'other' });
  const alarmsOf = async (id: string) => (await call('GET', `alarms?where.object=${id}`)).body.length;
  entityOf(await call('POST', `objects/${other}/packets`, { n: 9 }));
  await until(async () => (await alarmsOf(other)) === 1, 'a later packet is evaluated');
  expect(await rowOf()).toMatchObject({ dataMs: time });
  await send({ time: time + 5, lat: 50.001, lon: 10.001 });
  await until(async () => (await alarmsOf(objectId)) === 2, 'two alarms');
});
