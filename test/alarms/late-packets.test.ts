/** Packets that are older than others of their object, in the hands of an instance that has not seen those. */
import { afterAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { entityOf } from '../support/answers.js';
import { startSecond, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const endings: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of endings.reverse()) await end();
});

test('are late for an instance that takes over, too', async () => {
  const { _id: objectId } = entityOf(await service.admin('POST', 'objects', { id: 'late', name: 'late' }));
  const rule = { name: 'hot', when: { param: 't', op: '>', value: 8 }, select: { objects: [objectId] } };
  await service.admin('POST', 'rules', rule);
  // Ahead of the clock, so that no packet is much later than its time, however long a test takes.
  const time = Date.now() + 120_000;
  await service.admin('POST', `objects/${objectId}/packets`, { t: 1, time });
  await service.service.stop();
  const second = await startSecond(service, endings);
  for (const packet of [
    { t: 2, time: time - 3 },
    { t: 9, time: time - 1 },
    { t: 10, time: time + 1 },
  ])
    await second.admin('POST', `objects/${objectId}/packets`, packet);
  const alarms = second.client
    .db()
    .collection('alarms')
    .find({ object: new ObjectId(objectId) });
  await until(async () => (await second.client.db().collection('alarms').countDocuments()) > 0, 'an alarm');
  expect(await alarms.toArray()).toMatchObject([{ raised: time + 1, values: { t: 10 } }]);
});
