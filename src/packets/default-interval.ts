/**
 * The interval of packets for requests without bounds. It is not decided by a packet of a clock that was wrong: earlier by years
 * (docs/reference/times.md), or further ahead than it may be.
 */
import { DAY_MS } from '../core/units.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findBounds } from './ahead.js';
import { LATEST_FIRST, type Range } from './store/query.js';
import { findFirstPacket } from './store/reader.js';

/** Packets that arrive later than this after their time, and are further than this before all others, are of a wrong clock. */
const LONG_AGO_MS = 366 * DAY_MS;

export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Bounds {
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** Replaces missing bounds by those of the packets of all objects; null when there are no packets within. */
export async function completeInterval(
  database: Database,
  objectIds: readonly string[],
  { fromMs, toMs }: Bounds,
): Promise<Interval | null> {
  if (fromMs !== null && toMs !== null) return { fromMs, toMs };
  const firsts: number[] = [];
  const lasts: number[] = [];
  for (const objectId of objectIds) {
    const first = fromMs ?? (await findFirst(database, objectId, toMs));
    const last = toMs ?? (await findLast(database, objectId));
    if (first === null || last === null || first > last) continue;
    firsts.push(first);
    lasts.push(last);
  }
  return firsts.length === 0 ? null : { fromMs: Math.min(...firsts), toMs: Math.max(...lasts) };
}

interface End {
  readonly timeMs: number;
  readonly arrivedMs: number;
}

async function readEnd(
  database: Database,
  objectId: string,
  { time, isLast }: { time?: Range; isLast: boolean },
): Promise<End | null> {
  const sort = isLast ? LATEST_FIRST : null;
  const found = await findFirstPacket(database, { objectIds: [objectId], time, sort, fields: ['time', '_ts'] });
  if (found === null) return null;
  return { timeMs: readNumber(found, 0, 'time'), arrivedMs: readNumber(found, 0, '_ts') / 1_000 };
}

async function findLast(database: Database, objectId: string): Promise<number | null> {
  const last = await readEnd(database, objectId, { isLast: true });
  if (last === null) return null;
  const boundMs = (await findBounds(database, new Map([[objectId, last.timeMs]]))).get(objectId);
  if (boundMs === undefined) return last.timeMs;
  return (await readEnd(database, objectId, { time: { to: boundMs }, isLast: true }))?.timeMs ?? null;
}

/** The first packet that is not of a wrong clock, if it is not later than `toMs`; else the first of all. */
async function findFirst(database: Database, objectId: string, toMs: number | null): Promise<number | null> {
  const first = await readEnd(database, objectId, { isLast: false });
  let next = first;
  while (next !== null && next.arrivedMs - next.timeMs > LONG_AGO_MS) {
    next = await findAfterGap(database, objectId, next.timeMs);
  }
  const isWithin = next !== null && (toMs === null || next.timeMs <= toMs);
  return (isWithin ? next : first)?.timeMs ?? null;
}

/** The first packet after a long time without any; null if there is none. */
async function findAfterGap(database: Database, objectId: string, sinceMs: number): Promise<End | null> {
  let lastMs = sinceMs;
  for (;;) {
    // Few steps, also in a long history: each is as long as a gap.
    const near = await readEnd(database, objectId, { time: { to: lastMs + LONG_AGO_MS }, isLast: true });
    if (near === null || near.timeMs <= lastMs) break;
    lastMs = near.timeMs;
  }
  return readEnd(database, objectId, { time: { above: lastMs }, isLast: false });
}
