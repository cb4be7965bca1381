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

test('raise an alarm where the object was when time completed it, and late', async () => {
  const { _id: objectId } = entityOf(await service.admin('POST', 'objects', { id: 'moved', name: 'moved' }));
  const rule = {
    name: 'long hot',
    when: { param: 't', op: '>', value: 8 },
    for: '30 s',
    select: { objects: [objectId] },
  };
  await service.admin('POST', 'rules', rule);
  const time = Date.now() - 1_800_000;
  const send = async (packet: object) => entityOf(await service.admin('POST', `objects/${objectId}/packets`, packet));
  await send({ t: 1, time });
  const { _id: packet } = await send({ t: 9, time: time + 1_000, lat: 50, lon: 10 });
  await send({ t: 10, time: time + 61_000, lat: 51, lon: 11 });
  const alarms = async () => (await service.admin('GET', `alarms?where.object=${objectId}`)).body;
  await until(async () => (await alarms()).length === 1, 'an alarm');
  expect(await alarms()).toMatchObject([
    { raised: time + 31_000, values: { t: 9 }, position: { lat: 50, lon: 10 }, packet, late: true },
  ]);
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
  await until(
    async () =>
      (await second.client
        .db()
        .collection('alarms')
        .countDocuments({ object: new ObjectId(objectId) })) > 0,
    'an alarm',
  );
  expect(await alarms.toArray()).toMatchObject([{ raised: time + 1, values: { t: 10 } }]);
});
