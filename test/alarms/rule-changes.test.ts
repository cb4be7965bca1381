/** Rules that change while packets arrive: what one tenant changes costs others nothing, and nothing is read more often than it must. */
import { expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID } from '../../src/core/builtin.js';
import { entityOf } from '../support/answers.js';
import { createPerson, type Person } from '../support/callers.js';
import { type Call, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService({ env: { OPS_PORT: '0' } });

const HOT = { param: 't', op: '>', value: 8 };
let count = 0;

const circle = (radius: number) => ({ geometry: { type: 'Point', coordinates: [10, 50] }, radius });

async function createTenant(): Promise<Person> {
  const group = entityOf(await service.admin('POST', 'groups', { name: `tenant-${count++}` }))._id;
  return createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
}

async function createObject(call: Call): Promise<string> {
  const id = `changes-${count++}`;
  return entityOf(await call('POST', 'objects', { id, name: id }))._id;
}

const createRule = async (call: Call, fields: object): Promise<string> =>
  entityOf(await call('POST', 'rules', { name: 'rule', ...fields }))._id;

const statusesOf = async (call: Call, objectId: string): Promise<string[]> =>
  (await call('GET', `alarms?where.object=${objectId}&sortBy=raised`)).body.map(
    ({ status }: { status: string }) => status,
  );

const alarmsWith = (call: Call, objectId: string, ...statuses: string[]): Promise<void> =>
  until(async () => (await statusesOf(call, objectId)).join() === statuses.join(), `alarms ${statuses.join()}`);

async function countReadsOfRules(): Promise<number> {
  const stats = service.client
    .db()
    .collection('rules')
    .aggregate([{ $collStats: { latencyStats: {} } }]);
  return Number((await stats.next())?.latencyStats.reads.ops);
}

/** Resolves when the rules that changed before are read: a packet is evaluated with a rule that is newer. */
async function settle(call: Call): Promise<void> {
  const objectId = await createObject(call);
  await createRule(call, { when: HOT, select: { objects: [objectId] } });
  await call('POST', `objects/${objectId}/packets`, { t: 9 });
  await alarmsWith(call, objectId, 'raised');
}

test('reads no rule again for a geofence that only has another name, and few queries for one that is elsewhere', async () => {
  const { call } = await createTenant();
  const fence = entityOf(await call('POST', 'geofences', { name: 'yard', ...circle(100) }))._id;
  const objectId = await createObject(call);
  for (let index = 0; index < 20; index++) await createRule(call, { when: { geofence: fence, is: 'inside' } });
  await settle(call);
  const first = await countReadsOfRules();
  for (let index = 0; index < 20; index++) await call('PATCH', `geofences/${fence}`, { name: `yard ${index}` });
  await settle(call);
  const second = await countReadsOfRules();
  for (let index = 0; index < 20; index++) await call('PATCH', `geofences/${fence}`, circle(200 + index));
  await settle(call);
  const third = await countReadsOfRules();
  // Reads of the checks of the rule that settles are among them.
  expect(second - first).toBeLessThan(20);
  expect(third - second).toBeLessThan(80);
  // About 215 m from the center: inside the last circle only.
  await call('POST', `objects/${objectId}/packets`, { lat: 50.00193, lon: 10 });
  await alarmsWith(call, objectId, ...Array(20).fill('raised'));
});

test('says no name of a geofence that the owner of the rule does not see any more', async () => {
  const group = entityOf(await service.admin('POST', 'groups', { name: `tenant-${count++}` }))._id;
  const { call, id: user } = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
  // Those of the groups above are visible.
  const other = entityOf(await service.admin('POST', 'groups', { name: `tenant-${count++}` }))._id;
  const fence = entityOf(await service.admin('POST', 'geofences', { name: 'yard', group: other, ...circle(100) }))._id;
  await service.admin('POST', `geofences/${fence}/access`, { user });
  const objects = [await createObject(call), await createObject(call)];
  await createRule(call, { when: { any: [HOT, { geofence: fence, is: 'inside' }] }, select: { objects } });
  const wordsFor = async (objectId: string | undefined): Promise<string[]> => {
    await settle(call);
    await service.settled();
    await call('POST', `objects/${objectId}/packets`, { t: 9 });
    await alarmsWith(call, String(objectId), 'raised');
    const [{ why }] = (await call('GET', `alarms?where.object=${objectId}`)).body;
    return why.map(({ condition }: { condition: string }) => condition);
  };
  expect(await wordsFor(objects[0])).toEqual(['t > 8', 'inside "yard"']);
  await service.admin('DELETE', `geofences/${fence}/access/${user}`);
  expect((await call('GET', `geofences/${fence}`)).status).toBe(404);
  await settle(call);
  await service.admin('PATCH', `geofences/${fence}`, { name: 'secret' });
  expect(await wordsFor(objects[1])).toEqual(['t > 8', 'inside a geofence']);
});

test('evaluates a packet with the rule that was created, changed or removed before it', async () => {
  const { call } = await createTenant();
  const objectId = await createObject(call);
  for (let round = 0; round < 5; round++) {
    const time = Date.now() - 10_000 + round * 1_000;
    const ruleId = await createRule(call, { when: { param: 't', op: '>', value: 100 } });
    await call('PATCH', `rules/${ruleId}`, { when: HOT });
    await call('POST', `objects/${objectId}/packets`, { t: 9, time });
    await alarmsWith(call, objectId, ...Array(round).fill('cleared'), 'raised');
    await call('DELETE', `rules/${ruleId}`);
    await call('POST', `objects/${objectId}/packets`, { t: 10, time: time + 1 });
    await alarmsWith(call, objectId, ...Array(round + 1).fill('cleared'));
  }
});

test('runs the rules of a user again who is active again, and clears their alarms in between', async () => {
  const group = entityOf(await service.admin('POST', 'groups', { name: `tenant-${count++}` }))._id;
  const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID, group });
  const objectId = await createObject(person.call);
  await createRule(person.call, { when: HOT });
  await person.call('POST', `objects/${objectId}/packets`, { t: 9 });
  await alarmsWith(service.admin, objectId, 'raised');
  await service.admin('PATCH', `users/${person.id}`, { active: false });
  await alarmsWith(service.admin, objectId, 'cleared');
  await service.admin('PATCH', `users/${person.id}`, { active: true });
  await settle(service.admin);
  await service.admin('POST', `objects/${objectId}/packets`, { t: 10 });
  await alarmsWith(service.admin, objectId, 'cleared', 'raised');
});
