/** Objects that come and go leave nothing behind: neither in the memory of an instance, nor in the states that are stored. */
import { afterAll, expect, test } from '@jest/globals';
import { type Document, ObjectId } from 'mongodb';
import { entityOf } from '../support/answers.js';
import { startSecond, type TestService, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService({ env: { OPS_PORT: '0' } });
const endings: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of endings.reverse()) await end();
});

const ROUNDS = 3;
const OBJECTS = 10;

async function countRemembered({ service: { opsUrl } }: TestService): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^vigil_alarm_memory_entries (\d+)$/m.exec(text)?.[1]);
}

const countStates = (): Promise<number> =>
  service.client
    .db()
    .collection('alarmStates')
    .countDocuments({ refilledToMs: { $exists: false } });

let count = 0;

/** An object that is heard three times: the alarm of one rule is raised, others would be much later. */
async function createHeard(): Promise<string> {
  const id = `guest-${count++}`;
  const objectId = entityOf(await service.admin('POST', 'objects', { id, name: id }))._id;
  for (const t of [1, 9, 2]) entityOf(await service.admin('POST', `objects/${objectId}/packets`, { t }));
  return objectId;
}

test('are forgotten, however often others come', async () => {
  const rules = [
    { name: 'hot', when: { param: 't', op: '>', value: 8 }, clear: { param: 't', op: '<', value: 0 } },
    { name: 'silent', when: { silent: '300 d' } },
    { name: 'later', when: { param: 't', op: '<', value: 5 }, for: '300 d' },
    { name: 'last', when: { expr: 'p.t > last.t + 100' } },
  ];
  for (const rule of rules) entityOf(await service.admin('POST', 'rules', rule));
  await service.settled();
  for (let round = 0; round < ROUNDS; round++) {
    const ids = await Promise.all(Array.from({ length: OBJECTS }, createHeard));
    await until(async () => (await countRemembered(service)) >= OBJECTS, 'something is remembered');
    const removals = await Promise.all(ids.map((id) => service.admin('DELETE', `objects/${id}`)));
    expect(removals.map(({ status }) => status)).toEqual(ids.map(() => 200));
  }
  await until(async () => (await countRemembered(service)) === 0, 'nothing is remembered');
  expect(await countStates()).toBe(0);
});

test('are forgotten where no instance has seen their removal', async () => {
  const objectId = await createHeard();
  const db = service.client.db();
  const states = db.collection<Document & { _id: string }>('alarmStates');
  await until(async () => (await states.findOne({ _id: objectId })) !== null, 'a row of the object');
  await service.service.stop();
  await states.deleteMany({ rule: { $exists: true } });
  await db.collection('objects').deleteOne({ _id: new ObjectId(objectId) });
  const second = await startSecond(service, endings, { env: { OPS_PORT: '0' } });
  await until(async () => (await countStates()) === 0, 'nothing is stored of it');
  await until(async () => (await countRemembered(second)) === 0, 'nothing is remembered of it');
});
