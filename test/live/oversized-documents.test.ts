/** Changes of a document that is larger than the database can report, made by another program. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { ADMIN, openListener, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const EIGHT_MIB = 8 * 1_024 ** 2;

test('sends the events after a change that is too large, also to clients that resume before it', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const listener = await service.listen(token);
  const { body: car } = await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  await service.admin('POST', 'objects/car/packets', { n: 1 });
  await service.settled();
  const since = listener.received()[0]?.position ?? '';
  const objects = service.client.db().collection('objects');
  const { _id, success, id, ...common } = car;
  const huge = new ObjectId();
  const branch = car.branch.map((group: string) => new ObjectId(group));
  await objects.insertOne({ ...common, _id: huge, id: 'huge', branch, big: 'a'.repeat(EIGHT_MIB) });
  await service.admin('POST', 'objects/car/packets', { n: 2 });
  for (const letter of ['b', 'c']) {
    await objects.updateOne({ _id: huge }, { $set: { big: letter.repeat(EIGHT_MIB) } });
    await service.admin('POST', 'objects/car/packets', { n: 3 });
  }
  await service.admin('PATCH', 'objects/car', { status: 'parked' });
  await service.settled();
  const numbers = (received: readonly { name: string; payload: { n?: number } }[]) =>
    received.map(({ name, payload }) => payload.n ?? name);
  expect(numbers(listener.take())).toEqual([1, 2, 3, 3, 'object-update']);
  const back = await openListener(service.url, token, { since });
  await until(() => back.received().length >= 4, 'the missed events');
  expect(numbers(back.take())).toEqual([2, 3, 3, 'object-update']);
  expect(
    service.logLines.filter((line) => line.includes('too large for the database to report')).length,
  ).toBeGreaterThan(0);
  back.close();
});
