/** Alarms of rules and objects whose removal no instance has seen, as after a gap of the change stream, are cleared all the same. */
import { afterAll, expect, test } from '@jest/globals';
import { type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { partitionOf } from '../../src/processing/processor.js';
import { entityOf } from '../support/answers.js';
import { startSecond, type TestService, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService({ env: { OPS_PORT: '0' } });
const endings: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of endings.reverse()) await end();
});

const alarmsIn = () => service.client.db().collection('alarms');

/** Stores an alarm and its state like these, of another rule or object, that does not exist. */
async function copyAlarm(alarm: Document, ids: { rule?: ObjectId; object?: ObjectId }): Promise<ObjectId> {
  const states = service.client.db().collection<Document>('alarmStates');
  const state = (await states.findOne({ object: alarm.object })) as Document;
  const copied = { ...alarm, ...ids, _id: new ObjectId() };
  await alarmsIn().insertOne(copied);
  const { rule, object } = { ...state, ...ids } as { rule: ObjectId; object: ObjectId };
  const partition = partitionOf(object.toHexString(), LIMITS.partitions);
  const own = { rule, object, partition, state: { ...state.state, alarmId: copied._id.toHexString() } };
  await states.insertOne({ ...state, ...own, _id: `${rule}:${object}` as never });
  return copied._id;
}

let running: TestService = service;
const HOT = { param: 't', op: '>', value: 8 };

test.each([
  ['objects with states are looked at', 'hot', HOT],
  ['all objects are, for a rule about silence', 'silent', { any: [HOT, { silent: '1 d' }] }],
])('clears alarms without a rule or an object, and no others, where %s', async (_which, name, when) => {
  const { _id: objectId } = entityOf(await running.admin('POST', 'objects', { id: name, name }));
  await running.admin('POST', 'rules', { name, when, select: { objects: [objectId] } });
  await running.admin('POST', `objects/${objectId}/packets`, { t: 9 });
  const filter = { object: new ObjectId(objectId), status: 'raised' };
  await until(async () => (await alarmsIn().countDocuments(filter)) === 1, 'an alarm');
  const alarm = (await alarmsIn().findOne(filter)) as Document;
  await running.service.stop();
  const withoutRule = await copyAlarm(alarm, { rule: new ObjectId() });
  const withoutObject = await copyAlarm(alarm, { object: new ObjectId() });
  running = await startSecond(service, endings);
  const reasonOf = async (_id: ObjectId) => (await alarmsIn().findOne({ _id }))?.clearReason;
  const cleared = { name, status: 'cleared' };
  await until(async () => (await alarmsIn().countDocuments(cleared)) === 2, 'two alarms are cleared');
  expect([await reasonOf(withoutRule), await reasonOf(withoutObject)]).toEqual(['rule removed', 'object removed']);
  expect(await alarmsIn().countDocuments(filter)).toBe(1);
});
