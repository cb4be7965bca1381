/** Alarms while the changes of the database arrive late: time alone changes nothing before what was stored by then has been read. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const MINUTE_MS = 60_000;
/** Changes that are read one after the other before those of the object. */
const BACKLOG = 3_000;
/** Each of them takes a reply of the database, which a busy machine is slow to give. */
const BACKLOG_READ_MS = 240_000;

let aheadMs = 0;
const service = useService({ now: () => Date.now() + aheadMs });
const { watcherPage } = LIMITS;
beforeAll(() => void Object.assign(LIMITS, { watcherPage: 1 }));
afterAll(() => void Object.assign(LIMITS, { watcherPage }));

const create = async (store: string, fields: object): Promise<string> =>
  entityOf(await service.admin('POST', store, fields))._id;

let count = 0;
const createObject = (): Promise<string> => create('objects', { id: `late-${count++}`, name: 'late' });

async function send(objectId: string, packets: object): Promise<void> {
  expect((await service.admin('POST', `objects/${objectId}/packets`, packets)).status).toBe(200);
}

const countStates = (objectId: string, phase: string): Promise<number> =>
  service.client
    .db()
    .collection('alarmStates')
    .countDocuments({ object: new ObjectId(objectId), 'state.phase': phase });

const alarmsOf = async (objectId: string) => (await service.admin('GET', `alarms?where.object=${objectId}`)).body;

test.each([
  ['a condition that had ended in time', { when: { param: 't', op: '>', value: 8 }, for: '10 min' }, 'pending'],
  ['silence of an object that was heard in time', { when: { silent: '10 min' } }, 'idle'],
])('does not raise %s', async (_about, fields, phase) => {
  const objectId = await createObject();
  const other = await createObject();
  const control = await createObject();
  await create('rules', { name: 'rule', select: { objects: [objectId, control] }, ...fields });
  const time = Date.now() + aheadMs;
  for (const id of [objectId, control]) await send(id, { t: 9, time });
  await until(async () => (await countStates(objectId, phase)) === 1, 'a state');
  await until(async () => (await countStates(control, phase)) === 1, 'a state of the control');
  const backlog = Array.from({ length: BACKLOG }, (_, n) => ({ time: time - n, n }));
  await send(other, backlog);
  aheadMs += 5 * MINUTE_MS;
  await send(objectId, { t: 1, time: time + 5 * MINUTE_MS });
  // Ten minutes have passed for the one that was not heard again.
  aheadMs += 6 * MINUTE_MS;
  await until(async () => (await alarmsOf(control)).length === 1, 'the alarm of the control', BACKLOG_READ_MS);
  expect(await alarmsOf(control)).toMatchObject([{ status: 'raised', raised: time + 10 * MINUTE_MS }]);
  expect(await alarmsOf(objectId)).toEqual([]);
});
