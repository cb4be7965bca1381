/** The oplog forgets what nobody has processed yet: webhooks get what is stored, listeners a gap, devices their commands. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { LIMITS } from '../../src/model/limits.js';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN, openListener } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { startTestBroker, type TestBroker } from '../support/mqtt-broker.js';
import { AUTH, connectDevice } from '../support/mqtt-device.js';
import { overrunOplog } from '../support/oplog.js';
import { findFreePort } from '../support/ports.js';
import { type Receiver, startReceiver } from '../support/receiver.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

/** The device of the last one is behind a broker. */
const OBJECTS = ['car', 'truck', 'tram'];
const HOST_UNREACHABLE = 6;
const READING_MS = 2_000;
const DELIVERED_MS = 60_000;

let set: ReplicaSet;
let client: MongoClient;
let token: string;
let receiver: Receiver;
let broker: TestBroker;
let opsUrl: string;
const instances: Instance[] = [];
const endings: (() => unknown)[] = [];
const first = (): Instance => instances[0] as Instance;

beforeAll(async () => {
  set = await startReplicaSet({ members: 1, oplogMb: 5 });
  client = await new MongoClient(set.uri('vigil')).connect();
  receiver = await startReceiver();
  broker = await startTestBroker();
  const opsPort = String(await findFreePort());
  opsUrl = `http://127.0.0.1:${opsPort}`;
  instances.push(await start({ OPS_PORT: opsPort, MQTT_URL: broker.url }));
  token = await logIn(first().url, ADMIN);
  for (const id of OBJECTS) await call(first(), 'POST', 'objects', { id, name: id, config: { auth: AUTH } });
  await until(() => broker.clients().length > 0, 'the broker to have clients');
  broker.clients()[0]?.send('objects/tram/base/state', '{"n":1}');
  const hasReceived = async () => (await call(first(), 'GET', 'objects/tram/packets')).length > 0;
  await until(hasReceived, 'the device behind the broker to be known');
}, 120_000);

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

afterAll(async () => {
  for (const instance of instances) await instance.stop();
  broker?.stop();
  await receiver?.stop();
  await client?.close();
  await set?.stop();
}, 60_000);

const start = (env: Record<string, string> = {}): Promise<Instance> =>
  startInstance(set.uri('vigil'), { mqtt: true, env: { WEBHOOK_NETWORKS: '127.0.0.1', ...env } });

async function call({ url }: Instance, method: string, path: string, body?: object) {
  const answer = await callApi(url, token, method, path, body);
  expect({ path, status: answer.status }).toEqual({ path, status: 200 });
  return answer.body;
}

/** A handler of each mode; gives the paths under which their receivers get messages. */
async function createHandlers(through: Instance, name: string): Promise<string[]> {
  const paths: string[] = [];
  for (const mode of ['object', 'batch']) {
    const path = `${name}-${mode}`;
    const { _id } = await call(through, 'POST', 'handlers', {
      mode,
      url: receiver.url + path,
      events: ['object-packet'],
      objects: OBJECTS,
    });
    paths.push(`/${path}`);
    endings.push(() => call(first(), 'DELETE', `handlers/${_id}`));
  }
  return paths;
}

/** The keys that came for an object, without repetitions, in the order of their first arrivals. */
function keysAt(path: string, object: string): string[] {
  const bodies = receiver.received.filter((one) => one.path === path).map(({ body }) => body);
  const events = bodies.flatMap((body) => (body.type === 'batch' ? body.data : [body]));
  return [...new Set<string>(events.filter(({ data }) => data.id === object).map(({ data }) => data.key))];
}

let sent = 0;

/** Sends a few packets of each object, with times that go back and forth; gives their keys by object, when all are stored. */
async function sendPackets(through: Instance, count: number): Promise<ReadonlyMap<string, string[]>> {
  const keys = new Map<string, string[]>(OBJECTS.map((id) => [id, []]));
  for (let at = 0; at < count; at++) {
    for (const id of OBJECTS) {
      const key = `${id}-${++sent}`;
      await call(through, 'POST', `objects/${id}/packets`, { key, time: Date.now() - (at % 3) * 60_000 });
      keys.get(id)?.push(key);
    }
  }
  return keys;
}

/** The same in large requests. */
async function sendLists(through: Instance, lists: number, packets: number): Promise<ReadonlyMap<string, string[]>> {
  const keys = new Map<string, string[]>(OBJECTS.map((id) => [id, []]));
  for (let list = 0; list < lists; list++) {
    for (const id of OBJECTS) {
      const some = Array.from({ length: packets }, () => `${id}-${++sent}`);
      await call(
        through,
        'POST',
        `objects/${id}/packets`,
        some.map((key) => ({ key })),
      );
      keys.get(id)?.push(...some);
    }
  }
  return keys;
}

async function expectDelivered(paths: readonly string[], keys: ReadonlyMap<string, string[]>): Promise<void> {
  const isDelivered = (path: string): boolean =>
    [...keys].every(([id, wanted]) => {
      const came = new Set(keysAt(path, id));
      return wanted.every((key) => came.has(key));
    });
  const isAll = () => paths.every(isDelivered);
  await until(isAll, 'every packet to be delivered', DELIVERED_MS, 100).catch(() => undefined);
  for (const path of paths) {
    for (const [id, wanted] of keys) {
      const expected = new Set(wanted);
      expect({ path, keys: keysAt(path, id).filter((key) => expected.has(key)) }).toEqual({ path, keys: wanted });
    }
  }
}

const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
};

/** How many partitions were refilled, as the security events say. */
async function refilled(through: Instance): Promise<number> {
  const events: { fields: string[] }[] = await call(through, 'GET', 'audit?where.action=history refilled');
  const counts = events.map(({ fields }) => Number(/^partitions=(\d+)$/.exec(fields[1] ?? '')?.[1]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Connects a device; gives the topics of the commands that it gets. */
async function connectWithCommands({ mqttUrl }: Instance, id: string): Promise<readonly string[]> {
  // Its connection may be ended: an instance that was silent for long no longer counts as the one that has it.
  const device = await connectDevice(mqttUrl, id, { reconnectPeriod: 200 });
  endings.push(() => device.endAsync(true));
  const topics: string[] = [];
  device.on('message', (topic) => topics.push(topic));
  await device.subscribeAsync('base/commands/#', { qos: 1 });
  return topics;
}

/** The commands of this name that were sent to the broker. */
const sentToBroker = (command: string): number =>
  broker
    .clients()
    .flatMap(({ published }) => published)
    .filter(({ topic }) => topic === `objects/tram/base/commands/${command}`).length;

/** What the instances store from now on, none of them sees. */
async function blind(): Promise<() => Promise<unknown>> {
  const primary = await set.primary();
  const data = { failCommands: ['getMore'], appName: 'vigil', errorCode: HOST_UNREACHABLE };
  await primary.command({ configureFailPoint: 'failCommand', mode: 'alwaysOn', data });
  const end = () => primary.command({ configureFailPoint: 'failCommand', mode: 'off' });
  endings.push(end);
  return end;
}

/** The next time that an instance reads all handlers takes long. */
async function delayHandlers(): Promise<void> {
  const data = { failCommands: ['find'], appName: 'vigil', namespace: 'vigil.handlers' };
  const blocked = { ...data, blockConnection: true, blockTimeMS: READING_MS };
  await (await set.primary()).command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data: blocked });
}

test('sends what was stored before the only instance was killed, and nobody had seen', async () => {
  const paths = await createHandlers(first(), 'killed');
  const listener = await openListener(first().url, token);
  const before = await sendPackets(first(), 2);
  await expectDelivered(paths, before);
  await until(() => listener.received().length > 0, 'a live event');
  const since = listener.received().at(-1)?.position ?? '';
  listener.close();
  const see = await blind();
  const unseen = await sendPackets(first(), 20);
  await call(first(), 'POST', 'objects/car/commands/stop', {});
  await call(first(), 'POST', 'objects/tram/commands/ring', {});
  await first().kill();
  // A few may have been on their way.
  expect(paths.flatMap((path) => OBJECTS.flatMap((id) => keysAt(path, id))).length).toBeLessThan(50);
  await overrunOplog(client);
  await see();
  await first().start();
  await expectDelivered(paths, unseen);
  // It may get its partitions one after the other.
  const isTold = async () => (await refilled(first())) >= LIMITS.partitions;
  await until(isTold, 'the security events of all partitions', 30_000, 100);
  expect(await refilled(first())).toBe(LIMITS.partitions);
  expect(await metric('vigil_processing_refills_total')).toBeGreaterThan(0);
  const back = await openListener(first().url, token, { since });
  endings.push(() => back.close());
  const commands = await connectWithCommands(first(), 'car');
  await until(() => commands.length > 0, 'the command');
  expect(commands).toEqual(['base/commands/stop']);
  await until(() => sentToBroker('ring') > 0, 'the command for the broker');
  await until(() => back.received().length > 0, 'the gap');
  expect(back.received()[0]).toMatchObject({ name: 'gap', payload: { reason: 'history gone', from: since } });
  await expectDelivered(paths, await sendPackets(first(), 2));
}, 200_000);

test('sends everything when the instance is killed again while it reads what is stored', async () => {
  const paths = await createHandlers(first(), 'again');
  await expectDelivered(paths, await sendPackets(first(), 1));
  const see = await blind();
  const unseen = await sendLists(first(), 5, 100);
  await first().kill();
  await overrunOplog(client);
  await see();
  await first().start();
  const some = receiver.received.length + 20;
  await until(() => receiver.received.length > some, 'the first of them', DELIVERED_MS);
  await first().kill();
  await first().start();
  await expectDelivered(paths, unseen);
}, 200_000);

test('sends what was stored while an instance was frozen, also to handlers that were created meanwhile', async () => {
  instances.push(await start());
  const [frozen, other] = instances as [Instance, Instance];
  const owners = async () => new Set(await client.db().collection('partitions').distinct('owner'));
  await until(async () => (await owners()).size === 2, 'both to own partitions', 30_000, 50);
  const paths = await createHandlers(frozen, 'frozen');
  await expectDelivered(paths, await sendPackets(frozen, 1));
  const commands = await connectWithCommands(frozen, 'truck');
  const already = await refilled(other);
  await frozen.freeze();
  endings.push(frozen.thaw);
  // The first change may be on its way to it.
  await sendPackets(other, 1);
  paths.push(...(await createHandlers(other, 'meanwhile')));
  const unseen = await sendPackets(other, 10);
  await call(other, 'POST', 'objects/truck/commands/stop', {});
  await call(other, 'POST', 'objects/tram/commands/halt', {});
  await overrunOplog(client);
  // It reads them while it is late already.
  await delayHandlers();
  frozen.thaw();
  await expectDelivered(paths, unseen);
  await until(async () => (await refilled(other)) > already, 'the security event', 30_000, 100);
  await until(() => commands.length > 0, 'the command');
  expect(commands).toEqual(['base/commands/stop']);
  await until(() => sentToBroker('halt') > 0, 'the command for the broker');
  await expectDelivered(paths, await sendPackets(frozen, 1));
}, 200_000);
