/**
 * Reads packets in the order in which they were stored, which neither the rows nor the buckets have. The database sorts the rows; buckets
 * are read for one part of the stamps after the other, each part so short that its packets fit into memory.
 */
import { LIMITS } from '../../core/limits.js';
import type { Documents } from '../../platform/mongo/bson/document-batch.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { type BucketReading, bucketRuns, type FoundSpans } from './bucket-runs.js';
import type { Extent, StoredSpan } from './buckets.js';
import { mergeRuns, type OpenRun, type Run } from './merge.js';
import { type PackedReading, rowRuns, toBucketReading } from './packed-reading.js';
import { toBatches } from './packet-documents.js';
import { toFind } from './query.js';

const US_PER_S = 1_000_000;

export async function* readByStamp(packed: PackedReading): AsyncGenerator<Documents> {
  const { database, reading, options, snapshot, found } = packed;
  if (reading.sort?.path !== '_ts' || reading.sort.descending || reading.fields !== null) {
    throw new Error('packets in an order that needs a limit');
  }
  const spans: { readonly of: FoundSpans; readonly span: StoredSpan }[] = [];
  for (const of of found) for await (const some of of.spans) spans.push(...some.map((span) => ({ of, span })));
  const bucketReading = toBucketReading(packed, null);
  const rows = byStamp(rowRuns(rawBatches(database, { ...toFind(reading), ...snapshot }, options)));
  const segments = mergeRuns(
    [
      packedRuns(
        bucketReading,
        packed,
        spans.map(({ span }) => span),
      ),
      rows,
    ],
    false,
  );
  const batchPackets = reading.batchPackets ?? LIMITS.streamBatchPackets;
  const batching = { skip: reading.skip ?? 0, limit: null, batchPackets };
  yield* toBatches(segments, { ...batching, dropped: new Set() });
}

/** The stamp alone is the place in this order. */
async function* byStamp(runs: AsyncGenerator<Run>): AsyncGenerator<Run> {
  for await (const { first, open } of runs) {
    yield { first: { timeMs: first.stampUs, stampUs: 0 }, open: async () => toStampRun(await open()) };
  }
}

const toStampRun = (run: OpenRun): OpenRun => ({
  ...run,
  times: run.stamps,
  stamps: new Uint8Array(run.starts.length),
});

async function* packedRuns(
  reading: BucketReading,
  { snapshot }: PackedReading,
  spans: readonly StoredSpan[],
): AsyncGenerator<Run> {
  const whole = extentOf(spans);
  if (whole === null) return;
  for (const part of partsOf(whole, spans)) {
    const some = spans.filter(({ stamps }) => stamps.from <= part.to && stamps.to >= part.from);
    if (some.length === 0) continue;
    yield {
      first: { timeMs: part.from, stampUs: 0 },
      open: () => readPart(reading, { snapshot, spans: some, part }),
    };
  }
}

function extentOf(spans: readonly StoredSpan[]): Extent | null {
  if (spans.length === 0) return null;
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const { stamps } of spans) {
    from = Math.min(from, stamps.from);
    to = Math.max(to, stamps.to);
  }
  return { from, to };
}

/** Halves the stamps until what is in each part can be kept. */
function* partsOf(part: Extent, spans: readonly StoredSpan[]): Generator<Extent> {
  const some = spans.filter(({ stamps }) => stamps.from <= part.to && stamps.to >= part.from);
  const bytes = some.reduce((sum, span) => sum + span.bytes * shareOf(span.stamps, part), 0);
  if (bytes <= LIMITS.packedReadBytes || part.to - part.from < US_PER_S) {
    yield part;
    return;
  }
  const middle = Math.floor((part.from + part.to) / 2);
  yield* partsOf({ from: part.from, to: middle }, some);
  yield* partsOf({ from: middle + 1, to: part.to }, some);
}

function shareOf(stamps: Extent, part: Extent): number {
  const common = Math.min(stamps.to, part.to) - Math.max(stamps.from, part.from) + 1;
  return common / (stamps.to - stamps.from + 1);
}

async function readPart(
  reading: BucketReading,
  {
    snapshot,
    spans,
    part,
  }: { readonly snapshot: FoundSpans['snapshot']; readonly spans: readonly StoredSpan[]; readonly part: Extent },
): Promise<OpenRun> {
  const wanted = reading.query.stamps ?? [{}];
  // Whole numbers: both bounds hold.
  const stamps = wanted.map((range) => ({
    ...range,
    from: Math.max(range.from ?? part.from, part.from),
    to: Math.min(range.to ?? part.to, part.to),
  }));
  const query = { ...reading.query, stamps };
  const chosen: { readonly document: Buffer; readonly stamp: number }[] = [];
  for (const span of spans) {
    const one = { snapshot, spans: once([span]) };
    for await (const run of bucketRuns({ ...reading, query, keptBytes: Number.POSITIVE_INFINITY }, one)) {
      const { memory, starts, stamps: found } = await run.open();
      for (let nth = 0; nth < starts.length; nth++) {
        const start = starts[nth] as number;
        // A copy, so that the rest of the bucket is let go.
        const document = Buffer.from(memory.subarray(start, start + memory.readInt32LE(start)));
        chosen.push({ document, stamp: found[nth] as number });
      }
    }
  }
  chosen.sort((one, other) => one.stamp - other.stamp);
  return toStampedRun(chosen);
}

function toStampedRun(chosen: readonly { readonly document: Buffer; readonly stamp: number }[]): OpenRun {
  const starts: number[] = [];
  let pos = 0;
  for (const { document } of chosen) {
    starts.push(pos);
    pos += document.length;
  }
  const memory = Buffer.concat(chosen.map(({ document }) => document));
  return { memory, starts, times: chosen.map(({ stamp }) => stamp), stamps: new Uint8Array(chosen.length) };
}

async function* once<T>(items: T): AsyncGenerator<T> {
  yield items;
}
