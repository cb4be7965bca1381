// Measures the service beside two others that serve the same data from the same MongoDB: the usual way, and the least that
// could do the same. Starts everything it needs in a temporary folder and prints a Markdown table.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { startEmbedded } from '../../src/db/embedded.js';
import { failure, readPositive, runScript } from '../client.js';
import { sizeOf } from './data.js';
import { fill } from './fill.js';
import { becomeQuiet, measure, type Round, type Timing } from './measure.js';
import { type RunningServer, SERVERS, type ServerName, startServer } from './servers.js';
import { type Measurement, toTable } from './table.js';
import { WORKLOADS, type Workload } from './workloads.js';

const HELP = `npm run bench -- [--quick] [--only W1,W6] [--servers ours,floor] [--json <file>]

Measures this service (ours), the usual way to write it (usual) and the least that could do the same (floor; floor-tick
gathers live events for 10 ms), in turns of seconds, and prints a table of medians. Takes ten minutes and both cores of a
small machine: nothing else should run.

  --quick              one short round, without floor-tick: a minute
  --only <ids>         these workloads: ${WORKLOADS.map(({ id }) => id).join(',')}
  --servers <names>    these servers: ${SERVERS.join(',')}
  --rounds <n>         how often each server has its turn (default 5)
  --seconds <s>        how long a workload is measured in a round (default 1.3)
  --scale <n>          so many times the data, which is 1,000 objects and 200,000 packets
  --json <file>        writes every round of every measurement there
  --profile <folder>   writes a CPU profile of each server there (--cpu-prof)
  --mongodb <uri>      a MongoDB for trials, instead of one that is started; databases named as the servers are dropped
  -h, --help           this text`;

const QUICK = { rounds: 1, seconds: 0.3 };
const QUICK_SERVERS = 'ours,usual,floor';
const FULL = { rounds: 5, seconds: 1.3 };
const WARM_LEAST_MS = 300;
const WARM_SHARES = { least: 0.5, most: 3 };
const quiet = { info() {}, warn() {} };

const text = { type: 'string' } as const;
const ARGUMENTS = {
  quick: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  ...{ only: text, servers: text, rounds: text, seconds: text, scale: text, json: text, profile: text, mongodb: text },
} as const;

function readOptions() {
  const { values } = readCommandLine();
  const usual = values.quick ? QUICK : FULL;
  const seconds = readPositive('seconds', values.seconds, usual.seconds);
  const warmMs = Math.max(WARM_LEAST_MS, seconds * 1_000 * WARM_SHARES.least);
  const timing: Timing = { measureMs: seconds * 1_000, warmMs, warmMostMs: seconds * 1_000 * WARM_SHARES.most };
  return {
    ...{ help: values.help, json: values.json, profile: values.profile, mongodb: values.mongodb, timing },
    rounds: readPositive('rounds', values.rounds, usual.rounds),
    size: sizeOf(readPositive('scale', values.scale, 1)),
    workloads: choose('only', values.only, WORKLOADS, ({ id }) => id),
    servers: choose('servers', values.servers ?? (values.quick ? QUICK_SERVERS : undefined), SERVERS, String),
  };
}

function readCommandLine() {
  try {
    return parseArgs({ options: ARGUMENTS });
  } catch (error) {
    throw failure(`${(error as Error).message.split('. ')[0]}. --help lists the arguments.`);
  }
}

type Options = ReturnType<typeof readOptions>;

function choose<T>(name: string, given: string | undefined, from: readonly T[], nameOf: (one: T) => string): T[] {
  const wanted = given?.split(',') ?? from.map(nameOf);
  const unknown = wanted.find((one) => !from.some((known) => nameOf(known) === one));
  if (unknown !== undefined) throw failure(`--${name}: no ${unknown} among ${from.map(nameOf).join(', ')}`);
  return from.filter((one) => wanted.includes(nameOf(one)));
}

/** A MongoDB for the time of the measurement. */
async function startMongodb(
  given: string | undefined,
  folder: string,
): Promise<{ uri: string; stop(): Promise<void> }> {
  if (given !== undefined) return { uri: given, stop: async () => undefined };
  return startEmbedded({
    dataFolder: folder,
    mongodBinary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: quiet,
  });
}

async function prepare(uri: string, { servers, size }: Options): Promise<{ pid: number; version: string }> {
  const client = await new MongoClient(uri).connect();
  try {
    const names = new Set(['ours', ...servers]);
    for (const name of names) await client.db(name).dropDatabase();
    await fill(uri, [...names], size);
    const { pid, version } = await client.db('admin').command({ serverStatus: 1 });
    return { pid: Number(pid), version };
  } finally {
    await client.close();
  }
}

/** Sockets are what tells the two floors apart. */
const isMeant = (server: ServerName, { kind }: Workload): boolean => server !== 'floor-tick' || kind === 'live';

async function run(options: Options, folder: string, signal: AbortSignal): Promise<{ text: string; results: object }> {
  const mongodb = await startMongodb(options.mongodb, folder);
  const servers = new Map<ServerName, RunningServer>();
  try {
    console.error(`Filling: ${options.size.objects} objects and their packets …`);
    const { pid, version } = await prepare(mongodb.uri, options);
    const profileFolder = options.profile === undefined ? null : resolve(options.profile);
    const place = { mongodbUri: mongodb.uri, folder, profileFolder };
    for (const name of options.servers) {
      const server = await startServer(name, place);
      servers.set(name, server);
      server.freeze();
    }
    // What was filled has still to be written out.
    await becomeQuiet([pid]);
    const rounds = new Map<string, Round[]>();
    for (const { round, workload, name } of turnsOf(options)) {
      if (signal.aborted) throw failure('Stopped');
      console.error(`${round}/${options.rounds}  ${name}  ${workload.id} ${workload.title} …`);
      const key = `${workload.id} ${name}`;
      const given = { mongodProcessId: pid, size: options.size, timing: timingOf(round, options.timing) };
      rounds.set(key, [
        ...(rounds.get(key) ?? []),
        await measured(servers.get(name) as RunningServer, workload, given),
      ]);
    }
    return toResults(options, rounds, version);
  } finally {
    for (const server of servers.values()) await server.stop();
    await mongodb.stop();
  }
}

/** One workload after the other, each of every server: what is compared is measured within seconds. */
function* turnsOf({ rounds, workloads, servers }: Options) {
  for (let round = 1; round <= rounds; round++) {
    for (const workload of workloads) {
      for (const name of servers) if (isMeant(name, workload)) yield { round, workload, name };
    }
  }
}

/** In later rounds code is compiled. */
function timingOf(round: number, timing: Timing): Timing {
  return round === 1 ? timing : { ...timing, warmMostMs: timing.warmMs };
}

/** A server that fails says why in its log. */
async function measured(server: RunningServer, workload: Workload, given: Parameters<typeof measure>[2]) {
  server.wake();
  try {
    return await measure(server, workload, given);
  } catch (error) {
    throw failure(`${workload.id}: ${(error as Error).message}\n${await server.said()}`);
  } finally {
    server.freeze();
  }
}

function toResults(options: Options, rounds: ReadonlyMap<string, Round[]>, mongodbVersion: string) {
  const measurements: Measurement[] = [...rounds].map(([key, found]) => {
    const [workload, server] = key.split(' ') as [string, ServerName];
    return { workload, server, rounds: found };
  });
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'CPU'}, Node ${process.versions.node}, MongoDB ${mongodbVersion}`;
  const { objects } = options.size;
  const seconds = options.timing.measureMs / 1_000;
  const note = `Medians of ${options.rounds} rounds of ${seconds} s; ${objects.toLocaleString('en-US')} objects; ${machine}.`;
  return {
    text: `${toTable(options.workloads, measurements)}\n\n${note}`,
    results: { machine, rounds: options.rounds, seconds, size: options.size, measurements },
  };
}

async function main(signal: AbortSignal): Promise<number> {
  const options = readOptions();
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  if (options.profile !== undefined) await mkdir(options.profile, { recursive: true });
  const folder = await mkdtemp(join(tmpdir(), 'vigil-bench-'));
  try {
    const { text, results } = await run(options, folder, signal);
    console.log(text);
    if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(results, null, 1)}\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return signal.aborted ? 130 : 0;
}

await runScript(main);
