/** Where the oplog no longer reaches back to what was processed last, webhooks get the stored packets. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Binary, ObjectId } from 'mongodb';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { becomesLive, type Receiver, startReceiver, verify } from '../support/receiver.js';
import { until } from '../support/until.js';

const uri = testUri();
const env = { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' };
let receiver: Receiver;
let service: TestService;
beforeAll(async () => {
  receiver = await startReceiver();
  service = await startTestService({ env }, uri);
  await becomesLive(service);
});
afterAll(async () => {
  await service.stop();
  await receiver.stop();
});

const partitions = () => service.client.db().collection('partitions');
const numbers = () => receiver.received.map(({ body }) => body.data.n);

/** The position of another second: the server knows nothing of it. */
function moveBack(position: string, seconds: number): string {
  const bytes = Buffer.from(position, 'base64url');
  bytes.writeUInt32BE(bytes.readUInt32BE(1) - seconds, 1);
  return bytes.toString('base64url');
}

/** As if the packet had come while no instance ran. */
async function storePacket(n: number, stampMs: number) {
  const packets = service.client.db().collection('packets');
  const stored = await packets.findOne({ n: 0 });
  const key = Buffer.concat([new ObjectId().id, new ObjectId(String(stored?._oid)).id]);
  const fresh = { _id: new Binary(key, 0x80), _ts: stampMs * 1_000, time: stampMs, n };
  await packets.insertOne({ ...stored, ...fresh } as object);
}

test('sends the packets since the last position, in order and once, and says so', async () => {
  const { body: object } = await service.admin('POST', 'objects', { id: 'refilled', name: 'x' });
  const { body: handler } = await service.admin('POST', 'handlers', { url: receiver.url, objects: [object._id] });
  await service.settled();
  await service.admin('POST', `objects/${object._id}/packets`, { n: 0 });
  await receiver.got(1);
  const before = service;
  await before.service.stop();
  const now = Date.now();
  for (const n of [3, 1, 2]) await storePacket(n, now + n);
  // Before the handler was there.
  await storePacket(99, Number(handler.time) - 5_000);
  for (const { _id, position } of await partitions().find().toArray()) {
    await partitions().updateOne({ _id }, { $set: { position: moveBack(position, 90_000) } });
  }
  service = await startTestService({ env }, uri);
  await until(() => numbers().includes(3));
  await service.settled();
  await service.admin('POST', `objects/${object._id}/packets`, { n: 4 });
  await until(() => numbers().includes(4));
  // The one that was sent before may come twice: it was stamped within the margin.
  expect(numbers().filter((n) => n !== 0)).toEqual([1, 2, 3, 4]);
  const refilled = receiver.received.find(({ body }) => body.data.n === 2);
  expect(refilled?.body).not.toHaveProperty('position');
  expect(() => verify(handler.secret, refilled as never)).not.toThrow();
  await until(async () => {
    const { body } = await service.admin('GET', 'audit?where.action=history refilled');
    return body.length === 1;
  });
  const { body: events } = await service.admin('GET', 'audit?where.action=history refilled');
  expect(events[0].fields).toEqual([expect.stringMatching(/^from=2/), 'partitions=16']);
  await before.client.close();
});

test('does not send again what the refill before has sent', async () => {
  receiver.received.length = 0;
  const before = service;
  await before.service.stop();
  for (const { _id, position } of await partitions().find().toArray()) {
    await partitions().updateOne({ _id }, { $set: { position: moveBack(position, 90_000) } });
  }
  await storePacket(5, Date.now());
  service = await startTestService({ env }, uri);
  await until(() => numbers().includes(5));
  // What was sent live has another id, and may come again; what the refill made is known.
  expect(numbers().filter((n) => [1, 2, 3].includes(n))).toEqual([]);
  await before.client.close();
});

test('refills only the partitions whose history is gone; the others read theirs', async () => {
  receiver.received.length = 0;
  const { body: objects } = await service.admin('GET', 'objects?only=_id');
  const others: string[] = [];
  for (let n = 0; n < 24; n++) {
    others.push((await service.admin('POST', 'objects', { id: `refilled-${n}`, name: 'x' })).body._id);
  }
  const { body: handler } = await service.admin('POST', 'handlers', { url: receiver.url, objects: others });
  await service.settled();
  const before = service;
  await before.service.stop();
  for (const { _id, position } of await partitions().find().toArray()) {
    if (Number(_id) % 2 === 0)
      await partitions().updateOne({ _id }, { $set: { position: moveBack(position, 90_000) } });
  }
  const packets = service.client.db().collection('packets');
  const stored = await packets.findOne({ _oid: new ObjectId(objects[0]._id as string) });
  for (const id of others) {
    const _id = new Binary(Buffer.concat([new ObjectId().id, new ObjectId(id).id]), 0x80);
    const _ts = Date.now() * 1_000;
    await packets.insertOne({ ...stored, _id, _oid: new ObjectId(id), _ts, time: _ts / 1_000, n: 7 } as object);
  }
  service = await startTestService({ env }, uri);
  const sentTo = () => receiver.received.filter(({ body }) => body.data.n === 7).map(({ body }) => body.data._oid);
  await until(() => new Set(sentTo()).size === others.length);
  expect(sentTo().sort()).toEqual(others.sort());
  const ways = receiver.received.filter(({ body }) => body.data.n === 7).map(({ body }) => 'position' in body);
  expect(new Set(ways)).toEqual(new Set([true, false]));
  await until(async () => {
    const { body } = await service.admin('GET', 'audit?where.action=history refilled');
    return body.at(-1)?.fields.includes('partitions=8');
  });
  await service.admin('DELETE', `handlers/${handler._id}`);
  await before.client.close();
});
