/** Events of the past are sent to a webhook on request: after a position, or the packets of an interval. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { useReceiver, useWebhooks, verify } from '../support/receiver.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { webhookReplayCheckMs: 50, webhookReplayAhead: 20, historyPage: 30, partitionTickMs: 200 });
const service = useService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' } });
const receiver = useReceiver();
const { createObject, createHandler, remove } = useWebhooks(service, receiver);

const START_MS = 1_600_000_000_000;
const replay = ({ _id }: { _id: string }, body: object) => service.admin('POST', `handlers/${_id}/replay`, body);
const store = (object: { _id: string }, numbers: readonly number[]) =>
  service.admin(
    'POST',
    `objects/${object._id}/packets`,
    numbers.map((n) => ({ n, time: START_MS + n })),
  );
const upTo = (end: number) => Array.from({ length: end }, (_, n) => n);
const numbersOf = ({ _id }: { _id: string }) =>
  receiver.received.filter(({ body }) => body.data._oid === _id).map(({ body }) => body.data.n);
const endsOf = async ({ _id }: { _id: string }) =>
  (await service.admin('GET', `audit?where.entity=${_id}&where.action=webhook replayed`)).body;

describe('the packets of an interval', () => {
  test('are sent to a new handler, each object in order of time, and the end is recorded', async () => {
    const one = await createObject();
    const two = await createObject();
    const other = await createObject();
    await store(one, upTo(100).reverse());
    await store(two, upTo(45));
    await store(other, [1]);
    const handler = await createHandler({ objects: [one._id, two.id] });
    const { body } = await replay(handler, { from: START_MS + 5, to: START_MS + 94 });
    expect(body).toEqual({
      handler: handler._id,
      from: START_MS + 5,
      to: START_MS + 94,
      status: 'queued',
      success: true,
    });
    await receiver.got(130);
    expect(numbersOf(one)).toEqual(upTo(95).slice(5));
    expect(numbersOf(two)).toEqual(upTo(45).slice(5));
    expect(numbersOf(other)).toEqual([]);
    expect(() => verify(handler.secret, receiver.received[0] as never)).not.toThrow();
    await until(async () => (await endsOf(handler)).length === 1);
    expect((await endsOf(handler))[0].fields).toContain('messages=130');
    // Asked for again, they are sent again.
    receiver.received.length = 0;
    await replay(handler, { from: new Date(START_MS + 44).toISOString(), to: START_MS + 44 });
    await receiver.got(2);
    const ids = receiver.received.map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    await remove(handler);
  });

  test('are no more than the handler selects, and its owner sees', async () => {
    const labelled = await createObject({ labels: ['cold'] });
    const plain = await createObject();
    for (const object of [labelled, plain]) await store(object, [1, 2]);
    const handler = await createHandler({ labels: ['cold'], only: ['n'], events: ['object-packet', 'online'] });
    await replay(handler, { from: START_MS, to: START_MS + 10 });
    await until(async () => (await endsOf(handler)).length === 1);
    await receiver.got(2);
    expect(receiver.received.map(({ body }) => [body.data._oid, body.data.n])).toEqual([
      [labelled._id, 1],
      [labelled._id, 2],
    ]);
    await remove(handler);
  });

  test('wait for a receiver that fails, and new events do not wait for them', async () => {
    const object = await createObject();
    await store(object, upTo(90));
    const handler = await createHandler({ objects: [object._id] });
    const taken: number[] = [];
    // Refuses all that is replayed until it has the new one.
    receiver.answer = (received, res) => {
      const { n } = received.body.data;
      if (taken.length === 0 && n !== 1_000) return void res.writeHead(500).end();
      taken.push(n);
      res.end();
    };
    await replay(handler, { from: START_MS, to: START_MS + 89 });
    const rows = () => service.client.db().collection('deliveries').countDocuments({ state: 'pending' });
    await until(async () => (await rows()) >= 20);
    expect((await replay(handler, { from: 1 })).status).toBe(409);
    expect(await rows()).toBeLessThan(60);
    await store(object, [1_000]);
    // Where the second try came before the new event, the third one comes seconds later.
    await until(async () => (await endsOf(handler)).length === 1, 'the end of the replay');
    await until(() => new Set(taken).size === 91, 'all of them');
    expect(taken).toEqual([1_000, ...upTo(90)]);
    await remove(handler);
  });
});

test('sends all events after a position', async () => {
  const object = await createObject();
  const first = await createHandler({ objects: [object._id] });
  await store(object, [0]);
  const seen = (await receiver.got(1))[0]?.body;
  await service.admin('PATCH', `objects/${object._id}`, { status: 'open' });
  await store(object, [1, 2]);
  await receiver.got(4);
  receiver.received.length = 0;
  const later = await createHandler({ objects: [object._id] });
  await remove(first);
  await replay(later, { since: seen.position });
  await receiver.got(3);
  expect(receiver.received.map(({ body }) => body.type)).toEqual(['object-update', 'object-packet', 'object-packet']);
  expect(numbersOf(object)).toEqual([1, 2]);
  await until(async () => (await endsOf(later)).length === 1);
  expect((await endsOf(later))[0].fields).toEqual([`since=${seen.position}`, 'messages=3']);
  // An event of this second at another time: the server knows nothing of it.
  const lost = Buffer.from(seen.position, 'base64url');
  lost.writeUInt32BE(lost.readUInt32BE(1) - 90_000, 1);
  const refused = await replay(later, { since: lost.toString('base64url') });
  expect([refused.status, refused.body.helper.message]).toEqual([400, expect.stringMatching(/^since: the history/)]);
  await remove(later);
});

describe('a replay', () => {
  test.each([
    [{}, 'from'],
    [{ from: 'x' }, 'from'],
    [{ from: 5, to: 4 }, 'from'],
    [{ from: 1, to: {} }, 'to'],
    [{ from: 20261123 }, 'from'],
    [{ from: '1795500000' }, 'from'],
    [{ from: 1, to: 1795500000 }, 'to'],
    [{ since: 'x' }, 'since'],
    [{ since: 'gmcAAAAA', from: 1 }, 'since'],
  ])('refuses %j with a 400 that names the field', async (body, field) => {
    const handler = await createHandler();
    const answer = await replay(handler, body);
    expect([answer.status, answer.body.helper?.message.split(':')[0]]).toEqual([400, field]);
    await remove(handler);
  });

  test('refuses a handler that is not a webhook', async () => {
    const { body } = await service.admin('POST', 'handlers', { name: 'a script', userCode: 'x' });
    expect((await replay(body, { from: 1 })).status).toBe(409);
  });
});
