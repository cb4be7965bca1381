/** Computes exact series of objects' parameters from their packets. Only the results stay in memory. */

import { badRequest, tooLarge } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { completeInterval, type Interval } from '../packets/default-interval.js';
import { streamPackets, streamParts } from '../packets/packet-stream.js';
import type { HistoryPart } from '../packets/store/history-parts.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { createWorkClock, type WorkClock } from '../platform/mongo/driver/work-clock.js';
import { findMatchingNames } from './matching-names.js';
import { bucketStarts } from './series/calendar.js';
import { type Buckets, Column } from './series/column.js';
import { isOfStatistics } from './series/functions.js';
import { checkCells, divideInterval, type SeriesQuery } from './series/query.js';
import { createValueStores } from './series/value-store.js';
import { ColumnFeed } from './series-feed.js';

/** The columns of an object, in the order of the parameters. */
export interface ObjectSeries {
  readonly objectId: string;
  /** The parameters: those that are named, then those that match patterns. */
  readonly paths: readonly string[];
  readonly columns: readonly Column[];
}

export interface Series {
  /** The interval that was asked for, or else that of the packets; null without packets. */
  readonly interval: Interval | null;
  readonly starts: Float64Array;
  readonly objects: readonly ObjectSeries[];
}

interface Task {
  readonly database: Database;
  readonly query: SeriesQuery;
  readonly nowMs: number;
  readonly clock: WorkClock;
}

/** Throws 413 when the work takes longer than `workMs`. */
export async function readSeries(
  database: Database,
  objectIds: readonly string[],
  { query, nowMs, workMs = LIMITS.seriesMs }: { query: SeriesQuery; nowMs: number; workMs?: number },
): Promise<Series> {
  const clock = createWorkClock(database, workMs, () =>
    tooLarge(
      `the series takes longer than ${workMs / 1_000} s to compute: request a shorter interval or fewer objects`,
    ),
  );
  const task: Task = { database: clock.database, query, nowMs, clock };
  const interval = await completeInterval(task.database, objectIds, query);
  if (interval === null) return { interval, starts: new Float64Array(), objects: [] };
  const buckets = await createBuckets(query, interval);
  checkCells(buckets.starts.length, query, objectIds.length * query.paths.length);
  const objects: ObjectSeries[] = [];
  let columns = objectIds.length * query.paths.length;
  for (const objectId of objectIds) {
    const paths = await findPaths(task, buckets, objectId);
    columns += paths.length - query.paths.length;
    checkCells(buckets.starts.length, query, columns);
    objects.push(await readObject({ ...task, query: { ...query, paths } }, buckets, objectId));
  }
  return { interval, starts: buckets.starts, objects };
}

async function createBuckets(
  { points, every, zone }: SeriesQuery,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<Buckets> {
  if (every === null) {
    const { stepMs, count } = divideInterval(fromMs, toMs, points);
    return {
      fromMs,
      starts: Float64Array.from({ length: count }, (_, index) => fromMs + index * stepMs),
      endMs: toMs + 1,
    };
  }
  const starts: number[] = [];
  let sinceMs = clock.steadyMs();
  for (const start of bucketStarts(every, zone, fromMs)) {
    if (start > toMs) break;
    if (starts.push(start) > LIMITS.seriesPointsMax) {
      throw badRequest(`every: the interval has more than ${LIMITS.seriesPointsMax} of them`);
    }
    if (clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
    await clock.nextTurn();
    sinceMs = clock.steadyMs();
  }
  return { fromMs, starts: Float64Array.from(starts), endMs: toMs + 1 };
}

/** The parameters that are named, and those that match patterns: at the beginning of the interval, others hold. */
async function findPaths(
  { database, query, clock: workClock }: Task,
  { fromMs, endMs }: Buckets,
  objectId: string,
): Promise<readonly string[]> {
  const { paths, patterns, gapMs } = query;
  if (patterns.length === 0) return paths;
  const search = { objectId, fromMs: fromMs - (gapMs ?? 0), endMs, patterns };
  return [...new Set([...paths, ...(await findMatchingNames(database, workClock, search))])];
}

async function readObject(task: Task, buckets: Buckets, objectId: string): Promise<ObjectSeries> {
  const { query, nowMs } = task;
  const holding = { gapMs: query.gapMs, untilMs: Math.min(buckets.endMs, Math.max(nowMs, buckets.fromMs)) };
  const createStore = createValueStores();
  const { functions, counterBits } = query;
  const columns = query.paths.map(() => new Column({ buckets, functions, holding, counterBits, createStore }));
  const feed = new ColumnFeed(query, columns);
  if (query.gapMs !== null) await readBefore(task, { feed, objectId, fromMs: buckets.fromMs, gapMs: query.gapMs });
  const canSumUp = functions.every(isOfStatistics);
  const reading = {
    objectIds: [objectId],
    time: { from: buckets.fromMs, below: buckets.endMs },
    fields: query.paths,
    isSummedUp: (fromMs: number, toMs: number) => canSumUp && areInOne(buckets, fromMs, toMs),
    needsLastTime: query.gapMs !== null,
  };
  for await (const part of streamParts(task.database, reading)) await task.clock.count(() => takePart(feed, part));
  await task.clock.count(() => feed.finish());
  return { objectId, paths: query.paths, columns };
}

function takePart(feed: ColumnFeed, part: HistoryPart): Promise<void> {
  if (part.kind === 'columns') return feed.takeColumns(part);
  return part.kind === 'statistics' ? feed.takeStatistics(part) : feed.take(part);
}

/** Whether both times are in the same bucket. */
function areInOne({ starts }: Buckets, fromMs: number, toMs: number): boolean {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((starts[middle] as number) <= fromMs) low = middle;
    else high = middle;
  }
  return high === starts.length || toMs < (starts[high] as number);
}

/** Reads the values at the beginning of the interval: the last ones before it. */
async function readBefore(
  { database, query, clock }: Task,
  { feed, objectId, fromMs, gapMs }: { feed: ColumnFeed; objectId: string; fromMs: number; gapMs: number },
): Promise<void> {
  const time = { above: fromMs - gapMs, below: fromMs };
  const from = { objectIds: [objectId], time, isDescending: true };
  const reading = { ...from, fields: query.paths, batchPackets: FEW_PACKETS };
  let packets = 0;
  for await (const batch of streamPackets(database, reading)) {
    packets += batch.starts.length;
    const isComplete = await clock.count(() => feed.takeBefore(batch));
    if (isComplete || packets >= LIMITS.seriesPacketsBefore) break;
  }
}

/** A small batch, because the last packet nearly always has all parameters. */
const FEW_PACKETS = 100;
