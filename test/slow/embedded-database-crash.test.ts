/** The database, or the service, dies or freezes under a stream of packets: what was acknowledged is there, once. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { io } from 'socket.io-client';
import { type Service, startService } from '../../src/app.js';
import { parseConfig } from '../../src/config.js';
import { type ApiAnswer, callApi, logIn } from '../support/api-call.js';
import { ADMIN, type Listener, openListener, type ReceivedEvent } from '../support/fixture.js';
import { freezeProcess } from '../support/freeze.js';
import { type Program, SERVICE, startProgram, waitForOutput } from '../support/program.js';
import { until } from '../support/until.js';

const CLIENTS = 4;
// Five seconds for the database, and some for a machine that has other things to do.
const LONGEST_ANSWER_MS = 9_000;

const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function makeEnvironment(): Promise<NodeJS.ProcessEnv & { DATA_DIR: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-faults-'));
  endings.push(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const { MONGODB_URI: _, ...env } = process.env;
  const ours = { PORT: '0', DATA_DIR: folder, LOG_FORMAT: 'json', LOG_LEVEL: 'info' };
  return { ...env, ...ours, ADMIN_LOGIN: ADMIN.login, ADMIN_PASSWORD: ADMIN.password };
}

/** The process of the embedded mongod. */
async function mongodOf(dataFolder: string): Promise<number> {
  return Number(await readFile(join(dataFolder, 'mongodb', 'data', 'mongod.lock'), 'utf8'));
}

interface Sent extends ApiAnswer {
  readonly key: string;
}

interface Stream {
  readonly sent: Sent[];
  /** Packets acknowledged so far. */
  acknowledged(): Sent[];
  /** Rejects when a call breaks. */
  readonly over: Promise<unknown>;
  stop(): Promise<void>;
}

/** Several clients, each with an object of its own, posting one packet after the other; none is sent twice. */
async function startStream(url: string, token: string): Promise<Stream> {
  const sent: Sent[] = [];
  let running = true;
  const client = async (name: string) => {
    for (let at = 0; running; at++) {
      const key = `${name}/${at}`;
      const answer = await callApi(url, token, 'POST', `objects/${name}/packets`, { key });
      sent.push({ ...answer, key });
      if (answer.status !== 200) await wait(50);
    }
  };
  const names = Array.from({ length: CLIENTS }, (_, at) => `client-${at}`);
  for (const name of names) await callApi(url, token, 'POST', 'objects', { id: name, name });
  const clients = Promise.all(names.map(client));
  return {
    ...{ sent, over: clients },
    acknowledged: () => sent.filter(({ status }) => status === 200),
    async stop() {
      running = false;
      await clients;
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: packets
async function storedOf(url: string, token: string): Promise<any[]> {
  const lists = [];
  for (let at = 0; at < CLIENTS; at++) {
    lists.push((await callApi(url, token, 'GET', `objects/client-${at}/packets`)).body);
  }
  return lists.flat();
}

/** Every acknowledged packet is stored as it was acknowledged, none twice, and every other answer was a proper 503. */
function expectKept(stream: Stream, stored: { key: string }[]): void {
  const others = stream.sent.filter(({ status }) => status !== 200);
  expect(others.filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) >= 1))).toEqual([]);
  expect(Math.max(...stream.sent.map(({ ms }) => ms))).toBeLessThan(LONGEST_ANSWER_MS);
  const byKey = new Map(stored.map((packet) => [packet.key, packet]));
  expect(byKey.size).toBe(stored.length);
  const acknowledged = stream.acknowledged();
  expect(acknowledged.map(({ key }) => byKey.get(key))).toEqual(
    acknowledged.map(({ body: { success, ...packet } }) => packet),
  );
}

/** The listener received every stored packet once, those of each object in the order they were stored in. */
async function expectReceived(listener: Listener, stored: { _id: string; _oid: string; _ts: number }[]): Promise<void> {
  const received: ReceivedEvent[] = [];
  await until(() => received.push(...listener.take()) >= stored.length, 'every stored packet to be received', 30_000);
  expect(listener.socket.connected).toBe(true);
  const packets = received.map(({ payload }) => payload);
  const inOrder = (one: (typeof stored)[number], other: (typeof stored)[number]) =>
    one._oid.localeCompare(other._oid) || one._ts - other._ts;
  const objects = [...new Set(stored.map(({ _oid }) => _oid))].sort();
  expect(objects.flatMap((_oid) => packets.filter((packet) => packet._oid === _oid))).toEqual(
    [...stored].sort(inOrder),
  );
}

async function startEmbeddedService(): Promise<{ service: Service; folder: string; token: string }> {
  const env = await makeEnvironment();
  const service = await startService(parseConfig(env), { logTo: { write: () => undefined } });
  endings.push(() => service.stop());
  return { service, folder: env.DATA_DIR, token: await logIn(service.url, ADMIN) };
}

/** Asks for something of the database. */
type Ask = () => Promise<ApiAnswer>;

const FAULTS: { name: string; hurt(processId: number, ask: Ask): Promise<void> }[] = [
  { name: 'mongod killed', hurt: async (processId) => void process.kill(processId, 'SIGKILL') },
  {
    name: 'mongod frozen for a while',
    async hurt(processId, ask) {
      await freezeProcess(processId);
      try {
        // For as long as it takes until what is asked meanwhile is told so.
        const { status, ms } = await ask();
        expect(status).toBe(503);
        expect(ms).toBeLessThan(LONGEST_ANSWER_MS);
      } finally {
        process.kill(processId, 'SIGCONT');
      }
    },
  },
];

test.each(FAULTS)(
  '$name under a stream of packets: nothing acknowledged is lost, nothing is doubled',
  async ({ hurt }) => {
    const { service, folder, token } = await startEmbeddedService();
    const listener = await openListener(service.url, token);
    endings.push(() => listener.close());
    const stream = await startStream(service.url, token);
    await until(() => stream.acknowledged().length > 100, 'the stream to run', 30_000);
    await hurt(await mongodOf(folder), () => callApi(service.url, token, 'GET', 'objects'));
    const before = stream.acknowledged().length;
    await until(() => stream.acknowledged().length > before + 200, 'the service to go on by itself', 30_000);
    await stream.stop();
    const stored = await storedOf(service.url, token);
    expectKept(stream, stored);
    await expectReceived(listener, stored);
    // Nobody was logged out by it, and new ones get in.
    expect((await callApi(service.url, await logIn(service.url, ADMIN), 'GET', 'auth')).status).toBe(200);
  },
  180_000,
);

test('while mongod is frozen every kind of call is told 503 in time', async () => {
  const { service, folder, token } = await startEmbeddedService();
  await callApi(service.url, token, 'POST', 'objects', { id: 'o', name: 'O' });
  const processId = await mongodOf(folder);
  await freezeProcess(processId);
  endings.push(() => process.kill(processId, 'SIGCONT'));
  const answers = await Promise.all([
    callApi(service.url, token, 'GET', 'objects'),
    callApi(service.url, token, 'GET', 'objects?meta=true'),
    callApi(service.url, token, 'GET', 'objects/o'),
    callApi(service.url, token, 'GET', 'objects/o/packets'),
    callApi(service.url, token, 'POST', 'objects/o/packets', { speed: 1 }),
    callApi(service.url, token, 'PATCH', 'objects/o', { status: 'x' }),
    callApi(service.url, token, 'DELETE', 'objects/o'),
    callApi(service.url, null, 'POST', 'auth/token', ADMIN),
    callApi(service.url, null, 'POST', 'auth', ADMIN),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 503));
  for (const { body, retryAfter, ms } of answers) {
    expect(body).toMatchObject({ success: false, code: '503', tags: ['error_unavailable'] });
    expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
    expect(ms).toBeLessThan(LONGEST_ANSWER_MS);
  }
  process.kill(processId, 'SIGCONT');
  const goesOn = async () => (await callApi(service.url, token, 'GET', 'objects')).status === 200;
  await until(goesOn, 'the service to go on', 30_000);
}, 120_000);

test.each([
  ['new', io],
  ['old', createRequire(import.meta.url)('socket.io-client-2') as typeof io],
])(
  '%s clients that connect while mongod is frozen are let in as nobody, and come back by themselves',
  async (_, connect) => {
    const { service, folder, token } = await startEmbeddedService();
    const processId = await mongodOf(folder);
    await freezeProcess(processId);
    endings.push(() => process.kill(processId, 'SIGCONT'));
    const sockets = [['websocket'], ['polling', 'websocket']].map((transports) => {
      const extraHeaders = { authorization: `Bearer ${token}` };
      const socket = connect(service.url, { extraHeaders, transports, forceNew: true });
      endings.push(() => socket.disconnect());
      const told: string[] = [];
      for (const name of ['connect', 'connect_error', 'error']) socket.on(name, () => told.push(name));
      let closed = 0;
      socket.io.on('close' as never, () => void closed++);
      return { socket, told, isClosed: () => closed > 0 };
    });
    await until(() => sockets.every(({ isClosed }) => isClosed()), 'the connections to end', LONGEST_ANSWER_MS);
    expect(sockets.map(({ told }) => told)).toEqual([[], []]);
    process.kill(processId, 'SIGCONT');
    await until(() => sockets.every(({ socket }) => socket.connected), 'the clients to be back', 30_000);
  },
  120_000,
);

async function startChild(env: NodeJS.ProcessEnv): Promise<{ program: Program; url: string }> {
  const program = startProgram(SERVICE, env);
  endings.push(() => program.end('SIGKILL'));
  return { program, url: await waitForOutput(program, /running at (\S+)/, 60_000) };
}

test('the service killed under a stream of packets: it starts again on its folder with all that it acknowledged', async () => {
  const env = await makeEnvironment();
  const first = await startChild(env);
  const token = await logIn(first.url, ADMIN);
  const stream = await startStream(first.url, token);
  await until(() => stream.acknowledged().length > 200, 'the stream to run', 30_000);
  // The clients go on until their connections break: what was under way a moment ago may all have been answered.
  const broken = expect(stream.over).rejects.toThrow();
  await first.program.end('SIGKILL');
  await broken;

  const second = await startChild(env);
  endings.push(async () => expect(await second.program.end('SIGTERM')).toBe(0));
  // The token is still good: the secret and the data are those of before.
  const stored = await storedOf(second.url, token);
  expectKept(stream, stored);
  expect((await callApi(second.url, token, 'POST', 'objects/client-0/packets', { key: 'after' })).status).toBe(200);
}, 180_000);
