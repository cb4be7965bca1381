// Measures MQTT: QoS 1 publishes of 200 devices, each acknowledged when it is stored. The service, the database and the devices
// are separate processes.
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MongoClient, type WriteConcernSettings } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { startEmbedded } from '../../src/platform/mongo/embedded/start.js';
import { PlainError, parsePositive, runProgram } from '../../src/program.js';
import { readPlainArguments } from '../installation.js';
import type { FromMqttLoad, MqttJob, MqttPhase, MqttResult, ToMqttLoad } from './mqtt-load.js';
import { readCpuMs } from './process.js';
import { SERVICE_ARGUMENTS } from './servers.js';
import { format } from './stats.js';

const HELP = `node dist/scripts/bench/mqtt.js

Measures QoS 1 publishes of devices over MQTT, each acknowledged when it is stored: as fast as acknowledged, with the CPU
time of the service for each, and the time to the acknowledgement at half that rate. A service, a database and the devices are started for it, and removed.

  --devices <n>        how many devices (default 200)
  --seconds <n>        how long each phase takes (default 10)
  --window <n>         messages that each device has under way (default 5)
  --profile <folder>   writes a CPU profile of the service there
  -h, --help           this text`;

const AUTH = { username: 'bench', password: 'a key of the machine' };
const ADMIN_PASSWORD = 'a password for measurements';
const SECRET = 'a-secret-for-measurements-0123456789-abcdefgh';
const START_MS = 30_000;
const GROUP = 100;
const DURABLE: WriteConcernSettings = { w: 'majority', journal: true };

export interface MqttMeasured {
  readonly max: MqttResult;
  /** Of the service for each message, at that rate. */
  readonly maxCpuUs: number;
  readonly half: MqttResult;
  /** Packets per second that the driver alone stores in groups of 100, two at a time. */
  readonly rawPerSecond: number;
}

export interface MqttOptions {
  readonly devices: number;
  readonly seconds: number;
  readonly window: number;
  readonly profileFolder: string | null;
}

const compiled = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Measures with the given MongoDB, in a separate database. */
async function measureMqtt(mongodbUri: string, options: MqttOptions): Promise<MqttMeasured> {
  const rawPerSecond = await measureRaw(mongodbUri, options.seconds / 2);
  const service = await startService(mongodbUri, options.profileFolder);
  try {
    await createObjects(service.url, options.devices);
    const { hostname: host, port } = new URL(service.mqttUrl);
    const load = fork(compiled('./mqtt-load.js'), { stdio: 'inherit' });
    try {
      await ask(load, { job: { host, port: Number(port), devices: options.devices, ...AUTH } satisfies MqttJob });
      const { seconds, window } = options;
      const phase = async (perSecond: number | null, forSeconds: number): Promise<MqttResult> => {
        const answer = await ask(load, { phase: { seconds: forSeconds, perSecond, window } satisfies MqttPhase });
        return (answer as { result: MqttResult }).result;
      };
      await phase(null, Math.min(3, seconds));
      const processId = service.child.pid as number;
      const beforeMs = readCpuMs(processId);
      const max = await phase(null, seconds);
      const maxCpuUs = ((readCpuMs(processId) - beforeMs) * 1_000) / max.acknowledged;
      const half = await phase(max.perSecond / 2, seconds);
      return { max, maxCpuUs, half, rawPerSecond };
    } finally {
      load.kill();
    }
  } finally {
    service.child.kill('SIGTERM');
    await once(service.child, 'exit');
  }
}

async function ask(load: ChildProcess, message: ToMqttLoad): Promise<FromMqttLoad> {
  load.send(message);
  const [answer] = (await once(load, 'message')) as [FromMqttLoad];
  if (typeof answer === 'object' && 'failed' in answer) throw new PlainError(answer.failed);
  return answer;
}

async function startService(mongodbUri: string, profileFolder: string | null) {
  const profile = profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`];
  const child = spawn(process.execPath, [...profile, ...SERVICE_ARGUMENTS, compiled('../../src/main.js')], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: '0',
      MQTT_PORT: '0',
      SECRET,
      ADMIN_PASSWORD,
      MONGODB_URI: mongodbUri,
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (data) => {
    said += data;
  });
  const find = (pattern: RegExp): string => pattern.exec(said)?.[1] ?? '';
  for (const startMs = performance.now(); find(/Devices\s+(\S+)/) === ''; await wait(20)) {
    if (child.exitCode !== null || performance.now() - startMs > START_MS)
      throw new PlainError(`it did not start: ${said}`);
  }
  return { child, url: find(/running at (\S+)/), mqttUrl: find(/Devices\s+(\S+)/) };
}

async function createObjects(url: string, count: number): Promise<void> {
  const call = async (path: string, token: string | null, body: object) => {
    const headers = { 'Content-Type': 'application/json', ...(token !== null && { Authorization: `Bearer ${token}` }) };
    const answer = await fetch(`${url}/api/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new PlainError(`${path}: ${await answer.text()}`);
    return answer.json() as Promise<{ token: string }>;
  };
  const { token } = await call('auth/token', null, { login: 'admin', password: ADMIN_PASSWORD });
  for (let at = 0; at < count; at++) {
    await call('objects', token, { id: `bench-${at}`, name: `bench ${at}`, config: { auth: AUTH } });
  }
}

/** Measures the upper bound set by the database and its driver: groups of packets without any other work. */
async function measureRaw(uri: string, seconds: number): Promise<number> {
  const client = await new MongoClient(uri, { writeConcern: DURABLE }).connect();
  const packets = client.db().collection('raw');
  await packets.createIndex({ _oid: 1, time: 1, _ts: 1 });
  const endMs = performance.now() + seconds * 1_000;
  let stored = 0;
  const write = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const group = Array.from({ length: GROUP }, (_, at) => ({
        _ts: Date.now() * 1_000 + at,
        time: Date.now(),
        online: true,
        _oid: at,
        id: 'x',
        _gid: 1,
        lat: 52.5,
        lon: 13.4,
        height: 34,
        angle: 1,
        speed: 41.5,
        fuel: 60.2,
        ignition: true,
        satellites: 9,
        voltage: 12.6,
      }));
      await packets.insertMany(group, { ordered: false });
      stored += GROUP;
    }
  };
  await Promise.all([write(), write()]);
  await packets.drop();
  await client.close();
  return stored / seconds;
}

/** The measurement as a table. */
export function toText({ max, maxCpuUs, half, rawPerSecond }: MqttMeasured): string {
  const row = (title: string, { perSecond, p50, p99 }: MqttResult, cpuUs: string): string =>
    `| ${title} | ${format(perSecond)} | ${format(p50)} | ${format(p99)} | ${cpuUs} |`;
  return [
    '| QoS 1 publishes, acknowledged when stored | per s | p50 ms | p99 ms | CPU µs of the service |',
    '|---|---|---|---|---|',
    row('as fast as acknowledged', max, format(maxCpuUs)),
    row('at half that rate', half, '–'),
    `| the driver alone, groups of ${GROUP} | ${format(rawPerSecond)} | – | – | – |`,
  ].join('\n');
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const args = readPlainArguments({ devices: text, seconds: text, window: text, profile: text }, HELP);
  const folder = await mkdtemp(join(tmpdir(), 'vigil-bench-mqtt-'));
  const quiet = { info: () => undefined, warn: console.error, error: console.error, debug: () => undefined };
  try {
    const mongodb = await startEmbedded({
      dataFolder: folder,
      mongodBinary: process.env.MONGOD_BINARY || null,
      searchPath: process.env.PATH ?? '',
      cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
      log: quiet,
    });
    try {
      const measured = await measureMqtt(mongodb.uri, {
        devices: Math.ceil(parsePositive('devices', args.devices, 200)),
        seconds: parsePositive('seconds', args.seconds, 10),
        window: Math.ceil(parsePositive('window', args.window, 5)),
        profileFolder: args.profile ?? null,
      });
      console.log(toText(measured));
    } finally {
      await mongodb.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runProgram(main);
