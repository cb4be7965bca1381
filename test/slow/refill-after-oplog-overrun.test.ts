/** The oplog forgets changes before an instance processed them: webhooks get all stored packets, clients a gap, devices their commands. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN, openListener } from '../support/fixture.js';
import { type Instance, startInstance } from '../support/instance.js';
import { endPartitionLeases } from '../support/leases.js';
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
  await until(() => broker.clients().length > 0, 'a client at the broker');
  broker.clients()[0]?.send('objects/tram/base/state', '{"n":1}');
  const hasReceived = async () => (await call(first(), 'GET', 'objects/tram/packets')).length > 0;
  await until(hasReceived, 'the first packet of the device behind the broker');
});

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  broker?.stop();
  await receiver?.stop();
  await client?.close();
  await set?.stop();
});

const start = (env: Record<string, string> = {}): Promise<Instance> =>
  startInstance(set.uri('vigil'), {
    mqtt: true,
    env: { WEBHOOK_NETWORKS: '127.0.0.1', ...env },
    // Only one that is frozen on purpose loses its partitions.
    limits: { partitionLeaseMs: 15_000 },
  });

async function call({ url }: Instance, method: string, path: string, body?: object) {
  const answer = await callApi(url, token, method, path, body);
  expect({ path, status: answer.status }).toEqual({ path, status: 200 });
  return answer.body;
}

/** Creates a handler of each mode; returns the paths of their messages. */
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

/** The keys that arrived for an object, without repetitions, in the order of their first arrivals. */
function keysAt(path: string, object: string): string[] {
  const bodies = receiver.received.filter((one) => one.path === path).map(({ body }) => body);
  const events = bodies.flatMap((body) => (body.type === 'batch' ? body.data : [body]));
  return [...new Set<string>(events.filter(({ data }) => data.id === object).map(({ data }) => data.key))];
}

async function startAgain(): Promise<void> {
  await endPartitionLeases(client.db());
  await first().start();
}

let sent = 0;

/** Stores a few packets of each object, with times that go back and forth; returns their keys by object. */
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

/** Stores packets of each object in large requests. */
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
      const arrived = new Set(keysAt(path, id));
      return wanted.every((key) => arrived.has(key));
    });
  const isAll = () => paths.every(isDelivered);
  // The missing keys say more than the time-out.
  await until(isAll, 'every packet to be delivered', 60_000, 50).catch(() => undefined);
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

/** The number of refilled partitions according to the security events. */
async function refilled(through: Instance): Promise<number> {
  const events: { fields: string[] }[] = await call(through, 'GET', 'audit?where.action=history refilled');
  const counts = events.map(({ fields }) => Number(/^partitions=(\d+)$/.exec(fields[1] ?? '')?.[1]));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Connects a device; returns the topics of the commands that it gets. */
async function connectWithCommands({ mqttUrl }: Instance, id: string): Promise<readonly string[]> {
  // An instance that was frozen may close the connection, because it no longer counts as the owner.
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

/** Makes the change streams of all instances fail, until the returned function is called. */
async function breakStreams(): Promise<() => Promise<unknown>> {
  const primary = await set.primary();
  const data = { failCommands: ['getMore'], appName: 'vigil', errorCode: HOST_UNREACHABLE };
  await primary.command({ configureFailPoint: 'failCommand', mode: 'alwaysOn', data });
  const end = () => primary.command({ configureFailPoint: 'failCommand', mode: 'off' });
  endings.push(end);
  return end;
}

/** Delays the next read of all handlers by an instance. */
async function delayHandlers(): Promise<void> {
  const data = { failCommands: ['find'], appName: 'vigil', namespace: 'vigil.handlers' };
  const blocked = { ...data, blockConnection: true, blockTimeMS: READING_MS };
  await (await set.primary()).command({ configureFailPoint: 'failCommand', mode: { times: 1 }, data: blocked });
}

test('sends packets that no instance had processed when the only one was killed', async () => {
  const paths = await createHandlers(first(), 'killed');
  const listener = await openListener(first().url, token);
  const before = await sendPackets(first(), 2);
  await expectDelivered(paths, before);
  await until(() => listener.received().length > 0, 'a live event');
  const since = listener.received().at(-1)?.position ?? '';
  listener.close();
  const restoreStreams = await breakStreams();
  const unprocessed = await sendPackets(first(), 20);
  await call(first(), 'POST', 'objects/car/commands/stop', {});
  await call(first(), 'POST', 'objects/tram/commands/ring', {});
  await first().kill();
  // A few may have been sent before.
  expect(paths.flatMap((path) => OBJECTS.flatMap((id) => keysAt(path, id))).length).toBeLessThan(50);
  await overrunOplog(client);
  await restoreStreams();
  await startAgain();
  await expectDelivered(paths, unprocessed);
  // The instance may acquire its partitions one after the other.
  const areRefilled = async () => (await refilled(first())) >= LIMITS.partitions;
  await until(areRefilled, 'the security events of all partitions', 60_000, 50);
  expect(await refilled(first())).toBe(LIMITS.partitions);
  expect(await metric('vigil_processing_refills_total')).toBeGreaterThan(0);
  const back = await openListener(first().url, token, { since });
  endings.push(() => back.close());
  const commands = await connectWithCommands(first(), 'car');
  await until(() => commands.length > 0, 'the command');
  expect(commands).toEqual(['base/commands/stop']);
  await until(() => sentToBroker('ring') > 0, 'the command at the broker');
  await until(() => back.received().length > 0, 'the gap');
  expect(back.received()[0]).toMatchObject({ name: 'gap', payload: { reason: 'history gone', from: since } });
  await expectDelivered(paths, await sendPackets(first(), 2));
});

test('sends every packet although the instance is killed during the refill', async () => {
  const paths = await createHandlers(first(), 'again');
  await expectDelivered(paths, await sendPackets(first(), 1));
  const restoreStreams = await breakStreams();
  const unprocessed = await sendLists(first(), 5, 100);
  await first().kill();
  await overrunOplog(client);
  await restoreStreams();
  await startAgain();
  const some = receiver.received.length + 20;
  await until(() => receiver.received.length > some, 'the first messages of the refill');
  await first().kill();
  await startAgain();
  await expectDelivered(paths, unprocessed);
});

test('sends packets that were stored while an instance was frozen, also to handlers that were created meanwhile', async () => {
  instances.push(await start());
  const [frozen, other] = instances as [Instance, Instance];
  const owners = async () => new Set(await client.db().collection('partitions').distinct('owner'));
  await until(async () => (await owners()).size === 2, 'both instances to own partitions');
  const paths = await createHandlers(frozen, 'frozen');
  await expectDelivered(paths, await sendPackets(frozen, 1));
  const commands = await connectWithCommands(frozen, 'truck');
  const already = await refilled(other);
  await frozen.freeze();
  endings.push(frozen.thaw);
  // The instance may receive the first change before it freezes.
  await sendPackets(other, 1);
  paths.push(...(await createHandlers(other, 'meanwhile')));
  const unprocessed = await sendPackets(other, 10);
  await call(other, 'POST', 'objects/truck/commands/stop', {});
  await call(other, 'POST', 'objects/tram/commands/halt', {});
  await overrunOplog(client);
  // The instance reads the handlers while it is late already.
  await delayHandlers();
  frozen.thaw();
  await expectDelivered(paths, unprocessed);
  await until(async () => (await refilled(other)) > already, 'the security event');
  await until(() => commands.length > 0, 'the command');
  expect(commands).toEqual(['base/commands/stop']);
  await until(() => sentToBroker('halt') > 0, 'the command at the broker');
  await expectDelivered(paths, await sendPackets(frozen, 1));
});
