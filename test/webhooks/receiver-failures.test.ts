/** Receivers that fail: what is sent again, what waits for it, and what is not sent at all. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { type Answer, OK, useReceiver, useWebhooks, verify } from '../support/receiver.js';
import { until } from '../support/until.js';

const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createObject, createHandler, remove } = useWebhooks(service, receiver);

const send = (object: { _id: string }, n: number) => service.admin('POST', `objects/${object._id}/packets`, { n });
const numbers = () => receiver.received.map(({ body }) => body.data.n);
const deliveriesOf = async ({ _id }: { _id: string }) =>
  (await service.admin('GET', `handlers/${_id}/deliveries`)).body;
const failOnce = (fail: Answer): Answer => {
  let isFailed = false;
  return (received, res, req) => {
    if (isFailed) return OK(received, res, req);
    isFailed = true;
    fail(received, res, req);
  };
};

describe.each<[what: string, fail: Answer]>([
  ['500', (_received, res) => void res.writeHead(500).end('sorry')],
  ['a redirect', (_received, res) => void res.writeHead(302, { Location: receiver.url }).end()],
  ['a reset', (_received, _res, req) => void req.socket.destroy()],
  [
    'half an answer',
    (_received, res) => void res.writeHead(200, { 'Content-Length': 99 }).write('half', () => res.destroy()),
  ],
])('after %s', (_what, fail) => {
  test('sends the same bytes by the same id again, in order', async () => {
    const object = await createObject();
    const handler = await createHandler({ objects: [object._id] });
    receiver.answer = failOnce(fail);
    for (const n of [1, 2, 3]) await send(object, n);
    await receiver.got(4);
    expect(numbers()).toEqual([1, 1, 2, 3]);
    const [first, second] = receiver.received;
    expect(second?.id).toBe(first?.id);
    expect(second?.text).toBe(first?.text);
    expect(() => verify(handler.secret, second as never)).not.toThrow();
    await remove(handler);
  });
});

test('delays only the object whose message fails', async () => {
  const good = await createObject();
  const bad = await createObject();
  const handler = await createHandler({ objects: [good._id, bad._id] });
  receiver.answer = (received, res) => void res.writeHead(received.body.data._oid === bad._id ? 503 : 200).end();
  await send(bad, 1);
  await receiver.got(1);
  for (const n of [2, 3, 4]) await send(good, n);
  await until(() => numbers().includes(4));
  receiver.answer = OK;
  await send(bad, 5);
  await until(() => numbers().includes(5));
  expect(numbers().filter((n) => n === 1).length).toBeGreaterThan(1);
  expect(numbers().lastIndexOf(1)).toBeLessThan(numbers().indexOf(5));
  await remove(handler);
});

test('deactivates the handler after a 410, with a security event', async () => {
  const object = await createObject();
  const handler = await createHandler({ objects: [object._id] });
  receiver.answer = (_received, res) => void res.writeHead(410).end();
  await send(object, 1);
  await until(async () => (await service.admin('GET', `handlers/${handler._id}`)).body.active === false);
  await until(async () => {
    const { body } = await service.admin('GET', `audit?where.entity=${handler._id}`);
    return body.some(({ action }: { action: string }) => action === 'webhook disabled');
  });
  receiver.answer = OK;
  await service.admin('PATCH', `handlers/${handler._id}`, { active: true });
  await receiver.got(2);
  await remove(handler);
});

test('keeps the events of a batch in order, and the same when it is resent', async () => {
  const objects = [await createObject(), await createObject(), await createObject()];
  const handler = await createHandler({ mode: 'batch', objects: objects.map(({ _id }) => _id) });
  receiver.answer = failOnce((_received, res) => void res.writeHead(500).end());
  for (let n = 0; n < 30; n++) await send(objects[n % 3] as never, n);
  // An instance that stood still for longer than its lease sends a batch again, by the same id.
  const sent = () =>
    [...new Map(receiver.received.map(({ id, body }) => [id, body])).values()].flatMap(({ data }) =>
      data.map((one: { data: { n: number } }) => one.data.n),
    );
  await until(() => sent().length >= 30);
  expect(sent()).toEqual(Array.from({ length: 30 }, (_, n) => n));
  const texts = new Set(receiver.received.map(({ id, text }) => `${id} ${text}`));
  expect(texts.size).toBe(new Set(receiver.received.map(({ id }) => id)).size);
  const [failed, again] = receiver.received;
  expect([again?.id, again?.text]).toEqual([failed?.id, failed?.text]);
  await remove(handler);
});

describe('the deliveries of a handler', () => {
  test('say how each message ended, and a dead one can be sent again', async () => {
    const object = await createObject();
    const handler = await createHandler({ objects: [object._id] });
    await send(object, 1);
    await until(async () => (await deliveriesOf(handler))[0]?.state === 'delivered');
    const [delivered] = await deliveriesOf(handler);
    expect(delivered).toMatchObject({ event: 'object-packet', attempts: 1, status: 200, answer: 'ok', error: null });
    expect((await service.admin('POST', `handlers/${handler._id}/deliveries/${delivered._id}/retry`)).status).toBe(409);
    receiver.answer = (_received, res) => void res.writeHead(500).end('no');
    await send(object, 2);
    await until(async () => (await deliveriesOf(handler))[1]?.status === 500);
    const [, failed] = await deliveriesOf(handler);
    await service.client
      .db()
      .collection('deliveries')
      .updateOne({ number: { $gt: 0 }, event: 'object-packet', state: 'pending' }, { $set: { state: 'dead' } });
    receiver.answer = OK;
    const again = await service.admin('POST', `handlers/${handler._id}/deliveries/${failed._id}/retry`);
    expect(again.body).toMatchObject({ state: 'pending', success: true });
    await until(async () => (await deliveriesOf(handler))[1]?.state === 'delivered');
    expect(receiver.received.at(-1)?.id).toBe(`msg_${failed._id}`);
    await remove(handler);
    await until(async () => (await service.client.db().collection('deliveries').countDocuments({})) === 0);
  });

  test('are given up one by one, though they were sent as one batch', async () => {
    const object = await createObject();
    const handler = await createHandler({ objects: [object._id], mode: 'batch' });
    const rows = service.client.db().collection('deliveries');
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The answer to the first one waits, so that the next two are one batch. An instance that stood still sends it again.
    receiver.answer = ({ body }, res) => {
      if (body.data[0].data.n !== 0) return void res.writeHead(500).end();
      void released.then(() => res.end());
    };
    await send(object, 0);
    await receiver.got(1);
    for (const n of [1, 2]) await send(object, n);
    await until(async () => (await rows.countDocuments({ state: 'pending' })) === 3);
    // They can be read before the service knows that they are stored: those that it knows are one batch.
    await service.settled();
    release();
    const failed = { status: 500, state: 'pending' };
    await until(async () => (await rows.countDocuments(failed)) === 2);
    await rows.updateOne(failed, { $set: { time: Date.now() - LIMITS.webhookLifetimeMs } }, { sort: { number: 1 } });
    await until(async () => (await rows.countDocuments({ state: 'dead' })) === 1);
    receiver.answer = OK;
    await until(async () => (await deliveriesOf(handler))[2]?.state === 'delivered');
    const [, first, second] = await deliveriesOf(handler);
    expect([first.state, first.status, second.state, second.status]).toEqual(['dead', 500, 'delivered', 200]);
    expect(receiver.received.at(-1)?.body.data.map(({ data }: { data: { n: number } }) => data.n)).toEqual([2]);
    await remove(handler);
    await until(async () => (await rows.countDocuments({})) === 0);
  });

  test('are hidden from users who do not see the handler', async () => {
    const handler = await createHandler({ objects: [] });
    expect((await service.admin('GET', `handlers/${'0'.repeat(24)}/deliveries`)).status).toBe(404);
    expect((await service.admin('POST', `handlers/${handler._id}/deliveries/${'0'.repeat(24)}/retry`)).status).toBe(
      404,
    );
    expect((await service.admin('PUT', `handlers/${handler._id}/deliveries`)).status).toBe(405);
    await remove(handler);
  });
});

test('sends a signed test request and shows its answer', async () => {
  const handler = await createHandler({ objects: [] });
  receiver.answer = (_received, res) => void res.writeHead(418).end('a teapot');
  const { body } = await service.admin('POST', `handlers/${handler._id}/test`);
  expect(body).toMatchObject({ success: true, status: 418, answer: 'a teapot', error: null });
  expect(receiver.received[0]?.body.type).toBe('webhook-test');
  expect(() => verify(handler.secret, receiver.received[0] as never)).not.toThrow();
  await remove(handler);
});

test('signs with both secrets after a new one, which is shown once', async () => {
  const handler = await createHandler({ objects: [] });
  const { body } = await service.admin('POST', `handlers/${handler._id}/secret`);
  expect(body.secret).toMatch(/^whsec_/);
  await service.admin('POST', `handlers/${handler._id}/test`);
  for (const secret of [handler.secret, body.secret]) {
    expect(() => verify(secret, receiver.received[0] as never)).not.toThrow();
  }
  expect(JSON.stringify((await service.admin('GET', `handlers/${handler._id}`)).body)).not.toContain('whsec_');
  expect(service.logLines.join('')).not.toContain('whsec_');
  await remove(handler);
});
