// Measures the service beside two other servers with the same data in the same MongoDB: the usual server and the floor. Starts
// everything in a temporary folder and prints a Markdown table.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { MongoClient } from 'mongodb';
import { defaultCacheFolder } from '../../src/config.js';
import { startEmbedded } from '../../src/platform/mongo/embedded/start.js';
import { PlainError, parsePositive, runProgram, UsageError } from '../../src/program.js';
import { CONSOLE_SECONDS, measureConsole } from './console.js';
import { databaseName, sizeOf } from './data.js';
import { fill } from './fill.js';
import { FLOOD_SECONDS, measureFlood } from './flood.js';
import { becomeQuiet, measure, type Round, type Timing } from './measure.js';
import { measureNeighbours, NEIGHBOURS_SECONDS } from './neighbours.js';
import { measurePacked, PACKED_SECONDS } from './packed.js';
import { measurePackedDatabase, PACKED_CACHE_MB, PACKED_DATABASE_SECONDS } from './packed-database.js';
import { measureRules } from './rules.js';
import { type Place, type RunningServer, SERVERS, type ServerName, startServer } from './servers.js';
import { type Measurement, toTable } from './table.js';
import { measureWebhooks } from './webhooks.js';
import { WORKLOADS, type Workload } from './workloads.js';

const HELP = `npm run bench -- [--quick] [--only W1,W6] [--servers ours,floor] [--json <file>]

Measures this service (ours), the usual way to write it (usual) and the least that could do the same (floor; floor-tick
gathers live events for 10 ms), in turns of seconds, and prints a table of medians. Takes ten minutes and both cores of a
small machine: nothing else should run.

  --quick              one short round, without floor-tick: a minute
  --only <ids>         these workloads: ${WORKLOADS.map(({ id }) => id).join(',')}; S for all of S1 to S3, F for both of F and Fr;
                       H measures webhooks, and what handlers cost the storing of packets: only when asked for;
                       R measures rules and alarms, and takes a quarter of an hour: only when asked for;
                       console measures the web console in a real browser: only when asked for;
                       neighbours measures what attacks of one tenant cost another one: only when asked for;
                       flood measures what a flood of webhooks of one tenant costs another one: only when asked for;
                       P measures the form of packed history, beside Parquet: only when asked for;
                       PD measures packed history in a database with a small cache: only when asked for
  --servers <names>    these servers: ${SERVERS.join(',')}
  --rounds <n>         how often each server has its turn (default 5)
  --seconds <s>        how long a workload is measured in a round (default 1.3); of the console, how long
                       its fleet sends packets (default 60); of neighbours, how long each attack (default 3.5);
                       of flood, how long each of its intervals (default 5); of P, each of its CPU times (default 0.5);
                       of PD, how long it stores packets (default 40)
  --scale <n>          so many times the data, which is 1,000 objects and 200,000 packets; of PD, 1,000,000
  --recordings <folder>
                       recordings that P measures, too: CSV files with a column time, in ms, and numbers
  --json <file>        writes every round of every measurement there
  --profile <folder>   writes a CPU profile of each server there (--cpu-prof)
  --mongodb <uri>      a MongoDB for trials, instead of one that is started; databases named as the
                       servers, behind the name that the URI has, are dropped
  -h, --help           this text`;

const QUICK = { rounds: 1, seconds: 0.3 };
const QUICK_SERVERS = 'ours,usual,floor';
const FULL = { rounds: 5, seconds: 1.3 };
/** What `--only` measures beside the workloads. */
const ON_REQUEST = ['H', 'R', 'console', 'neighbours', 'flood', 'P', 'PD'];
/** How many events are sent at once to measure how long webhooks take for them. */
const BACKLOG = 100_000;
const WARM_LEAST_MS = 300;
const WARM_SHARES = { least: 0.5, most: 3 };
const say = (text: string): void => console.error(text);
const quiet = { info() {}, warn() {} };

const text = { type: 'string' } as const;
const ARGUMENTS = {
  quick: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  only: text,
  servers: text,
  rounds: text,
  seconds: text,
  scale: text,
  recordings: text,
  json: text,
  profile: text,
  mongodb: text,
} as const;

function readOptions() {
  const { values } = readCommandLine();
  const usual = values.quick ? QUICK : FULL;
  const only = values.only?.replace(/\bS\b/, 'S1,S2,S3').replace(/\bF\b/, 'F,Fr').split(',');
  const wanted = only?.filter((id) => !ON_REQUEST.includes(id));
  const servers = (values.servers ?? (values.quick ? QUICK_SERVERS : undefined))?.split(',');
  const seconds = parsePositive('seconds', values.seconds, usual.seconds);
  const scale = parsePositive('scale', values.scale, 1);
  const warmMs = Math.max(WARM_LEAST_MS, seconds * 1_000 * WARM_SHARES.least);
  const timing: Timing = { measureMs: seconds * 1_000, warmMs, warmMaxMs: seconds * 1_000 * WARM_SHARES.most };
  return {
    help: values.help,
    json: values.json,
    profile: values.profile,
    mongodb: values.mongodb,
    timing,
    rounds: parsePositive('rounds', values.rounds, usual.rounds),
    size: sizeOf(scale),
    webhooks: only?.includes('H') ?? false,
    rules: only?.includes('R') ?? false,
    console: only?.includes('console') ?? false,
    neighbours: only?.includes('neighbours') ?? false,
    flood: only?.includes('flood') ?? false,
    packed: only?.includes('P') ?? false,
    packedDatabase: only?.includes('PD') ?? false,
    packedDatabaseSeconds: parsePositive('seconds', values.seconds, PACKED_DATABASE_SECONDS),
    packedSeconds: parsePositive('seconds', values.seconds, PACKED_SECONDS),
    recordings: values.recordings ?? null,
    floodSeconds: parsePositive('seconds', values.seconds, FLOOD_SECONDS),
    neighboursSeconds: parsePositive('seconds', values.seconds, NEIGHBOURS_SECONDS),
    consoleSeconds: parsePositive('seconds', values.seconds, CONSOLE_SECONDS),
    scale,
    backlog: Math.max(1_000, Math.round(BACKLOG * Math.min(1, scale))),
    workloads: choose('only', wanted, WORKLOADS, ({ id }) => id),
    servers: choose('servers', servers, SERVERS, String),
  };
}

function readCommandLine() {
  try {
    return parseArgs({ options: ARGUMENTS });
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('. ')[0]}. --help lists the arguments.`);
  }
}

type Options = ReturnType<typeof readOptions>;

function choose<T>(
  name: string,
  given: readonly string[] | undefined,
  from: readonly T[],
  nameOf: (one: T) => string,
): T[] {
  const wanted = given ?? from.map(nameOf);
  const unknown = wanted.find((one) => !from.some((known) => nameOf(known) === one));
  if (unknown !== undefined) throw new UsageError(`--${name}: no ${unknown} among ${from.map(nameOf).join(', ')}`);
  return from.filter((one) => wanted.includes(nameOf(one)));
}

/** Starts a MongoDB for the duration of the measurement. */
async function startMongodb(
  { mongodb: given, packedDatabase }: Pick<Options, 'mongodb' | 'packedDatabase'>,
  folder: string,
): Promise<{ uri: string; stop(): Promise<void> }> {
  if (given !== undefined) return { uri: given, stop: async () => undefined };
  return startEmbedded({
    dataFolder: folder,
    mongodBinary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: quiet,
    ...(packedDatabase && { cacheSizeMb: PACKED_CACHE_MB }),
  });
}

async function prepare(
  uri: string,
  { servers, size, workloads, webhooks, rules }: Options,
): Promise<{ pid: number; version: string }> {
  const client = await new MongoClient(uri).connect();
  try {
    const names = new Set(['ours', ...servers]);
    for (const name of names) await client.db(databaseName(uri, name)).dropDatabase();
    // The console and the neighbours fill their own.
    if (workloads.length > 0 || webhooks || rules) {
      say(`Filling: ${size.objects} objects and their packets …`);
      await fill(uri, [...names], size);
    }
    const { pid, version } = await client.db('admin').command({ serverStatus: 1 });
    return { pid: Number(pid), version };
  } finally {
    await client.close();
  }
}

/** The two floors differ only in live workloads. */
function isMeant(server: ServerName, { kind, withoutFloor, onlyOurs }: Workload): boolean {
  if (onlyOurs === true) return server === 'ours';
  return server === 'floor-tick' ? kind === 'live' : server !== 'floor' || withoutFloor !== true;
}

async function run(options: Options, folder: string, signal: AbortSignal): Promise<{ text: string; results: object }> {
  const mongodb = await startMongodb(options, folder);
  const servers = new Map<ServerName, RunningServer>();
  try {
    const { pid, version } = await prepare(mongodb.uri, options);
    const profileFolder = options.profile === undefined ? null : resolve(options.profile);
    const place = { mongodbUri: mongodb.uri, folder, profileFolder };
    for (const name of options.workloads.length === 0 ? [] : options.servers) {
      const server = await startServer(name, place);
      servers.set(name, server);
      server.freeze();
    }
    // The filled data is still being written to disk.
    await becomeQuiet([pid], options.timing);
    const rounds = new Map<string, Round[]>();
    for (const { round, workload, name } of turnsOf(options)) {
      if (signal.aborted) throw new PlainError('Stopped');
      say(`${round}/${options.rounds}  ${name}  ${workload.id} ${workload.title} …`);
      const key = `${workload.id} ${name}`;
      const given = { mongodProcessId: pid, size: options.size, timing: timingOf(round, options.timing) };
      rounds.set(key, [
        ...(rounds.get(key) ?? []),
        await measured(servers.get(name) as RunningServer, workload, given),
      ]);
    }
    const webhooks = options.webhooks ? await runWebhooks(options, place, pid) : null;
    const ofRules = options.rules ? await runRules(options, place, pid) : null;
    const ofConsole = options.console
      ? await measureConsole({ seconds: options.consoleSeconds, scale: options.scale, place, say })
      : null;
    const ofNeighbours = options.neighbours
      ? await measureNeighbours({ seconds: options.neighboursSeconds, place, say })
      : null;
    const ofFlood = options.flood
      ? await measureFlood({ seconds: options.floodSeconds, scale: options.scale, place, mongodProcessId: pid, say })
      : null;
    const ofPacked = options.packed
      ? await measurePacked({ ...options, seconds: options.packedSeconds, folder, say })
      : null;
    const ofPackedDatabase = options.packedDatabase
      ? await measurePackedDatabase({
          ...options,
          seconds: options.packedDatabaseSeconds,
          place,
          mongodProcessId: pid,
          say,
        })
      : null;
    return toResults(options, rounds, {
      version,
      others: [webhooks, ofRules, ofConsole, ofNeighbours, ofFlood, ofPacked, ofPackedDatabase],
    });
  } finally {
    for (const server of servers.values()) await server.stop();
    await mongodb.stop();
  }
}

/** On a server of its own, which has no other work. */
async function runWebhooks({ size, timing, rounds, backlog }: Options, place: Place, pid: number): Promise<string> {
  const server = await startServer('ours', place);
  try {
    return await measureWebhooks({ server, mongodProcessId: pid, size, timing, rounds, backlog, say });
  } catch (error) {
    throw new PlainError(`H: ${(error as Error).message}\n${await server.said()}`);
  } finally {
    await server.stop();
  }
}

/** On a server of its own, too: it is started again to take over from itself. */
async function runRules(options: Options, place: Place, pid: number): Promise<string> {
  const server = await startServer('ours', place);
  try {
    return await measureRules({ ...options, server, mongodProcessId: pid, place, say });
  } catch (error) {
    throw new PlainError(`R: ${(error as Error).message}\n${await server.said()}`);
  } finally {
    await server.stop();
  }
}

/** The order of measurements: all servers for one workload, then the next, so that compared values are measured within seconds. */
function* turnsOf({ rounds, workloads, servers }: Options) {
  for (let round = 1; round <= rounds; round++) {
    for (const workload of workloads) {
      for (const name of servers) if (isMeant(name, workload)) yield { round, workload, name };
    }
  }
}

/** Later rounds need less warm-up, since the code is compiled. */
function timingOf(round: number, timing: Timing): Timing {
  return round === 1 ? timing : { ...timing, warmMaxMs: timing.warmMs };
}

/** Measures, and adds the log of the server to an error. */
async function measured(server: RunningServer, workload: Workload, given: Parameters<typeof measure>[2]) {
  server.wake();
  try {
    return await measure(server, workload, given);
  } catch (error) {
    throw new PlainError(`${workload.id}: ${(error as Error).message}\n${await server.said()}`);
  } finally {
    server.freeze();
  }
}

function toResults(
  options: Options,
  rounds: ReadonlyMap<string, Round[]>,
  { version, others }: { version: string; others: readonly (string | null)[] },
) {
  const measurements: Measurement[] = [...rounds].map(([key, found]) => {
    const [workload, server] = key.split(' ') as [string, ServerName];
    return { workload, server, rounds: found };
  });
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'CPU'}, Node ${process.versions.node}, MongoDB ${version}`;
  const { objects } = options.size;
  const seconds = options.timing.measureMs / 1_000;
  const rounded = `Medians of ${options.rounds} rounds of ${seconds} s; ${objects.toLocaleString('en-US')} objects; `;
  const note = `${options.console || options.neighbours || options.flood || options.packed || options.packedDatabase ? '' : rounded}${machine}.`;
  const table = options.workloads.length === 0 ? null : toTable(options.workloads, measurements);
  return {
    text: [table, ...others, note].filter((one) => one !== null).join('\n\n'),
    results: { machine, rounds: options.rounds, seconds, size: options.size, measurements, others },
  };
}

async function main(signal: AbortSignal): Promise<void> {
  const options = readOptions();
  if (options.help) {
    console.log(HELP);
    return;
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
  signal.throwIfAborted();
}

await runProgram(main);
