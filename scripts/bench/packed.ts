// Measures the form of packed history: bytes of a packet beside Parquet with the same fields, and the CPU time to pack and to read it.
import { BSON, ObjectId } from 'mongodb';
import type { Bucket } from '../../src/packed/head.js';
import { pack } from '../../src/packed/pack.js';
import { BucketReader, unpack } from '../../src/packed/unpack.js';
import { createDataSets, type DataSet, readRecordings, toStoredPackets } from './packed-data.js';
import { parquetBytesOf } from './packed-parquet.js';
import { format } from './stats.js';

export interface PackedBench {
  /** How long each CPU time is measured. */
  readonly seconds: number;
  /** Multiplies the packets of a data set. */
  readonly scale: number;
  /** A folder of recordings to measure besides; null for none. */
  readonly recordings: string | null;
  /** Where files may be written. */
  readonly folder: string;
  readonly say: (text: string) => void;
}

/** How long each CPU time is measured unless the command line says it. */
export const PACKED_SECONDS = 0.5;
const PACKETS = 20_000;
const BUCKET_PACKETS = [200, 1_000, 4_000];
const HEAD = [
  '| Packets | `_id`s | per bucket | row: bytes | packed: bytes | × Parquet | pack µs | unpack µs | one field µs | statistics µs |',
  '|---|---|---:|---:|---:|---:|---:|---:|---:|---:|',
];

/** The lines of the results as a Markdown table; everything is for one packet. */
export async function measurePacked(bench: PackedBench): Promise<string> {
  const made = createDataSets(Math.max(PACKETS * bench.scale, BUCKET_PACKETS.at(-1) as number));
  const recorded = bench.recordings === null ? [] : await readRecordings(bench.recordings);
  const lines = [...HEAD];
  for (const dataSet of [...recorded, ...made]) {
    for (const isIdChosen of [false, true]) {
      bench.say(`P  ${dataSet.name}, _ids ${isIdChosen ? 'of devices' : 'of the service'} …`);
      lines.push(...(await measureDataSet(bench, dataSet, isIdChosen)));
    }
  }
  return lines.join('\n');
}

async function measureDataSet(bench: PackedBench, dataSet: DataSet, isIdChosen: boolean): Promise<string[]> {
  const { rows, packets } = toStoredPackets(dataSet, isIdChosen);
  const rowBytes = bytesOf(rows) / rows.length;
  const parquetBytes = (await parquetBytesOf(packets, bench.folder)) / packets.length;
  const field = Object.keys(dataSet.samples[0] ?? {}).find((name) => name !== 'time') ?? 'time';
  const sizes = BUCKET_PACKETS.filter((size) => size <= rows.length);
  return sizes.map((size) => {
    const parts = split(rows, size);
    const buckets = parts.map(pack);
    const packedBytes = bytesOf(buckets.map(toDocument)) / rows.length;
    const cpuUs = (work: () => void): string => format(cpuUsOf(work, bench.seconds) / rows.length);
    const cells = [
      dataSet.name,
      isIdChosen ? 'of devices' : 'of the service',
      size.toLocaleString('en-US'),
      format(rowBytes),
      format(packedBytes),
      format(packedBytes / parquetBytes),
      cpuUs(() => parts.forEach(pack)),
      cpuUs(() => buckets.forEach(unpack)),
      cpuUs(() => {
        for (const bucket of buckets) new BucketReader(bucket).readField(field);
      }),
      cpuUs(() => {
        for (const bucket of buckets) new BucketReader(bucket);
      }),
    ];
    return `| ${cells.join(' | ')} |`;
  });
}

function split(rows: readonly Buffer[], size: number): Buffer[][] {
  return Array.from({ length: Math.ceil(rows.length / size) }, (_, nth) => rows.slice(nth * size, (nth + 1) * size));
}

const bytesOf = (parts: readonly Buffer[]): number => parts.reduce((sum, { length }) => sum + length, 0);

/** What is stored of a bucket (docs/adr/0010-packed-history.md). */
function toDocument(bucket: Bucket): Buffer {
  const { fromMs, toMs, head, columns } = bucket;
  const _id = new ObjectId();
  const n = new BucketReader(bucket).head.rows;
  const document = { _id, _oid: _id, from: fromMs, to: toMs, n, head, columns: Object.fromEntries(columns) };
  return Buffer.from(BSON.serialize(document));
}

/** The CPU time of one run, after a few that compile it. */
function cpuUsOf(work: () => void, seconds: number): number {
  const endOf = (share: number): number => performance.now() + seconds * 1_000 * share;
  for (const warmMs = endOf(0.5); performance.now() < warmMs; ) work();
  const before = process.cpuUsage();
  const endMs = endOf(1);
  let runs = 0;
  do {
    work();
    runs++;
  } while (performance.now() < endMs);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / runs;
}
