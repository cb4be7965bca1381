/** The oplog no longer contains the position of a client or of an instance: the client receives one gap, then new events. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { ADMIN, openListener, startTestService, type TestService } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { overrunOplog } from '../support/oplog.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

let set: ReplicaSet;
let service: TestService;
let instance: Instance;
let client: MongoClient;

beforeAll(async () => {
  set = await startReplicaSet({ members: 1, oplogMb: 5 });
  const uri = set.uri('vigil');
  service = await startTestService({}, uri);
  client = await new MongoClient(uri).connect();
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
});

afterAll(async () => {
  await instance?.stop();
  await service?.stop();
  await client?.close();
  await set?.stop();
});

test('sends one gap and then new events to a client whose position left the oplog', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const first = await service.listen(token);
  await service.admin('POST', 'objects/car/packets', { n: 1 });
  await until(() => first.received().length === 1, 'packet 1');
  const since = first.take()[0]?.position ?? '';
  first.close();
  await service.admin('POST', 'objects/car/packets', { n: 2 });
  await overrunOplog(client, service.settled);
  // An instance that ran before would have the last changes in memory.
  instance = await startInstance(set.uri('vigil'));
  const back = await openListener(instance.url, token, { since });
  await until(() => back.received().length > 0, 'a gap');
  await service.admin('POST', 'objects/car/packets', { n: 3 });
  await until(() => back.received().length > 1, 'packet 3');
  expect(back.take().map(({ name, payload }) => (name === 'gap' ? payload : payload.n))).toEqual([
    { reason: 'history gone', from: since },
    3,
  ]);
  // The first instance followed the oplog all the time.
  expect(service.logLines.filter((line) => line.includes('change stream cannot be resumed'))).toEqual([]);
  back.close();
});

test('closes the sockets of an instance whose position left the oplog; clients reconnect to one gap and then new events', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const first = await openListener(instance.url, token);
  const reasons: string[] = [];
  first.socket.on('disconnect', (reason) => reasons.push(reason));
  await service.admin('POST', 'objects/car/packets', { n: 4 });
  await until(() => first.received().length === 1, 'packet 4');
  await instance.freeze();
  // The instance may have received the first packet before it froze.
  for (const n of [5, 6]) {
    await service.admin('POST', 'objects/car/packets', { n });
    await overrunOplog(client);
  }
  instance.thaw();
  await until(() => !first.socket.connected, 'the socket to be closed');
  // A client does not reconnect after "io server disconnect".
  expect(reasons).toEqual(['transport close']);
  const received = first.take();
  expect([[4], [4, 5]]).toContainEqual(received.map(({ payload }) => payload.n));
  const since = received.at(-1)?.position ?? '';
  const back = await openListener(instance.url, token, { since });
  await until(() => back.received().length > 0, 'a gap');
  await service.admin('POST', 'objects/car/packets', { n: 7 });
  await until(() => back.received().length > 1, 'packet 7');
  expect(back.take().map(({ name, payload }) => (name === 'gap' ? payload : payload.n))).toEqual([
    { reason: 'history gone', from: since },
    7,
  ]);
  const isLogged = async () => (await instance.log()).includes('change stream cannot be resumed');
  await until(isLogged, 'the lost position to be logged');
  back.close();
});
