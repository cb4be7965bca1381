/** What happens reaches the receivers of webhooks: signed, once, in order, and nothing that its owner may not see. */
import { describe, expect, test } from '@jest/globals';
import { useService } from '../support/fixture.js';
import { useReceiver, useWebhooks, verify } from '../support/receiver.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.0/8', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createObject, createHandler, remove } = useWebhooks(service, receiver);

describe('an event', () => {
  test('is sent as it happened, signed so that the reference library verifies it', async () => {
    const object = await createObject();
    const handler = await createHandler({ objects: [object._id] });
    expect((await service.admin('GET', `handlers/${handler._id}`)).body).not.toHaveProperty('secret');
    const { body: packet } = await service.admin('POST', `objects/${object._id}/packets`, { speed: 7 });
    const [received] = await receiver.got(1);
    expect(received?.body).toMatchObject({ type: 'object-packet', data: { _id: packet._id, speed: 7 } });
    expect(received?.id).toMatch(/^msg_[0-9a-f]{24}$/);
    expect(() => verify(handler.secret, received as never)).not.toThrow();
    expect(() => verify('whsec_AAAA', received as never)).toThrow();
    await remove(handler);
  });

  test('sends the events of one object in order, however many there are', async () => {
    const object = await createObject();
    const handler = await createHandler({ objects: [object.id] });
    for (let from = 0; from < 300; from += 100) {
      const packets = Array.from({ length: 100 }, (_, index) => ({ n: from + index, time: 1e12 + from + index }));
      await service.admin('POST', `objects/${object._id}/packets`, packets);
    }
    await receiver.got(300);
    expect(receiver.received.map(({ body }) => body.data.n)).toEqual(Array.from({ length: 300 }, (_, n) => n));
    await remove(handler);
  });
});

test('sends the removal of an object to a handler that selects it by its labels', async () => {
  const cold = await createObject({ labels: ['cold'] });
  const warm = await createObject({ labels: ['warm'] });
  const handler = await createHandler({ labels: ['cold'], events: ['object-removed'] });
  for (const { _id } of [warm, cold]) await service.admin('DELETE', `objects/${_id}`);
  const [received] = await receiver.got(1);
  expect(received?.body).toMatchObject({ type: 'object-removed', data: { id: cold._id } });
  await remove(handler);
});
