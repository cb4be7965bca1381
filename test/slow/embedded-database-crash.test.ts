/** The embedded database, or the service with it, is killed or frozen under streams of packets over HTTP and MQTT. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { io } from 'socket.io-client';
import { callApi, logIn } from '../support/api-call.js';
import { ADMIN, type Listener, openListener, type ReceivedEvent } from '../support/fixture.js';
import { freezeProcess } from '../support/freeze.js';
import { AUTH } from '../support/mqtt-device.js';
import { findFreePort } from '../support/ports.js';
import { type Program, SERVICE, startProgram, waitForOutput } from '../support/program.js';
import { until } from '../support/until.js';
import { checkCounted, checkWritten } from './failover/checker.js';
import { type Devices, startDevices } from './failover/devices.js';
import { type Sent, startWriters, type Writers } from './failover/writers.js';

const WRITTEN = ['writer-0', 'writer-1', 'writer-2', 'writer-3'];
const PUBLISHED = ['device-0', 'device-1', 'device-2', 'device-3', 'device-4'];
/** Acknowledged packets over each protocol that show that the service runs. */
const ENOUGH = 60;

let folder: string;
let env: NodeJS.ProcessEnv;
let service: Program;
let url: string;
let mqttUrl: string;
let token: string;
/** They send only while a test wants it, and never use a key twice. */
let writers: Writers;
let devices: Devices;
const endings: (() => unknown)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vigil-crash-'));
  const ports = { PORT: String(await findFreePort()), MQTT_PORT: String(await findFreePort()) };
  const { MONGODB_URI: _, ...inherited } = process.env;
  const ours = {
    ...ports,
    DATA_DIR: folder,
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'info',
    STOP_DELAY: '0',
    OVERLOAD_DELAY: '0',
  };
  env = { ...inherited, ...ours, ADMIN_LOGIN: ADMIN.login, ADMIN_PASSWORD: ADMIN.password };
  mqttUrl = `mqtt://127.0.0.1:${ports.MQTT_PORT}`;
  await start();
  token = await logIn(url, ADMIN);
  for (const id of WRITTEN) await callApi(url, token, 'POST', 'objects', { id, name: id });
  for (const id of PUBLISHED) await callApi(url, token, 'POST', 'objects', { id, name: id, config: { auth: AUTH } });
  writers = startWriters([url], token, WRITTEN);
  devices = await startDevices(mqttUrl, PUBLISHED);
});

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

afterAll(async () => {
  await devices?.stop();
  // It ends its database too, which would go on writing into the folder.
  await service?.end('SIGTERM');
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

async function start(): Promise<void> {
  service = startProgram(SERVICE, env);
  url = await waitForOutput(service, /running at (\S+)/);
}

/** The process of the embedded mongod. */
async function mongodId(): Promise<number> {
  return Number(await readFile(join(folder, 'mongodb', 'data', 'mongod.lock'), 'utf8'));
}

/** The streams of a test, which run until the end of the test. */
async function startStreams(): Promise<void> {
  writers.resume();
  devices.resume();
  endings.push(stopStreams);
  await untilFlowing();
}

/** Resolves when packets that are sent from now on have been acknowledged over both protocols. */
async function untilFlowing(): Promise<void> {
  const fromMs = performance.now();
  const isFlowing = ({ sent }: { sent: readonly Sent[] }) =>
    sent.filter(({ status, startMs }) => status === 200 && startMs > fromMs).length > ENOUGH;
  await until(() => isFlowing(writers), 'acknowledged packets over HTTP');
  await until(() => isFlowing(devices), 'acknowledged packets over MQTT');
}

/** Stops sending; resolves when no packet is under way. */
async function stopStreams(): Promise<void> {
  await writers.pause();
  await devices.pause();
}

interface StoredPacket {
  readonly _id: string;
  readonly _oid: string;
  readonly _ts: number;
  readonly key?: string;
}

async function readStored(ids: readonly string[]): Promise<StoredPacket[]> {
  const lists = await Promise.all(ids.map((id) => callApi(url, token, 'GET', `objects/${id}/packets`)));
  expect(lists.map(({ status }) => status)).toEqual(ids.map(() => 200));
  return lists.flatMap(({ body }) => body);
}

const keysOf = (packets: readonly StoredPacket[]): string[] => packets.flatMap(({ key }) => key ?? []);

/** Every acknowledged packet is stored once, as it was acknowledged; those of devices in order; other answers are proper. */
async function expectStored(cuts: boolean): Promise<StoredPacket[]> {
  const written = await readStored(WRITTEN);
  const published = await readStored(PUBLISHED);
  const marks = new Map<string, string>();
  expect(checkWritten(writers.sent, { packets: keysOf(written), marks }, { cuts })).toEqual([]);
  expect(checkWritten(devices.sent, { packets: keysOf(published), marks }, { cuts: true })).toEqual([]);
  expect(checkCounted(keysOf(published))).toEqual([]);
  const byKey = new Map(written.map((packet) => [packet.key, packet]));
  const acknowledged = writers.sent.filter(({ kind, status }) => kind === 'packet' && status === 200);
  expect(acknowledged.map(({ key }) => ({ ...byKey.get(key), success: true }))).toEqual(
    acknowledged.map(({ text }) => JSON.parse(text ?? '')),
  );
  return [...written, ...published];
}

/** The client received each of these packets once, those of an object in the order of their storage. */
async function expectReceived({ take }: Listener, stored: readonly StoredPacket[]): Promise<void> {
  const wanted = new Set(stored.map(({ _id }) => _id));
  const packets: StoredPacket[] = [];
  const isComplete = () => {
    const events = take().filter(({ name }: ReceivedEvent) => name === 'object-packet');
    packets.push(...events.map(({ payload }) => payload).filter(({ _id }) => wanted.has(_id)));
    return packets.length >= stored.length;
  };
  await until(isComplete, 'every stored packet to be received');
  const objects = [...new Set(stored.map(({ _oid }) => _oid))];
  const idsOf = (all: readonly StoredPacket[], object: string) =>
    all.filter(({ _oid }) => _oid === object).map(({ _id }) => _id);
  const inOrder = stored.toSorted((one, other) => one._ts - other._ts);
  expect(objects.map((object) => idsOf(packets, object))).toEqual(objects.map((object) => idsOf(inOrder, object)));
}

test.each<[fault: string, cause: (processId: number) => Promise<void>]>([
  ['was killed', async (processId) => void process.kill(processId, 'SIGKILL')],
  [
    'was frozen for a while',
    async (processId) => {
      await freezeProcess(processId);
      try {
        // It is thawed only after this answer.
        expect((await callApi(url, token, 'GET', 'objects')).status).toBe(503);
      } finally {
        process.kill(processId, 'SIGCONT');
      }
    },
  ],
])('stores and sends every acknowledged packet once after mongod %s, and keeps users logged in', async (_, cause) => {
  // Opened first: what a device writes in between is among those before.
  const listener = await openListener(url, token);
  endings.push(listener.close);
  const before = new Set((await expectStored(false)).map(({ _id }) => _id));
  await startStreams();
  await cause(await mongodId());
  await untilFlowing();
  await stopStreams();
  const stored = await expectStored(false);
  await expectReceived(
    listener,
    stored.filter(({ _id }) => !before.has(_id)),
  );
  expect(listener.socket.connected).toBe(true);
  expect((await callApi(url, token, 'GET', 'auth')).status).toBe(200);
  expect((await callApi(url, await logIn(url, ADMIN), 'GET', 'auth')).status).toBe(200);
});

test('answers 503 to every kind of request while mongod is frozen', async () => {
  await callApi(url, token, 'POST', 'objects', { id: 'o', name: 'O' });
  const processId = await mongodId();
  await freezeProcess(processId);
  endings.push(() => process.kill(processId, 'SIGCONT'));
  // mongod is thawed only after all answers.
  const answers = await Promise.all([
    callApi(url, token, 'GET', 'objects'),
    callApi(url, token, 'GET', 'objects?meta=true'),
    callApi(url, token, 'GET', 'objects/o'),
    callApi(url, token, 'GET', 'objects/o/packets'),
    callApi(url, token, 'POST', 'objects/o/packets', { speed: 1 }),
    callApi(url, token, 'PATCH', 'objects/o', { status: 'x' }),
    callApi(url, token, 'DELETE', 'objects/o'),
    callApi(url, null, 'POST', 'auth/token', ADMIN),
    callApi(url, null, 'POST', 'auth', ADMIN),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 503));
  for (const { body, retryAfter } of answers) {
    expect(body).toMatchObject({ success: false, code: '503', tags: ['error_unavailable'] });
    expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
  }
  process.kill(processId, 'SIGCONT');
  const isBack = async () => (await callApi(url, token, 'GET', 'objects')).status === 200;
  await until(isBack, 'the service to answer 200');
});

test('closes the sockets of clients of both protocols that connect while mongod is frozen; the clients reconnect', async () => {
  // The service has to ask the database for the user of a new token.
  const newToken = await logIn(url, ADMIN);
  const processId = await mongodId();
  await freezeProcess(processId);
  endings.push(() => process.kill(processId, 'SIGCONT'));
  const generations = [io, createRequire(import.meta.url)('socket.io-client-2') as typeof io];
  const clients = generations.flatMap((connect) =>
    [['websocket'], ['polling', 'websocket']].map((transports) => {
      const extraHeaders = { authorization: `Bearer ${newToken}` };
      // The service closes them: a client of a busy machine must not give up before.
      const socket = connect(url, { extraHeaders, transports, forceNew: true, timeout: 120_000 });
      endings.push(() => socket.disconnect());
      const events: string[] = [];
      for (const name of ['connect', 'connect_error', 'error']) socket.on(name, () => events.push(name));
      let closed = 0;
      socket.io.on('close' as never, () => void closed++);
      return { socket, events, isClosed: () => closed > 0 };
    }),
  );
  // mongod is thawed only after all have been closed.
  await until(() => clients.every(({ isClosed }) => isClosed()), 'every connection to be closed');
  expect(clients.map(({ events }) => events)).toEqual([[], [], [], []]);
  process.kill(processId, 'SIGCONT');
  await until(() => clients.every(({ socket }) => socket.connected), 'every client to be connected');
});

test('starts again with all acknowledged packets after the service was killed, and devices send the others again', async () => {
  await startStreams();
  await service.end('SIGKILL');
  await until(() => writers.sent.some(({ status }) => status === null), 'a broken connection');
  await start();
  // The token and the secret are those of before.
  await untilFlowing();
  await stopStreams();
  await expectStored(true);
  expect(await service.end('SIGTERM')).toBe(0);
});
