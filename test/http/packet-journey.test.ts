import { expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';

const service = useService();

test('a packet is stored, becomes the state and is heard once; a command is journalled; a change is heard', async () => {
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
