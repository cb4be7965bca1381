/** Notifications when an instance dies between raising alarms and sending: the next one sends each, with the same id. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { endPartitionLeases } from '../support/leases.js';
import { useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

const OBJECTS = 12;
/**
 * An instance that is only a little late keeps its partitions. A write of the killed one may renew its leases after they were ended: they
 * must end well before this test ceases to wait.
 */
const limits = { partitionLeaseMs: 15_000 };
const receiver = useReceiver();
let instance: Instance;
let database: MongoClient;

beforeAll(async () => {
  const uri = testUri();
  instance = await startInstance(uri, { env: { WEBHOOK_NETWORKS: '127.0.0.1' }, limits });
  database = await new MongoClient(uri).connect();
});
afterAll(async () => {
  await instance?.stop();
  await database?.close();
});

/** How often each message has arrived. */
function countById(): Map<string, number> {
  const times = new Map<string, number>();
  for (const { id } of receiver.received) times.set(id, (times.get(id) ?? 0) + 1);
  return times;
}

const rowsOf = () => database.db().collection('notifications').find({}).toArray();

test('loses no message when its instance is killed, and repeats only those in flight, with the same id', async () => {
  const token = await logIn(instance.url, ADMIN);
  const call = async (method: string, path: string, body: object) => {
    const answer = await callApi(instance.url, token, method, path, body);
    expect([path, answer.status]).toEqual([path, 200]);
    return answer.body;
  };
  const { _id } = await call('PATCH', 'account', { channels: [{ ntfy: `${receiver.url}topic` }] });
  const then = [{ notify: { users: [_id] } }];
  await call('POST', 'rules', { name: 'Too warm', when: { param: 't', op: '>', value: 8 }, then });
  const ids = Array.from({ length: OBJECTS }, (_, index) => `object-${index}`);
  for (const id of ids) await call('POST', 'objects', { id, name: id });

  receiver.answer = () => undefined;
  await Promise.all(ids.map((id) => call('POST', `objects/${id}/packets`, { t: 9 })));
  await receiver.got(1);
  await instance.kill();
  await receiver.emptied();
  // The receiver has got these, and has not answered.
  const open = countById();
  await endPartitionLeases(database.db());
  receiver.answer = (_received, res) => void res.end('ok');
  await instance.start();

  await until(async () => {
    const rows = await rowsOf();
    return rows.length === OBJECTS && rows.every(({ state }) => state === 'sent');
  }, 'every message to be sent');
  const expected = (await rowsOf()).map(({ _id }) => [String(_id), (open.get(String(_id)) ?? 0) + 1]);
  expect([...countById()].sort()).toEqual(expected.sort());
});
