// Measures a running service, or one that it starts itself in a temporary folder: fills it through the public API, then
// loads the most used requests and prints a Markdown table.
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { config as loadEnv } from 'dotenv';
import {
  type Client,
  connect,
  failure,
  readArguments,
  readPositive,
  request,
  runScript,
  type Shared,
} from './client.js';

/** One row of the table: what is asked again and again. */
export interface Scenario {
  title: string;
  method: 'GET' | 'POST';
  paths: string[];
  body?: string;
}

type Result = Pick<autocannon.Result, 'requests' | 'latency' | 'errors' | 'timeouts' | 'non2xx'>;

const HELP = `npm run bench -- [--url <address>] [--seconds <n>]

Fills a service with 1,000 objects and 20,000 packets, measures it and prints a Markdown table. Without --url it starts
the service itself, with an empty database in a temporary folder.

  --seconds <n>        how long each request is measured (default 5)
  --connections <n>    connections at the same time (default 10)
  --keep               leave the objects in the service (they are deleted otherwise)`;

const OBJECTS = 1000;
const WITH_PACKETS = 10;
// One object holds a whole page of the longest list, the others share the rest.
const PACKETS_OF_FIRST = 11_000;
const PACKETS_OF_OTHERS = 1000;
const BATCH = 1000;
const AT_ONCE = 20;

/** Does the work for all numbers below `count`, several at once. */
export async function forAll(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function createObjects(client: Client, ids: string[]): Promise<void> {
  const run = Date.now().toString(36);
  await forAll(OBJECTS, async (index) => {
    if (client.signal.aborted) throw failure('Stopped');
    const id = `bench-${run}-${index}`;
    ids[index] = String((await request(client, 'POST', '/api/v1/objects', { id, name: `Bench ${index}` }))._id);
  });
}

async function createPackets(client: Client, ids: string[]): Promise<void> {
  await forAll(WITH_PACKETS, async (index) => {
    const count = index === 0 ? PACKETS_OF_FIRST : PACKETS_OF_OTHERS;
    const begin = Date.now() - count * 1000;
    for (let sent = 0; sent < count && !client.signal.aborted; sent += BATCH) {
      const packets = Array.from({ length: BATCH }, (_, nth) => packetAt(begin + (sent + nth) * 1000));
      await request(client, 'POST', `/api/v1/objects/${ids[index]}/packets`, packets);
    }
  });
}

function packetAt(time: number) {
  return { time, lat: 48.14, lon: 11.57, speed: time % 90, angle: time % 360, fuel: 42.5, ignition: true };
}

function toScenarios(ids: string[]): Scenario[] {
  const objects = ids.map((id) => `/api/v1/objects/${id}`);
  const devices = objects.slice(0, WITH_PACKETS).map((path) => `${path}/packets`);
  const { time: _serverTime, ...packet } = packetAt(0);
  return [
    { title: 'GET one object', method: 'GET', paths: objects },
    { title: 'GET 100 objects', method: 'GET', paths: ['/api/v1/objects?limit=100'] },
    { title: 'GET 10,000 packets', method: 'GET', paths: [`${devices[0]}?limit=10000`] },
    { title: 'POST one packet', method: 'POST', paths: devices, body: JSON.stringify(packet) },
  ];
}

/** The table, one line per scenario. */
export function toTable(results: [string, Result][]): string {
  const lines = results.map(([title, { requests, latency, errors, timeouts, non2xx }]) => {
    // autocannon counts a time-out as an error, too.
    const failed = Math.max(errors, timeouts) + non2xx;
    return `| ${title} | ${requests.average.toFixed(1)} | ${latency.p50} | ${latency.p99} | ${failed} |`;
  });
  return ['| Request | requests/s | p50 ms | p99 ms | errors |', '|---|---:|---:|---:|---:|', ...lines].join('\n');
}

function measure(client: Client, scenario: Scenario, duration: number, connections: number): Promise<Result> {
  const { method, body, paths } = scenario;
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${client.token}`, 'content-type': 'application/json' };
    const requests = paths.map((path) => ({ method, path, headers, body }));
    // In a thread of its own, or the load would slow down a service of this process.
    const options = { url: client.url, connections, duration, requests, workers: 1 };
    const load = autocannon(options, (error, result) => {
      client.signal.removeEventListener('abort', stop);
      return error ? reject(error) : resolve(result);
    });
    // Stopped, its thread never reports.
    const stop = () => {
      load.stop();
      reject(failure('Stopped'));
    };
    client.signal.addEventListener('abort', stop);
  });
}

async function run(client: Client, seconds: number, connections: number, keep: boolean): Promise<void> {
  const ids: string[] = [];
  try {
    console.error(`Filling ${client.url} with ${OBJECTS} objects and 20,000 packets …`);
    await createObjects(client, ids);
    await createPackets(client, ids);
    const results: [string, Result][] = [];
    for (const scenario of toScenarios(ids)) {
      if (client.signal.aborted) break;
      console.error(`${scenario.title} …`);
      results.push([scenario.title, await measure(client, scenario, seconds, connections)]);
    }
    const machine = `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'CPU'}`;
    console.log(`${toTable(results)}\n\n${connections} connections, ${seconds} s each; ${machine}`);
  } finally {
    if (!keep) await removeObjects(client, ids);
  }
}

async function removeObjects(client: Client, ids: string[]): Promise<void> {
  const made = ids.filter((id) => id !== undefined);
  // Cleaning up must not depend on the signal that ended the measurement.
  const cleaner = { ...client, signal: new AbortController().signal };
  await forAll(made.length, async (index) => {
    await request(cleaner, 'DELETE', `/api/v1/objects/${made[index]}`);
  });
}

async function withOwnService(work: (given: Shared) => Promise<void>): Promise<void> {
  // Loaded only here: measuring another service needs no part of this one.
  const { readConfig } = await import('../src/config.js');
  const { startService } = await import('../src/service.js');
  loadEnv({ quiet: true });
  const folder = await mkdtemp(join(tmpdir(), 'vigil-bench-'));
  const ADMIN_PASSWORD = crypto.randomUUID();
  try {
    const own = { DATA_DIR: folder, HOST: '127.0.0.1', PORT: '0', ADMIN_LOGIN: 'admin', ADMIN_PASSWORD };
    // The rest of the environment says where mongod is found; an empty MONGODB_URI means the embedded one.
    const config = readConfig({ ...process.env, MONGODB_URI: '', LOG_LEVEL: 'warn', ...own });
    const service = await startService(config);
    try {
      await work({ url: service.url, login: 'admin', password: ADMIN_PASSWORD });
    } finally {
      await service.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function main(signal: AbortSignal): Promise<number> {
  const text = { type: 'string' } as const;
  const args = readArguments({ seconds: text, connections: text, keep: { type: 'boolean' } }, HELP);
  const seconds = readPositive('seconds', args.seconds, 5);
  const connections = Math.ceil(readPositive('connections', args.connections, 10));
  const work = async (given: Shared, keep: boolean) => run(await connect(given, signal), seconds, connections, keep);
  if (args.url) await work(args, args.keep ?? false);
  else await withOwnService((given) => work(given, true));
  return signal.aborted ? 130 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runScript(main);
