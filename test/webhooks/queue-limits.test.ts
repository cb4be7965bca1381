/** Messages that cannot be delivered: queues are bounded, and old messages and those without a handler are removed. */
import { expect, test } from '@jest/globals';
import { type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { OK, useReceiver, useWebhooks } from '../support/receiver.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { webhookQueueCheckMs: 100, webhookSweepMs: 100, webhookQueueRows: 10, webhookDeadRows: 25 });
const DAY_MS = 86_400_000;
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' } });
const receiver = useReceiver((_received, res) => void res.writeHead(500).end());
const { createObject, createHandler, remove } = useWebhooks(service, receiver);

const deliveries = () => service.client.db().collection('deliveries');
/** A handler whose object has so many messages that fail. */
async function createFailing(messages: number) {
  const object = await createObject();
  const handler = await createHandler({ objects: [object._id] });
  const send = (from: number, to: number) =>
    service.admin(
      'POST',
      `objects/${object._id}/packets`,
      Array.from({ length: to - from }, (_, n) => ({ n: from + n, time: 1e12 + from + n })),
    );
  await send(0, messages);
  const rows = (filter: Document = {}) =>
    deliveries()
      .find({ handler: new ObjectId(handler._id as string), ...filter })
      .sort({ number: 1 })
      .toArray();
  await until(async () => (await rows()).length >= Math.min(messages, LIMITS.webhookQueueRows));
  return { object, handler, send, rows };
}
const numberIn = ({ body }: Document): number => JSON.parse(body).data.n;
const auditOf = async ({ _id }: { _id: string }) =>
  (await service.admin('GET', `audit?where.entity=${_id}`)).body.filter(
    ({ action }: { action: string }) => action === 'webhook queue full',
  );

test('drops the oldest messages of a full queue visibly', async () => {
  const { handler, rows, send } = await createFailing(30);
  await until(async () => (await rows({ state: 'dead' })).length === 20);
  const waiting = await rows({ state: 'pending' });
  expect(waiting.map(numberIn)).toEqual(Array.from({ length: 10 }, (_, n) => 20 + n));
  const { body: dead } = await service.admin('GET', `handlers/${handler._id}/deliveries?where.state=dead`);
  expect(dead).toHaveLength(20);
  expect(dead[0]).toMatchObject({ state: 'dead', error: 'the queue of the handler was full' });
  expect((await service.admin('POST', `handlers/${handler._id}/deliveries/${dead[0]._id}/retry`)).status).toBe(409);
  await until(async () => (await auditOf(handler)).length === 1);
  // Those of the first look; a busy machine may need two for all of them.
  expect((await auditOf(handler))[0]).toMatchObject({
    entity: handler._id,
    fields: [expect.stringMatching(/^dead=[12]?\d$/)],
  });
  // It goes on filling: the records of dead messages are bounded too, and the owner is not notified again within the hour.
  await send(30, 50);
  await until(async () => (await rows({ state: 'pending' })).map(numberIn)[0] === 40);
  await until(async () => (await rows({ state: 'dead' })).length === 25);
  expect(await auditOf(handler)).toHaveLength(1);
  await remove(handler);
});

/** The value of a metric, with its labels. */
async function readMetric(name: string): Promise<number> {
  const text = await (await fetch(`${service.service.opsUrl}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

test('counts waiting and dead messages, and the time of deliveries, in metrics', async () => {
  const { handler, rows } = await createFailing(6);
  await until(async () => (await readMetric('vigil_webhook_messages_waiting')) === 6);
  const former = await readMetric('vigil_webhook_deliveries_total{outcome="overflowed"}');
  const delivered = await readMetric('vigil_webhook_delay_seconds_count');
  const other = await createFailing(15);
  await until(async () => (await readMetric('vigil_webhook_deliveries_total{outcome="overflowed"}')) === former + 5);
  receiver.answer = OK;
  // On a busy machine the second try may have failed as well, and the third one comes seconds later.
  await until(async () => (await rows({ state: 'delivered' })).length === 6, 'all to be delivered');
  expect(await readMetric('vigil_webhook_delay_seconds_count')).toBeGreaterThanOrEqual(delivered + 6);
  await remove(handler);
  await remove(other.handler);
});

test('limits a queue by its bytes as well', async () => {
  const { handler, rows } = await createFailing(8);
  const [first] = await rows();
  Object.assign(LIMITS, { webhookQueueBytes: 3.5 * Number(first?.bytes) });
  const other = await createFailing(8);
  await until(async () => (await other.rows({ state: 'pending' })).length === 3);
  expect((await other.rows({ state: 'dead' })).length).toBe(5);
  Object.assign(LIMITS, { webhookQueueBytes: 256 * 1_024 ** 2 });
  await remove(handler);
  await remove(other.handler);
});

test('drops a message that waits for too long, even if its receiver is not tried', async () => {
  const { handler, rows } = await createFailing(5);
  await until(async () => (await rows({ status: 500 })).length === 1);
  await service.admin('PATCH', `handlers/${handler._id}`, { active: false });
  await service.settled();
  const [oldest] = await rows();
  await deliveries().updateOne({ _id: oldest?._id }, { $set: { time: Date.now() - 4 * DAY_MS } });
  await until(async () => (await rows({ state: 'dead' })).length === 1);
  const [dead] = await rows({ state: 'dead' });
  expect(dead).toMatchObject({ _id: oldest?._id, error: 'the message was not delivered in time' });
  expect(Math.abs(dead?._expires - Date.now() - 30 * DAY_MS)).toBeLessThan(60_000);
  // Its body is there: it can be sent after all.
  receiver.answer = OK;
  const again = await service.admin('POST', `handlers/${handler._id}/deliveries/${oldest?._id}/retry`);
  expect(again.body).toMatchObject({ state: 'pending' });
  await service.admin('PATCH', `handlers/${handler._id}`, { active: true });
  await until(async () => (await rows({ state: 'delivered' })).length === 5);
  await remove(handler);
});

test('removes messages of removed handlers', async () => {
  const { handler, rows } = await createFailing(3);
  // As after a kill between the removal of the handler and that of its messages.
  await service.client
    .db()
    .collection('handlers')
    .deleteOne({ _id: new ObjectId(handler._id as string) });
  await until(async () => (await rows()).length === 0);
  expect(await rows()).toEqual([]);
});

test('counts by an index alone', async () => {
  const { handler } = await createFailing(4);
  const filter = { handler: new ObjectId(handler._id as string), state: 'pending' };
  const hint = { handler: 1, state: 1, time: 1, bytes: 1 } as const;
  const plan = await deliveries()
    .aggregate([{ $match: filter }, { $group: { _id: null, rows: { $sum: 1 }, bytes: { $sum: '$bytes' } } }], { hint })
    .explain('executionStats');
  expect(JSON.stringify(plan)).toContain('IXSCAN');
  expect(JSON.stringify(plan)).not.toContain('"FETCH"');
  await remove(handler);
});

test('sends a batch of which some messages were dropped with another id', async () => {
  const object = await createObject();
  const handler = await createHandler({ objects: [object._id], mode: 'batch' });
  const fail = receiver.answer;
  const sendBatch = async () => {
    receiver.received.length = 0;
    await service.admin(
      'POST',
      `objects/${object._id}/packets`,
      [1, 2, 3].map((n) => ({ n, time: 1e12 + n })),
    );
    await until(() => receiver.received.length > 0);
    if (receiver.received[0]?.body.data.length === 3) return true;
    // The change stream of a busy machine may divide them: they are sent, and others take their place.
    receiver.answer = OK;
    await until(async () => (await deliveries().countDocuments({ ...of, state: 'pending' })) === 0);
    receiver.answer = fail;
    return false;
  };
  const of = { handler: new ObjectId(handler._id as string) };
  await until(sendBatch, 'a batch of three');
  const [failed] = receiver.received;
  await until(async () => (await deliveries().countDocuments({ ...of, status: 500 })) === 3);
  await service.admin('PATCH', `handlers/${handler._id}`, { active: false });
  await service.settled();
  const findFirst = () => deliveries().findOne({ ...of, status: 500 }, { sort: { number: 1 } });
  const batches = () => receiver.received.filter(({ body }) => body.type === 'batch');
  // What was begun before that is over: the next one to be sent is the batch without the first.
  await until(async () => (await findFirst())?.attempts === batches().length);
  await deliveries().updateOne({ _id: (await findFirst())?._id }, { $set: { state: 'dead' } });
  receiver.answer = OK;
  await service.admin('PATCH', `handlers/${handler._id}`, { active: true });
  await until(() => receiver.received.at(-1)?.body.data.length === 2, 'a batch of two');
  expect(receiver.received.at(-1)?.id).not.toBe(failed?.id);
  await remove(handler);
});
