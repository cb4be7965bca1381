/** Alarms of objects whose gateway was offline: when it is back, those that are still raised are told, and no others. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { useReceiver } from '../support/receiver.js';
import { until } from '../support/until.js';

// The grace is the time for the test to tell that an object is back.
const limits = { gatewayWaitMs: 200, gatewayCheckMs: 300, gatewayGraceMs: 15_000 };
const receiver = useReceiver();
let instance: Instance;

beforeAll(async () => {
  instance = await startInstance(testUri(), { env: { WEBHOOK_NETWORKS: '127.0.0.1' }, limits });
});
afterAll(() => instance?.stop());

test('tells the alarms that are still raised after the gateway is back', async () => {
  const token = await logIn(instance.url, ADMIN);
  const call = async (method: string, path: string, body?: object) => {
    const answer = await callApi(instance.url, token, method, path, body);
    expect([path, answer.status]).toEqual([path, 200]);
    return answer.body;
  };
  const { _id } = await call('PATCH', 'account', { channels: [{ ntfy: `${receiver.url}topic` }] });
  const then = [{ notify: { users: [_id], text: '{{object.id}}' } }];
  await call('POST', 'rules', { name: 'Offline', when: { online: false }, select: { labels: ['child'] }, then });
  const gateway = await call('POST', 'objects', { id: 'gateway', name: 'Gateway' });
  for (const id of ['back', 'lost'])
    await call('POST', 'objects', { id, name: id, labels: ['child'], config: { parent: 'gateway' } });
  for (const id of ['gateway', 'back', 'lost']) await call('POST', `objects/${id}/packets`, { online: false });
  const suppressed = async () =>
    (await call('GET', `alarms?where.suppressedBy=${gateway._id}`)) as { status: string }[];
  await until(async () => (await suppressed()).length === 2, 'both alarms to be kept back');
  await call('POST', 'objects/gateway/packets', { online: true });
  await call('POST', 'objects/back/packets', { online: true });
  await until(() => receiver.received.length > 0, 'a message');
  expect(receiver.received.map(({ text }) => text.split('\n')[0])).toEqual(['lost']);
  expect((await suppressed()).map(({ status }) => status)).toEqual(['cleared']);
  await call('POST', 'objects/lost/packets', { online: true });
  await until(() => receiver.received.length > 1, 'its end');
  expect(receiver.received[1]?.text).toContain('Cleared');
});
