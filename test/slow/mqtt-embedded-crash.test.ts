/** The database, or the service, dies under devices that publish: what they were acknowledged is stored, and stored once. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import mqtt, { type MqttClient } from 'mqtt';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN } from '../support/fixture.js';
import { AUTH } from '../support/mqtt-device.js';
import { findFreePort } from '../support/ports.js';
import { type Program, SERVICE, startProgram, waitForOutput } from '../support/program.js';
import { until } from '../support/until.js';

const DEVICES = 5;
const PER_SECOND = 100;
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function startChild(env: NodeJS.ProcessEnv): Promise<{ program: Program; url: string }> {
  const program = startProgram(SERVICE, env);
  // With its database, which would go on writing into the folder that is removed next.
  endings.push(() => program.end('SIGTERM'));
  return { program, url: await waitForOutput(program, /running at (\S+)/, 60_000) };
}

interface Stream {
  readonly acknowledged: Set<string>;
  stop(): Promise<void>;
}

/** Devices that publish 500 messages a second in all, and come back and send again what was not acknowledged. */
function startStream(port: number): Stream {
  const acknowledged = new Set<string>();
  const pending = new Set<Promise<unknown>>();
  const clients: MqttClient[] = [];
  const timers: NodeJS.Timeout[] = [];
  for (let at = 0; at < DEVICES; at++) {
    const clientId = `device-${at}`;
    const options = { ...AUTH, clientId, reconnectPeriod: 1_000, clean: at % 2 === 0, keepalive: 5 };
    const client = mqtt.connect(`mqtt://127.0.0.1:${port}`, options);
    client.on('error', () => undefined);
    clients.push(client);
    let n = 0;
    const publish = (): void => {
      const key = `${clientId}/${++n}`;
      const sending = client.publishAsync('base/state', JSON.stringify({ key }), { qos: 1 }).then(
        () => acknowledged.add(key),
        () => undefined,
      );
      pending.add(sending);
      void sending.then(() => pending.delete(sending));
    };
    timers.push(setInterval(publish, 1_000 / PER_SECOND));
  }
  return {
    acknowledged,
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await until(() => pending.size === 0, 'all to be acknowledged', 60_000);
      for (const client of clients) client.end(true);
    },
  };
}

async function prepare(): Promise<{ env: NodeJS.ProcessEnv; port: number; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-mqtt-'));
  endings.push(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const port = await findFreePort();
  const { MONGODB_URI: _, ...inherited } = process.env;
  const ours = { PORT: '0', MQTT_PORT: String(port), DATA_DIR: folder, LOG_FORMAT: 'json', LOG_LEVEL: 'warn' };
  const env = { ...inherited, ...ours, STOP_DELAY: '0', ADMIN_LOGIN: ADMIN.login, ADMIN_PASSWORD: ADMIN.password };
  return { env, port, folder };
}

async function createObjects(url: string): Promise<string> {
  const token = await logIn(url, ADMIN);
  for (let at = 0; at < DEVICES; at++) {
    await callApi(url, token, 'POST', 'objects', { id: `device-${at}`, name: 'x', config: { auth: AUTH } });
  }
  return token;
}

async function expectStored(url: string, token: string, acknowledged: ReadonlySet<string>): Promise<void> {
  const stored: string[] = [];
  for (let at = 0; at < DEVICES; at++) {
    const { body: packets } = await callApi(url, token, 'GET', `objects/device-${at}/packets`);
    stored.push(...packets.flatMap(({ key }: { key?: string }) => key ?? []));
  }
  const kept = new Set(stored);
  expect([...acknowledged].filter((key) => !kept.has(key))).toEqual([]);
  expect(stored.length).toBe(kept.size);
}

test('the database killed under them', async () => {
  const { env, port, folder } = await prepare();
  const { url } = await startChild(env);
  const token = await createObjects(url);
  const stream = startStream(port);
  await until(() => stream.acknowledged.size > 500, 'the stream to run', 30_000);
  const mongod = Number(await readFile(join(folder, 'mongodb', 'data', 'mongod.lock'), 'utf8'));
  process.kill(mongod, 'SIGKILL');
  const before = stream.acknowledged.size;
  await until(() => stream.acknowledged.size > before + 500, 'the stream to go on', 30_000);
  await stream.stop();
  await expectStored(url, token, stream.acknowledged);
}, 240_000);

test('the service killed under them: they come back to the next one, and send again what it did not acknowledge', async () => {
  const { env, port } = await prepare();
  const first = await startChild(env);
  const token = await createObjects(first.url);
  const stream = startStream(port);
  await until(() => stream.acknowledged.size > 500, 'the stream to run', 30_000);
  await first.program.end('SIGKILL');
  const before = stream.acknowledged.size;
  const second = await startChild(env);
  await until(() => stream.acknowledged.size > before + 500, 'the stream to go on', 30_000);
  await stream.stop();
  await expectStored(second.url, token, stream.acknowledged);
}, 240_000);
