/** The shortest way of each kind of event: stored, published once, and shown as the state of its object. */
import { expect, test } from '@jest/globals';
import { type Document, ObjectId } from 'mongodb';
import { useService } from '../support/fixture.js';

const service = useService();

test('stores and publishes packets, commands and changes, each once', async () => {
  const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
  const { body: object } = await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  const { body: packet } = await service.admin('POST', 'objects/car/packets', { speed: 50, time: 1_700_000_000_000 });
  await service.admin('PATCH', 'objects/car', { status: 'moving' });
  await service.settled();
  const { success, ...stored } = packet;
  expect(success).toBe(true);
  expect(listener.take().map(({ name, payload }) => ({ name, payload }))).toEqual([
    { name: 'object-packet', payload: stored },
    {
      name: 'object-update',
      payload: { id: object._id, before: { status: '' }, after: { status: 'moving' } },
    },
  ]);
  expect((await service.admin('GET', 'objects/car')).body.state).toEqual(stored);
});

test('publishes a packet of another writer that has no JSON form, and all that follow', async () => {
  const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
  const { body: object } = await service.admin('POST', 'objects', { id: 'foreign', name: 'Foreign' });
  await service.admin('POST', 'objects/foreign/packets', { n: 1 });
  const packets = service.client.db().collection('packets');
  const { _id, ...known } = (await packets.findOne({ n: 1 })) as Document;
  await packets.insertOne({ _id: new ObjectId(), pattern: /^a/, ...known, n: 2 });
  await service.admin('POST', 'objects/foreign/packets', { n: 3 });
  await service.settled();
  expect(listener.take().map(({ payload }) => [payload._oid, payload.n])).toEqual(
    [1, 2, 3].map((n) => [object._id, n]),
  );
  listener.close();
});
