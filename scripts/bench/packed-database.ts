// Measures packed history in a real database with a small cache: sizes, reads out of the deep past, backups, and what packing costs the
// storing of packets. Everything is measured while all packets are rows, and again when they are packed.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { writeBackup } from '../../src/backup/backup.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';
import { connectDatabase } from '../../src/platform/mongo/schema/connect.js';
import { BEGIN_MS, databaseUri, objectId, type Size } from './data.js';
import type { FromLoad, Job, Result, ToLoad } from './load.js';
import {
  fillHistories,
  type Histories,
  LONGEST,
  PAGE_PACKETS,
  PAGED,
  packHistories,
  timeOf,
  toHistories,
} from './packed-fill.js';
import { readCpuMs } from './process.js';
import { createRandom } from './random.js';
import { type Place, type RunningServer, startServer } from './servers.js';
import { format, percentile } from './stats.js';

export interface PackedDatabaseBench {
  readonly place: Place;
  readonly mongodProcessId: number;
  readonly size: Size;
  /** Multiplies the packets. */
  readonly scale: number;
  /** How long the storing of packets is measured, without and with packing. */
  readonly seconds: number;
  readonly say: (text: string) => void;
}

/** The cache of MongoDB: much smaller than what it stores at a larger scale. */
export const PACKED_CACHE_MB = 512;
export const PACKED_DATABASE_SECONDS = 40;
const PACKETS = 1_000_000;
const OBJECTS = 1_000;
const SMALL = { packets: 20 * PAGE_PACKETS + 50_000, objects: 50 };
/** More than the job packs meanwhile. */
const STORING_PACKETS = 600_000;
const INTERVALS = 300;
const INTERVAL_PACKETS = 100;
const METAS = 20;
const SERIES = 3;
const POINTS = 2_000;
const PACED = { packetsPerSecond: 5_000, packetsPerPost: 100 };
const WARM_MS = 3_000;

/** What is measured of rows, and of buckets. */
interface Measures {
  readonly stored: Stored;
  readonly pageMongodMs: number;
  readonly pageServerMs: number;
  readonly intervalMs: number;
  readonly metaMs: number;
  readonly seriesCpuS: number;
  readonly backupBytes: number;
}

interface Stored {
  readonly bytes: number;
  /** Of these, what MongoDB uses again for new packets. */
  readonly freeBytes: number;
}

/** The lines of the results as Markdown tables. */
export async function measurePackedDatabase(bench: PackedDatabaseBench): Promise<string> {
  const share = Math.min(bench.scale, 1);
  const small = await withHistories(
    bench,
    'small',
    toHistories(SMALL.packets * share, SMALL.objects),
    async (histories) => withServer(bench, 'small', {}, (server) => measureIntervals(server, histories)),
  );
  const table = await withHistories(
    bench,
    'packed',
    toHistories(PACKETS * bench.scale, OBJECTS),
    async (histories, database) => {
      const packets = histories.counts.reduce((sum, count) => sum + count, 0);
      const rows = await measureAll(bench, database, histories);
      bench.say('PD  packing …');
      const packingUs = await measurePacking(bench, database, histories);
      await letGo(database);
      const buckets = await measureAll(bench, database, histories);
      const counts = { packets, longest: histories.counts[LONGEST] as number };
      return [...toTable({ small, rows, buckets }, counts), `| Packing: CPU µs per packet | – | ${packingUs} | |`];
    },
  );
  const storing = await withHistories(bench, 'storing', toHistories(STORING_PACKETS * share, OBJECTS), (_, database) =>
    measureIngest(bench, database),
  );
  return [table, storing].map((lines) => lines.join('\n')).join('\n\n');
}

/**
 * MongoDB keeps what was removed for minutes, for readers of the past, and finds it to be free when it writes checkpoints. Here no reader is
 * left.
 */
async function letGo({ admin }: Database): Promise<void> {
  const { minSnapshotHistoryWindowInSeconds: seconds } = await admin.command({ getParameter: 1, [HISTORY_WINDOW]: 1 });
  await admin.command({ setParameter: 1, [HISTORY_WINDOW]: 0 });
  for (let nth = 0; nth < CHECKPOINTS; nth++) {
    await admin.command({ fsync: 1 });
    await wait(CHECKPOINT_PAUSE_MS);
  }
  await admin.command({ setParameter: 1, [HISTORY_WINDOW]: seconds });
}

const HISTORY_WINDOW = 'minSnapshotHistoryWindowInSeconds';
const CHECKPOINTS = 3;
const CHECKPOINT_PAUSE_MS = 5_000;

/** Without the pauses of the job. This process packs. */
async function measurePacking(
  { mongodProcessId }: PackedDatabaseBench,
  database: Database,
  histories: Histories,
): Promise<string> {
  const processIds = [process.pid, mongodProcessId];
  const beforeMs = processIds.map(readCpuMs);
  const packed = await packHistories(database, histories);
  const [service = Number.NaN, mongod = Number.NaN] = processIds.map(
    (id, at) => ((readCpuMs(id) - (beforeMs[at] as number)) * 1_000) / packed,
  );
  return `${format(service)}, ${format(mongod)} of mongod`;
}

function toTable(
  { small, rows, buckets }: { small: number; rows: Measures; buckets: Measures },
  { packets, longest }: { packets: number; longest: number },
): string[] {
  const line = (title: string, of: (measures: Measures) => number, bar: string): string =>
    `| ${title} | ${format(of(rows))} | ${format(of(buckets))} | ${bar} |`;
  const many = longest.toLocaleString('en-US');
  const usedBytes = ({ stored }: Measures): number => (stored.bytes - stored.freeBytes) / packets;
  return [
    `| ${packets.toLocaleString('en-US')} packets of ${OBJECTS.toLocaleString('en-US')} objects | rows | packed | bar |`,
    '|---|---:|---:|---|',
    line('Bytes per packet on disk, with indexes', usedBytes, '13'),
    line('… with what is free for new packets', ({ stored }) => stored.bytes / packets, ''),
    line('10,000 packets of an object: CPU ms of mongod', ({ pageMongodMs }) => pageMongodMs, '50'),
    line('… of the service', ({ pageServerMs }) => pageServerMs, ''),
    line('Interval of 100 packets: p50 ms', ({ intervalMs }) => intervalMs, `${format(small * 1.3)}: 1.3 × small data`),
    line(`\`meta\` of ${many} packets: p50 ms`, ({ metaMs }) => metaMs, '10, of 1,000,000'),
    line(`${many} packets to 2,000 points: CPU s`, ({ seriesCpuS }) => seriesCpuS, '0.25, of 1,000,000'),
    line('Backup: bytes per packet', ({ backupBytes }) => backupBytes / packets, 'a fifth of that of rows'),
  ];
}

async function withHistories<T>(
  { place, say }: PackedDatabaseBench,
  name: string,
  histories: Histories,
  run: (histories: Histories, database: Database) => Promise<T>,
): Promise<T> {
  const database = await connectDatabase(databaseUri(place.mongodbUri, name));
  try {
    await database.db.dropDatabase();
    // The service creates its collections and indexes.
    await withServer({ place }, name, {}, async () => undefined);
    say(`PD  filling ${name} …`);
    await fillHistories(database, histories);
    return await run(histories, database);
  } finally {
    await database.db.dropDatabase();
    await database.client.close();
  }
}

async function withServer<T>(
  { place }: Pick<PackedDatabaseBench, 'place'>,
  name: string,
  env: Readonly<Record<string, string>>,
  run: (server: RunningServer) => Promise<T>,
): Promise<T> {
  const uri = databaseUri(place.mongodbUri, name);
  const server = await startServer('ours', place, { MONGODB_URI: uri, PACK_AFTER: 'never', ...env });
  try {
    return await run(server);
  } finally {
    await server.stop();
  }
}

async function measureAll(bench: PackedDatabaseBench, database: Database, histories: Histories): Promise<Measures> {
  bench.say('PD  sizes, reads and backup …');
  await database.admin.command({ fsync: 1 });
  const { totalSize, totalFreeStorageSize } = await database.db.command({ dbStats: 1, freeStorage: 1 });
  const backup = join(bench.place.folder, 'backup');
  await writeBackup(database.client, backup, Date.now());
  const backupBytes = await bytesIn(backup);
  await rm(backup, { recursive: true });
  return withServer(bench, 'packed', {}, async (server) => {
    const paged = await measurePages(server, histories, bench.mongodProcessId);
    const intervalMs = await measureIntervals(server, histories);
    const metaMs = await medianMs(METAS, () => get(server, `objects/${objectId(LONGEST)}/packets?meta=true&from=0`));
    const seriesCpuS = await measureSeries(server, bench.mongodProcessId);
    const stored = { bytes: totalSize, freeBytes: totalFreeStorageSize };
    return { stored, ...paged, intervalMs, metaMs, seriesCpuS, backupBytes };
  });
}

async function bytesIn(folder: string): Promise<number> {
  const files = await readdir(folder);
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, file))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function get({ url, token }: RunningServer, path: string): Promise<string> {
  const answer = await fetch(`${url}/api/v1/${path}`, { headers: { Authorization: `Bearer ${token}` } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text.slice(0, 200)}`);
  return text;
}

async function medianMs(count: number, run: (nth: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let nth = 0; nth < count; nth++) {
    const startMs = performance.now();
    await run(nth);
    times.push(performance.now() - startMs);
  }
  return percentile(times, 0.5);
}

/** Every page is one of another object, which nobody has read before. */
async function measurePages(server: RunningServer, { endMs }: Histories, mongodProcessId: number) {
  const processIds = [mongodProcessId, server.processId];
  const before = processIds.map(readCpuMs);
  for (const nth of PAGED) {
    await get(server, `objects/${objectId(nth)}/packets?from=${BEGIN_MS}&to=${endMs}&limit=${PAGE_PACKETS}`);
  }
  const [mongodMs = 0, serverMs = 0] = processIds.map(
    (id, at) => (readCpuMs(id) - (before[at] as number)) / PAGED.length,
  );
  return { pageMongodMs: mongodMs, pageServerMs: serverMs };
}

/** Of all objects that have as many packets, at any place of their history. */
function measureIntervals(server: RunningServer, histories: Histories): Promise<number> {
  const random = createRandom(5);
  const { counts } = histories;
  return medianMs(INTERVALS, () => {
    let nth = 0;
    do nth = Math.floor(random() * counts.length);
    while ((counts[nth] as number) < 2 * INTERVAL_PACKETS);
    const first = Math.floor(random() * ((counts[nth] as number) - INTERVAL_PACKETS));
    const [from, to] = [first, first + INTERVAL_PACKETS - 1].map((at) => timeOf(histories, nth, at));
    return get(server, `objects/${objectId(nth)}/packets?from=${from}&to=${to}&limit=${INTERVAL_PACKETS}`);
  });
}

async function measureSeries(server: RunningServer, mongodProcessId: number): Promise<number> {
  const readMs = (): number => readCpuMs(server.processId) + readCpuMs(mongodProcessId);
  const path = `objects/${objectId(LONGEST)}/series?params=speed&points=${POINTS}`;
  // The first one compiles the code.
  await get(server, path);
  const beforeMs = readMs();
  for (let nth = 0; nth < SERIES; nth++) await get(server, path);
  return (readMs() - beforeMs) / SERIES / 1_000;
}

/** What packing takes, and what it costs the storing of packets. */
async function measureIngest(bench: PackedDatabaseBench, database: Database): Promise<string[]> {
  const lines = ['| Storing 5,000 packets/s | p50 ms | p99 ms | CPU of the service | of mongod | packed per second |'];
  lines.push('|---|---:|---:|---:|---:|---:|');
  for (const [title, PACK_AFTER] of [
    ['without packing', 'never'],
    ['while old packets are packed', '1 d'],
  ] as const) {
    bench.say(`PD  storing packets ${title} …`);
    lines.push(
      await withServer(bench, 'storing', { PACK_AFTER }, (server) =>
        measureStoring(bench, database, { server, title, isPacking: PACK_AFTER !== 'never' }),
      ),
    );
  }
  return lines;
}

async function measureStoring(
  { seconds, size, mongodProcessId }: PackedDatabaseBench,
  database: Database,
  { server, title, isPacking }: { readonly server: RunningServer; readonly title: string; readonly isPacking: boolean },
): Promise<string> {
  const load = fork(fileURLToPath(new URL('./load.js', import.meta.url)), { execArgv: [] });
  try {
    const { url, token } = server;
    const job: Job = { workload: '', part: 'requests', paced: PACED, target: { url, token }, size };
    await ask(load, { job });
    load.send('go' satisfies ToLoad);
    await wait(WARM_MS);
    if (isPacking) await untilPacked(database);
    const processIds = [server.processId, mongodProcessId];
    const before = { cpuMs: processIds.map(readCpuMs), packed: await countPacked(database) };
    await ask(load, 'begin');
    await wait(seconds * 1_000);
    const { result } = (await ask(load, 'end')) as { result: Result };
    const cpu = processIds.map((id, at) => (readCpuMs(id) - (before.cpuMs[at] as number)) / (10 * seconds));
    const packed = ((await countPacked(database)) - before.packed) / seconds;
    if (result.errors > 0) throw new Error(`${result.errors} of ${result.count} requests failed`);
    const cells = [title, format(result.p50), format(result.p99), ...cpu.map((share) => `${Math.round(share)} %`)];
    return `| ${[...cells, format(packed)].join(' | ')} |`;
  } finally {
    load.kill('SIGKILL');
  }
}

/** What is stored first counts after a minute: from then on, the job stores buckets and makes others count. */
async function untilPacked({ db }: Database): Promise<void> {
  const counting = { isPending: false };
  while ((await db.collection('packedPackets').countDocuments(counting, { limit: 1 })) === 0) await wait(WARM_MS);
}

/** Packets in buckets; what is stored and does not count yet has half of its work behind it. */
async function countPacked({ db }: Database): Promise<number> {
  const packets = { $cond: ['$isPending', { $divide: ['$n', 2] }, '$n'] };
  const [found] = await db
    .collection('packedPackets')
    .aggregate([{ $group: { _id: null, packets: { $sum: packets } } }])
    .toArray();
  return found?.packets ?? 0;
}

async function ask(load: ChildProcess, message: ToLoad): Promise<FromLoad> {
  load.send(message);
  const [answer] = (await once(load, 'message')) as [FromLoad];
  if (typeof answer === 'object' && 'failed' in answer) throw new Error(answer.failed);
  return answer;
}
