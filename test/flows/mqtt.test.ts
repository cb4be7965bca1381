/** The database, or the service, dies under devices that publish: what they were acknowledged is stored, and stored once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import mqtt, { type MqttClient } from 'mqtt';
import { ADMIN } from '../fixture.js';
import { AUTH } from '../gateway/device.js';
import { until } from '../until.js';

const DEVICES = 5;
const PER_SECOND = 100;
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

interface Running {
  readonly child: ChildProcess;
  readonly url: string;
}

async function startChild(env: NodeJS.ProcessEnv): Promise<Running> {
  const child = spawn(process.execPath, ['dist/src/main.js'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr?.on('data', (data) => {
    said += data;
  });
  const address = () => /running at (\S+)/.exec(said)?.[1];
  await until(() => address() !== undefined || child.exitCode !== null, 'the service to start', 25_000);
  if (address() === undefined) throw new Error(said);
  return { child, url: address() as string };
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function call(url: string, token: string | null, method: string, path: string, body?: object): Promise<any> {
  const response = await fetch(`${url}/api/v1/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return response.json();
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
  const port = await freePort();
  const { MONGODB_URI: _, ...inherited } = process.env;
  const ours = { PORT: '0', MQTT_PORT: String(port), DATA_DIR: folder, LOG_FORMAT: 'json', LOG_LEVEL: 'warn' };
  const env = { ...inherited, ...ours, ADMIN_LOGIN: ADMIN.login, ADMIN_PASSWORD: ADMIN.password };
  return { env, port, folder };
}

async function createObjects(url: string): Promise<string> {
  const { token } = await call(url, null, 'POST', 'auth/token', ADMIN);
  for (let at = 0; at < DEVICES; at++) {
    await call(url, token, 'POST', 'objects', { id: `device-${at}`, name: 'x', config: { auth: AUTH } });
  }
  return token;
}

async function expectStored(url: string, token: string, acknowledged: ReadonlySet<string>): Promise<void> {
  const stored: string[] = [];
  for (let at = 0; at < DEVICES; at++) {
    const packets = await call(url, token, 'GET', `objects/device-${at}/packets`);
    stored.push(...packets.flatMap(({ key }: { key?: string }) => key ?? []));
  }
  const kept = new Set(stored);
  expect([...acknowledged].filter((key) => !kept.has(key))).toEqual([]);
  expect(stored.length).toBe(kept.size);
}

test('the database killed under them', async () => {
  const { env, port, folder } = await prepare();
  const { child, url } = await startChild(env);
  endings.push(() => child.kill('SIGKILL'));
  const token = await createObjects(url);
  const stream = startStream(port);
  await until(() => stream.acknowledged.size > 500, 'the stream to run');
  const mongod = Number(await readFile(join(folder, 'mongodb', 'data', 'mongod.lock'), 'utf8'));
  process.kill(mongod, 'SIGKILL');
  const before = stream.acknowledged.size;
  await until(() => stream.acknowledged.size > before + 500, 'the stream to go on', 30_000);
  await stream.stop();
  await expectStored(url, token, stream.acknowledged);
}, 120_000);

test('the service killed under them: they come back to the next one, and send again what it did not acknowledge', async () => {
  const { env, port } = await prepare();
  const first = await startChild(env);
  endings.push(() => first.child.kill('SIGKILL'));
  const token = await createObjects(first.url);
  const stream = startStream(port);
  await until(() => stream.acknowledged.size > 500, 'the stream to run');
  const exited = once(first.child, 'exit');
  first.child.kill('SIGKILL');
  await exited;
  const before = stream.acknowledged.size;
  const second = await startChild(env);
  endings.push(() => second.child.kill('SIGKILL'));
  await until(() => stream.acknowledged.size > before + 500, 'the stream to go on', 30_000);
  await stream.stop();
  await expectStored(second.url, token, stream.acknowledged);
}, 120_000);
