/** Devices behind a real broker (Mosquitto): two instances share its messages, store each once, and send commands through it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import mqtt, { type MqttClient } from 'mqtt';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { freezeProcess } from '../support/freeze.js';
import { AUTH, createObject } from '../support/mqtt-device.js';
import { findFreePort } from '../support/ports.js';
import { until } from '../support/until.js';

const PROGRAM = ['mosquitto', '/usr/sbin/mosquitto'].find((name) => spawnSync(name, ['-h']).error === undefined);
const describeThere = PROGRAM === undefined ? describe.skip : describe;
if (PROGRAM === undefined) process.stderr.write('No mosquitto on this machine: the tests of brokers are skipped\n');

let folder: string;
let port: number;
let broker: ChildProcess;

async function startMosquitto(): Promise<void> {
  broker = spawn(PROGRAM as string, ['-c', join(folder, 'mosquitto.conf')], { stdio: 'ignore' });
  const answers = () =>
    new Promise<boolean>((resolve) => {
      const trial = mqtt.connect(`mqtt://127.0.0.1:${port}`, { reconnectPeriod: 0 });
      const end = (isThere: boolean) => {
        trial.end(true);
        resolve(isThere);
      };
      trial
        .once('connect', () => end(true))
        .once('error', () => end(false))
        .once('close', () => end(false));
    });
  await until(answers, 'mosquitto to answer');
}

describeThere('a bridge to Mosquitto', () => {
  const services: TestService[] = [];
  const clients: MqttClient[] = [];
  const first = (): TestService => services[0] as TestService;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'vigil-mosquitto-'));
    port = await findFreePort();
    await writeFile(join(folder, 'mosquitto.conf'), `listener ${port} 127.0.0.1\nallow_anonymous true\n`);
    await startMosquitto();
    const env = { MQTT_URL: `mqtt://127.0.0.1:${port}`, MQTT_PORT: '' };
    const uri = testUri();
    for (const name of ['a', 'b'])
      services.push(await startTestService({ env: { ...env, MQTT_CLIENT_ID: name } }, uri));
    await areConnected(1);
  });

  /** Returns when each instance has connected so often. */
  function areConnected(times: number): Promise<void> {
    const connects = (lines: readonly string[]) =>
      lines.filter((line) => line.includes('connected to the broker')).length;
    return until(() => services.every(({ logLines }) => connects(logLines) >= times), 'all instances to be connected');
  }

  afterEach(() => {
    for (const client of clients.splice(0)) client.end(true);
  });

  afterAll(async () => {
    for (const service of services.reverse()) await service.stop();
    broker.kill();
    await rm(folder, { recursive: true, force: true });
  });

  async function connect(): Promise<MqttClient> {
    const client = mqtt.connect(`mqtt://127.0.0.1:${port}`);
    clients.push(client);
    await new Promise<void>((resolve) => client.once('connect', () => resolve()));
    return client;
  }

  async function valuesOf(id: string): Promise<number[]> {
    const { body } = await first().admin('GET', `objects/${id}/packets`);
    return body.map(({ n }: { n: number }) => n).toSorted((a: number, b: number) => a - b);
  }

  test('stores each message of several devices once, by one of the instances', async () => {
    const ids = ['pump-1', 'pump-2', 'pump-3'];
    for (const id of ids) await first().admin('POST', 'objects', { id, name: id });
    const device = await connect();
    const numbers = Array.from({ length: 100 }, (_, at) => at);
    await Promise.all(
      ids.flatMap((id) => numbers.map((n) => device.publishAsync(`objects/${id}/base/state/n`, `${n}`, { qos: 1 }))),
    );
    const areStored = async () =>
      (await Promise.all(ids.map(valuesOf))).every((values) => values.length >= numbers.length);
    await until(areStored, 'all messages to be stored');
    for (const id of ids) expect(await valuesOf(id)).toEqual(numbers);
  });

  test('stores messages that devices publish after a restart of the broker', async () => {
    await first().admin('POST', 'objects', { id: 'pump-4', name: 'x' });
    const device = await connect();
    await device.publishAsync('objects/pump-4/base/state', '{"n":1}', { qos: 1 });
    await until(async () => (await valuesOf('pump-4')).length === 1);
    broker.kill('SIGKILL');
    await once(broker, 'exit');
    await startMosquitto();
    // An instance that reconnects later would send a command of the next test a second time.
    await areConnected(2);
    const again = await connect();
    let n = 2;
    await until(async () => {
      await again.publishAsync('objects/pump-4/base/state', `{"n":${n++}}`, { qos: 1 });
      return (await valuesOf('pump-4')).length >= 3;
    });
  });

  test('sends each command once to a device that has published, and stores its result', async () => {
    const { body } = await first().admin('POST', 'objects', { id: 'pump-5', name: 'x' });
    await first().admin('POST', 'objects/pump-5/commands/early');
    const device = await connect();
    const got: string[] = [];
    device.on('message', (topic, payload) => {
      got.push(topic);
      const { _id } = JSON.parse(payload.toString());
      device.publish(`objects/${body._id}/base/commands/${_id}/result`, '{"status":"done","result":7}', { qos: 1 });
    });
    await device.subscribeAsync('objects/pump-5/base/commands/+', { qos: 1 });
    await device.publishAsync('objects/pump-5/base/state', '{"n":1}', { qos: 1 });
    const statuses = async () =>
      (await first().admin('GET', `commands?where.object=${body._id}`)).body.map(
        ({ status }: { status: string }) => status,
      );
    await until(async () => (await statuses())[0] === 'done');
    await first().admin('POST', 'objects/pump-5/commands/late', { a: 1 });
    await until(async () => (await statuses())[1] === 'done');
    expect(got).toEqual(['objects/pump-5/base/commands/early', 'objects/pump-5/base/commands/late']);
  });

  test('sends commands that were created while the broker was down when it is up again', async () => {
    const { body } = await first().admin('POST', 'objects', { id: 'pump-20', name: 'x' });
    const device = await connect();
    await device.publishAsync('objects/pump-20/base/state', '{"n":1}', { qos: 1 });
    await until(async () => (await valuesOf('pump-20')).length === 1);
    broker.kill('SIGKILL');
    await once(broker, 'exit');
    await first().admin('POST', 'objects/pump-20/commands/stop');
    await first().settled();
    await startMosquitto();
    // As above: one that reconnects later would send the commands of later tests a second time.
    await areConnected(3);
    const isSent = async () =>
      (await first().admin('GET', `commands?where.object=${body._id}`)).body[0].status === 'delivered';
    await until(isSent, 'the command to be delivered');
  });

  test('keeps a command queued for a device that has never published', async () => {
    const { body } = await first().admin('POST', 'objects', { id: 'pump-6', name: 'x' });
    await first().admin('POST', 'objects/pump-6/commands/stop');
    await first().settled();
    const { body: commands } = await first().admin('GET', `commands?where.object=${body._id}`);
    expect(commands.map(({ status }: { status: string }) => status)).toEqual(['queued']);
  });

  test('stores messages that follow unknown topics and invalid payloads', async () => {
    await first().admin('POST', 'objects', { id: 'pump-7', name: 'x' });
    const device = await connect();
    for (const topic of [
      'objects/unknown/base/state',
      'objects/pump-7/else',
      'objects/pump-7',
      'objects/pump-7/base/state',
    ]) {
      await device.publishAsync(topic, 'no JSON', { qos: 1 });
    }
    await device.publishAsync('objects/pump-7/base/state', '{"n":1}', { qos: 1 });
    await until(async () => (await valuesOf('pump-7')).length === 1);
    // The other instance may have received the messages before it, and may be slower.
    const isLogged = () =>
      services.flatMap(({ logLines }) => logLines).some((line) => line.includes('message rejected'));
    await until(isLogged, 'the rejection to be in the log');
  });

  test.each([
    ['a control character', 'go\u0085'],
    ['a noncharacter', 'go\uffff'],
    ['a noncharacter of plane 1', 'go\u{1fffe}'],
  ])('sends the commands after one whose topic has %s, which no broker accepts', async (what, topic) => {
    const data = { children: [{ id: 'go', name: 'go', type: 'action', params: { topic } }] };
    const { body: model } = await first().admin('POST', 'models', { name: what, data });
    const odd = `odd ${what}`;
    const plain = `plain ${what}`;
    await first().admin('POST', 'objects', { id: odd, name: 'x', model: model._id });
    await first().admin('POST', 'objects', { id: plain, name: 'x' });
    const device = await connect();
    const got: string[] = [];
    device.on('message', (received) => void got.push(received));
    for (const id of [odd, plain]) {
      await device.subscribeAsync(`objects/${id}/base/commands/+`, { qos: 1 });
      await device.publishAsync(`objects/${id}/base/state`, '{"n":1}', { qos: 1 });
      await until(async () => (await valuesOf(id)).length === 1);
    }
    await first().admin('POST', `objects/${odd}/commands/go`);
    await first().admin('POST', `objects/${plain}/commands/go`);
    const expected = [odd, plain].map((id) => `objects/${id}/base/commands/go`);
    await until(() => got.length === 2);
    // The two instances share the commands: those of different objects have no order.
    expect(got.toSorted()).toEqual(expected.toSorted());
  });

  test('names an object by its `_id` in topics that cannot contain its id, and never another object', async () => {
    const make = async (id: string) => (await first().admin('POST', 'objects', { id, name: 'x' })).body._id as string;
    const plus = await make('pump+8');
    const victim = await make('pump-8');
    const former = [await make('pump-9'), await make('pump-10')] as const;
    const objects = first().client.db().collection('objects');
    for (const [at, id] of ['*', victim].entries()) {
      await objects.updateOne({ _id: new ObjectId(former[at]) }, { $set: { id } });
    }
    const topics: string[] = [];
    const device = await connect();
    device.on('message', (topic) => topics.push(topic));
    await device.subscribeAsync('objects/+/base/commands/+', { qos: 1 });
    // The id of no object.
    await device.publishAsync('objects/*/base/state', '{"n":9}', { qos: 1 });
    for (const id of [plus, ...former]) {
      await device.publishAsync(`objects/${id}/base/state`, '{"n":1}', { qos: 1 });
      await first().admin('POST', `objects/${id}/commands/go`);
    }
    await until(() => topics.length >= 3, 'all commands');
    expect(topics.toSorted()).toEqual([plus, ...former].map((id) => `objects/${id}/base/commands/go`).toSorted());
    for (const id of [plus, ...former]) expect(await valuesOf(id)).toEqual([1]);
    expect(await valuesOf(victim)).toEqual([]);
    // A broker ends a connection that publishes to a wildcard.
    expect(services.flatMap(({ logLines }) => logLines).join('')).not.toContain(
      'failed to send a command to the broker',
    );
  });

  test('stops while its broker is frozen', async () => {
    const one = await startTestService({ env: { MQTT_URL: `mqtt://127.0.0.1:${port}`, MQTT_PORT: '' } });
    await until(() => one.logLines.some((line) => line.includes('connected to the broker')));
    await freezeProcess(Number(broker.pid));
    try {
      await one.stop();
    } finally {
      broker.kill('SIGCONT');
    }
  });
});

describeThere('Mosquitto as a bridge that connects to the service', () => {
  let service: TestService;
  let home: string;
  let bridgePort: number;
  let bridge: ChildProcess | null = null;

  beforeAll(async () => {
    service = await startTestService();
    home = await mkdtemp(join(tmpdir(), 'vigil-mosquitto-'));
    bridgePort = await findFreePort();
  });

  afterAll(async () => {
    bridge?.kill();
    await service.stop();
    await rm(home, { recursive: true, force: true });
  });

  /** Starts Mosquitto with one connection to the service, as the device of an object. */
  async function startBridge(id: string): Promise<MqttClient> {
    const { host } = new URL(service.service.mqttUrl as string);
    const lines = [`listener ${bridgePort} 127.0.0.1`, 'allow_anonymous true', 'connection vigil', `address ${host}`];
    const own = [`remote_clientid ${id}`, `remote_username ${AUTH.username}`, `remote_password ${AUTH.password}`];
    await writeFile(
      join(home, 'mosquitto.conf'),
      [...lines, ...own, 'notifications false', 'topic base/# out 1', ''].join('\n'),
    );
    bridge = spawn(PROGRAM as string, ['-c', join(home, 'mosquitto.conf')], { stdio: 'ignore' });
    const client = mqtt.connect(`mqtt://127.0.0.1:${bridgePort}`, { reconnectPeriod: 50 });
    client.on('error', () => undefined);
    await until(() => client.connected, 'mosquitto to answer');
    return client;
  }

  test('stores every message although the bridge is killed after each', async () => {
    await createObject(service.admin, 'bridge-1');
    const doors = async (): Promise<unknown[]> =>
      (await service.admin('GET', 'objects/bridge-1/packets')).body.flatMap(
        ({ door }: { door?: string }) => door ?? [],
      );
    const sent: string[] = [];
    for (const door of ['closed', 'closed', 'open', 'closed', 'open', 'open']) {
      const client = await startBridge('bridge-1');
      sent.push(door);
      await client.publishAsync('base/state', JSON.stringify({ door }), { qos: 1 });
      await until(async () => (await doors()).length >= sent.length, `${sent.length} messages`);
      client.end(true);
      bridge?.kill('SIGKILL');
      await once(bridge as ChildProcess, 'exit');
    }
    expect(await doors()).toEqual(sent);
  });
});
