/**
 * Plans which rows of an object become which bucket. Pure: the caller reads the rows and the spans of the buckets, and carries out
 * the steps.
 *
 * Buckets of an object follow each other in the order of packets and at most touch. A bucket is written once it is full. A run of
 * rows that does not fill one waits; once it has waited for as long again as rows do, it becomes a smaller bucket, which later rows
 * are added to. Each addition is at least half as large as the bucket, or fills it, so that a packet that came in order is packed a few
 * times at most. Late rows inside a bucket are packed into it by the hundred, each time with all of its packets.
 */
import { LIMITS } from '../core/limits.js';
import type { PlaceInOrder } from '../core/packet-order.js';
import type { Bucket } from './head.js';
import { pack, TooManyFieldsError } from './pack.js';

const STAMPS_PER_MS = 1_000;
/** The least share of a full bucket that is worth a bucket, or an exchange of one for late rows. */
const LEAST_SHARE = 1 / 10;
/** A bucket that is replaced grows by this share of it. */
const GROWTH_SHARE = 1 / 2;

/** A stored row that is packable. */
export interface PlacedRow extends PlaceInOrder {
  readonly bytes: number;
}

/** What is known of a bucket without its packets. */
export interface BucketSpan {
  readonly from: PlaceInOrder;
  readonly to: PlaceInOrder;
  readonly packets: number;
  /** The size of its packets as rows. */
  readonly bytes: number;
}

export interface PlanInput<Row extends PlacedRow, Span extends BucketSpan> {
  /** In the order of packets. */
  readonly rows: readonly Row[];
  /** Whether there are no more rows behind them. */
  readonly areAll: boolean;
  /** In the order of packets; all that lie between the rows, and one before them. */
  readonly spans: readonly Span[];
  readonly nowMs: number;
  readonly packAfterMs: number;
}

/** These rows, together with the packets of a bucket if one is replaced, become a bucket: rarely two, where the result is too large. */
export interface PackingStep<Row, Span> {
  readonly rows: readonly Row[];
  readonly replaced: Span | null;
}

/** The steps can be carried out in any order: each has rows and buckets of its own. */
export function planPacking<Row extends PlacedRow, Span extends BucketSpan>(
  input: PlanInput<Row, Span>,
): PackingStep<Row, Span>[] {
  const { spans, nowMs, packAfterMs } = input;
  const old = input.rows.filter((row) => isOlder(row, nowMs - packAfterMs));
  const { late, runs } = sortOut(old, spans);
  const steps: PackingStep<Row, Span>[] = [];
  for (const [nth, rows] of late) {
    if (rows.length >= leastPackets()) steps.push({ rows, replaced: spans[nth] as Span });
  }
  const replaced = new Set(steps.map((step) => step.replaced));
  const ripeMs = nowMs - 2 * packAfterMs;
  for (const [nth, rows] of runs) {
    const before = spans[nth - 1] ?? null;
    // It has grown by the next time.
    if (before !== null && replaced.has(before)) continue;
    const isCut = !input.areAll && rows.at(-1) === old.at(-1);
    steps.push(...stepsOf(rows, { before, ripeMs: isCut ? Number.NEGATIVE_INFINITY : ripeMs }));
  }
  return steps;
}

const leastPackets = (): number => Math.ceil(LIMITS.bucketPackets * LEAST_SHARE);

/** Both its time and its arrival: a late packet has neighbors that still come. */
const isOlder = ({ timeMs, stampUs }: PlaceInOrder, limitMs: number): boolean =>
  timeMs <= limitMs && stampUs <= limitMs * STAMPS_PER_MS;

const compare = (one: PlaceInOrder, other: PlaceInOrder): number =>
  one.timeMs - other.timeMs || one.stampUs - other.stampUs;

/** Rows inside a bucket, by its number; and runs of rows between buckets, by the number of the bucket behind them. */
function sortOut<Row extends PlacedRow>(rows: readonly Row[], spans: readonly BucketSpan[]) {
  const late = new Map<number, Row[]>();
  const runs = new Map<number, Row[]>();
  let nth = 0;
  for (const row of rows) {
    for (let span = spans[nth]; span !== undefined && compare(span.to, row) < 0; span = spans[++nth]);
    const span = spans[nth];
    const found = span !== undefined && compare(span.from, row) <= 0 ? late : runs;
    const others = found.get(nth);
    if (others === undefined) found.set(nth, [row]);
    else others.push(row);
  }
  return { late, runs };
}

/** Continues the bucket before a run if there is space in it, fills buckets, and keeps what does not fill one until it is ripe. */
function stepsOf<Row extends PlacedRow, Span extends BucketSpan>(
  run: readonly Row[],
  { before, ripeMs }: { readonly before: Span | null; readonly ripeMs: number },
): PackingStep<Row, Span>[] {
  const steps: PackingStep<Row, Span>[] = [];
  let replaced = before !== null && hasSpace(before) ? before : null;
  let packets = replaced?.packets ?? 0;
  let bytes = replaced?.bytes ?? 0;
  let rows: Row[] = [];
  for (const row of run) {
    rows.push(row);
    packets++;
    bytes += row.bytes;
    if (packets < LIMITS.bucketPackets && bytes < LIMITS.bucketBytes) continue;
    steps.push({ rows, replaced });
    replaced = null;
    packets = 0;
    bytes = 0;
    rows = [];
  }
  const least = Math.max(leastPackets(), (replaced?.packets ?? 0) * GROWTH_SHARE);
  const [first] = rows;
  if (first !== undefined && rows.length >= least && isOlder(first, ripeMs)) steps.push({ rows, replaced });
  return steps;
}

const hasSpace = ({ packets, bytes }: BucketSpan): boolean =>
  packets < LIMITS.bucketPackets && bytes < LIMITS.bucketBytes / 2;

/** Packs the rows of a step, in the order of packets: into equal parts if they are too many, too large, or of too many fields. */
export function packEvenly(rows: readonly Buffer[]): Bucket[] {
  const bytes = rows.reduce((sum, { length }) => sum + length, 0);
  const parts = Math.max(Math.ceil(rows.length / LIMITS.bucketPackets), Math.floor(bytes / LIMITS.bucketBytes), 1);
  const most = Math.ceil(rows.length / Math.min(parts, rows.length));
  if (most < rows.length) {
    return Array.from({ length: Math.ceil(rows.length / most) }, (_, nth) =>
      packEvenly(rows.slice(nth * most, (nth + 1) * most)),
    ).flat();
  }
  try {
    return [pack(rows)];
  } catch (error) {
    if (!(error instanceof TooManyFieldsError)) throw error;
    const half = Math.ceil(rows.length / 2);
    return [...packEvenly(rows.slice(0, half)), ...packEvenly(rows.slice(half))];
  }
}
