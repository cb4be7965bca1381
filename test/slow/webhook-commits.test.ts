/** A message that can be seen in the database before the service knows that it is stored is sent once. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createDeferred } from '../../src/platform/ops/lifecycle.js';
import { startTestService, type TestService } from '../support/fixture.js';
import { becomesLive, type Receiver, startReceiver } from '../support/receiver.js';
import { type Member, type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

let set: ReplicaSet;
let service: TestService;
let receiver: Receiver;

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  receiver = await startReceiver();
  service = await startTestService({ env: { WEBHOOK_NETWORKS: '127.0.0.1', OPS_PORT: '0' } }, set.uri('vigil'));
  await becomesLive(service);
});

afterAll(async () => {
  await service?.stop();
  await receiver?.stop();
  await set?.stop();
});

/** Transactions are committed, and the service is told so only once this has ended. */
async function withoutAnswers(member: Member, act: () => Promise<void>): Promise<void> {
  const configureFailPoint = 'failCommand';
  // A write concern that timed out: the driver asks again, and keeps its connections.
  const writeConcernError = { code: 64, errmsg: 'not answered in a test' };
  const data = { failCommands: ['commitTransaction'], appName: 'vigil', writeConcernError };
  await member.command({ configureFailPoint, mode: 'alwaysOn', data });
  try {
    await act();
  } finally {
    await member.command({ configureFailPoint, mode: 'off' });
  }
}

test('sends a message once that is read before its commit is answered', async () => {
  await service.admin('POST', 'handlers', { url: receiver.url, events: ['object-packet'] });
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
  await service.settled();
  const numbers = () => receiver.received.map(({ body }) => body.data.n);
  const rows = () => service.client.db().collection('deliveries').countDocuments({ state: 'pending' });
  // The first message fails; it is read again, and with it the second one.
  const [answered, answer] = createDeferred<void>();
  let isSecondStored = false;
  receiver.answer = (_, res) => {
    if (!isSecondStored) res.writeHead(500).end();
    else void answered.then(() => res.end());
  };
  await service.admin('POST', 'objects/car/packets', { n: 0 });
  await receiver.got(1);
  await withoutAnswers(await set.primary(), async () => {
    await service.admin('POST', 'objects/car/packets', { n: 1 });
    await until(async () => (await rows()) === 2, 'the second message to be stored');
    isSecondStored = true;
    await receiver.got(receiver.received.length + 1);
  });
  answer();
  await until(() => numbers().includes(1), 'the second message');
  await service.admin('POST', 'objects/car/packets', { n: 2 });
  await until(() => numbers().includes(2), 'the third message');
  await until(async () => (await rows()) === 0, 'all results to be stored');
  expect(numbers().filter((n) => n > 0)).toEqual([1, 2]);
});
