/** A service whose clock is ahead of the database's. */
import { expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';
import { useReceiver, useWebhooks } from '../support/receiver.js';

const AHEAD_MS = 30_000;
const env = { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' };
const service = useService({ env, now: () => Date.now() + AHEAD_MS });
const receiver = useReceiver();
const { createObject, createHandler } = useWebhooks(service, receiver);

test('sends a new handler what happens after it was created, and nothing from before', async () => {
  const object = await createObject();
  const send = (n: number) => service.admin('POST', `objects/${object._id}/packets`, { n });
  await send(1);
  await createHandler({ objects: [object._id], events: ['object-packet'] });
  await send(2);
  await receiver.got(1);
  expect(receiver.received.map(({ body }) => body.data.n)).toEqual([2]);
});
