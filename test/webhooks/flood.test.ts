/** One tenant's flood of messages: those of its neighbour do not wait behind it, and none of its own is lost or out of order. */
import { expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { isAfter } from '../../src/core/position.js';
import { partitionOf } from '../../src/processing/processor.js';
import { createPerson } from '../support/callers.js';
import { useService } from '../support/fixture.js';
import { startReceiver, useReceiver, useWebhooks } from '../support/receiver.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createObject, createHandler } = useWebhooks(service, receiver);

const WEBHOOKS = 30;
const PACKETS = 100;

test('stores and sends the message of a neighbour in the same partition while the flood is far from stored', async () => {
  const flooded = await startReceiver();
  const { body: group } = await service.admin('POST', 'groups', { name: 'flood' });
  const { body: role } = await service.admin('POST', 'roles', { name: 'flood', credentials: ['* /*'] });
  const flood = await createPerson(service, { role: role._id, group: group._id });
  const { body: source } = await flood.call('POST', 'objects', { id: 'flood', name: 'x' });
  const partition = partitionOf(source._id, LIMITS.partitions);
  let neighbour = await createObject();
  while (partitionOf(neighbour._id, LIMITS.partitions) !== partition) neighbour = await createObject();
  const handler = await createHandler({ objects: [neighbour._id] });
  for (let nth = 0; nth < WEBHOOKS; nth++) {
    await flood.call('POST', 'handlers', { url: `${flooded.url}?${nth}`, events: ['object-packet'] });
  }
  await service.settled();
  const packets = Array.from({ length: PACKETS }, (_, n) => ({ n }));
  const post = () => service.admin('POST', `objects/${neighbour._id}/packets`, { speed: 7 });
  let isStored = false;
  const storing = flood.call('POST', `objects/${source._id}/packets`, packets).then(() => {
    isStored = true;
  });
  // One of them is stored just after the flood.
  while (!isStored) await post();
  await Promise.all([storing, post()]);
  await until(() => flooded.received.length >= WEBHOOKS * PACKETS, 'the messages of the flood');
  const [last] = flooded.received.map(({ body }) => body.position).sort((a, b) => (isAfter(b, a) ? 1 : -1));
  const findAfter = () => receiver.received.find(({ body }) => isAfter(body.position, last));
  await until(() => findAfter() !== undefined, 'the message of the neighbour');
  const deliveries = service.client.db().collection('deliveries');
  const findOwn = () => deliveries.findOne({ _id: new ObjectId(findAfter()?.id.slice('msg_'.length)) });
  await until(async () => (await findOwn())?.state === 'delivered', 'its result to be stored');
  const own = await findOwn();
  expect(own).toMatchObject({ partition, handler: new ObjectId(handler._id) });
  // Though it happened after all of the flood, it was stored before much of it.
  expect(await deliveries.countDocuments({ partition, number: { $gt: own?.number } })).toBeGreaterThan(PACKETS);
  const inOrder = Array.from({ length: PACKETS }, (_, n) => n);
  for (let nth = 0; nth < WEBHOOKS; nth++) {
    const numbers = flooded.received.filter(({ path }) => path === `/?${nth}`).map(({ body }) => body.data.n);
    expect(numbers).toEqual(inOrder);
  }
  await flooded.stop();
});
