/** The database's log is short, and what was to be told is no longer in it: one gap says so, and then comes the present. */
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
}, 120_000);

afterAll(async () => {
  await instance?.stop();
  await service?.stop();
  await client?.close();
  await set?.stop();
}, 60_000);

test('a client that was away too long hears of one gap, and then the present', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const first = await service.listen(token);
  await service.admin('POST', 'objects/car/packets', { n: 1 });
  await until(() => first.received().length === 1);
  const since = first.take()[0]?.position ?? '';
  first.close();
  await service.admin('POST', 'objects/car/packets', { n: 2 });
  await overrunOplog(client);
  // One that was there has what came last in its memory.
  instance = await startInstance(set.uri('vigil'));
  const back = await openListener(instance.url, token, { since });
  await until(() => back.received().length > 0);
  await service.admin('POST', 'objects/car/packets', { n: 3 });
  await until(() => back.received().length > 1);
  expect(back.take().map(({ name, payload }) => (name === 'gap' ? payload : payload.n))).toEqual([
    { reason: 'history gone', from: since },
    3,
  ]);
  // The one that was there all the time missed nothing, since its instance did not.
  expect(service.logLines.filter((line) => line.includes('change stream cannot be resumed'))).toEqual([]);
  back.close();
}, 120_000);

test('an instance that slept too long ends its sockets; they come back to one gap, and then the present', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const first = await openListener(instance.url, token);
  const reasons: string[] = [];
  first.socket.on('disconnect', (reason) => reasons.push(reason));
  await service.admin('POST', 'objects/car/packets', { n: 4 });
  await until(() => first.received().length === 1);
  await instance.freeze();
  // The first may have been on its way already.
  for (const n of [5, 6]) {
    await service.admin('POST', 'objects/car/packets', { n });
    await overrunOplog(client);
  }
  instance.thaw();
  await until(() => !first.socket.connected, 'the socket to be ended', 30_000);
  // Had it been told that the server disconnects it, the client would stay away.
  expect(reasons).toEqual(['transport close']);
  const received = first.take();
  expect([[4], [4, 5]]).toContainEqual(received.map(({ payload }) => payload.n));
  const since = received.at(-1)?.position ?? '';
  const back = await openListener(instance.url, token, { since });
  await until(() => back.received().length > 0);
  await service.admin('POST', 'objects/car/packets', { n: 7 });
  await until(() => back.received().length > 1);
  expect(back.take().map(({ name, payload }) => (name === 'gap' ? payload : payload.n))).toEqual([
    { reason: 'history gone', from: since },
    7,
  ]);
  // Lines are gathered for a moment before they are written.
  await until(async () => (await instance.log()).includes('change stream cannot be resumed'));
  back.close();
}, 120_000);
