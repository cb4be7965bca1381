/** What the job of packing plans from: the old rows of an object, and the buckets around them. */

import { LIMITS } from '../../core/limits.js';
import type { PlaceInOrder } from '../../core/packet-order.js';
import { isPackable } from '../../packed/pack.js';
import type { PlacedRow } from '../../packed/plan.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { COMMITTED_READ, type Database } from '../../platform/mongo/driver/client.js';
import { type KeyedRow, type SpanQuery, type StoredSpan, toKeyedRow, toSpan, toSpanFind } from './buckets.js';
import { toFind } from './query.js';
import { readOldest } from './removal.js';

/** The objects whose oldest row is as old, by reading one index key per object. */
export async function findOldObjects(database: Database, toMs: number): Promise<string[]> {
  const found: string[] = [];
  for await (const oldest of readOldest(database)) {
    for (const { _id, time } of oldest)
      if (time <= toMs && found.length < LIMITS.packingObjects) found.push(String(_id));
  }
  return found;
}

export interface OldRow extends KeyedRow, PlacedRow {}

export interface OldRows {
  /** In the order of packets, without those that cannot be packed. */
  readonly rows: readonly OldRow[];
  /** Whether no others are as old. */
  readonly areAll: boolean;
  /** The place of the last one that was read; null where none was. */
  readonly last: PlaceInOrder | null;
}

/** As many rows as are planned together, up to this time, and after this place. */
export async function readOldRows(
  database: Database,
  { objectId, toMs, after }: { readonly objectId: string; readonly toMs: number; readonly after: PlaceInOrder | null },
): Promise<OldRows> {
  const start = after && { ...after, isIncluded: false };
  const find = toFind({ objectIds: [objectId], time: { to: toMs }, start, fields: null, limit: LIMITS.packingRows });
  const rows: OldRow[] = [];
  let last: PlaceInOrder | null = null;
  let read = 0;
  let bytes = 0;
  for await (const batch of rawBatches(database, { ...find, ...COMMITTED_READ })) {
    for (const row of batch.documents) {
      const keyed = toKeyedRow(row);
      read++;
      bytes += row.length;
      if (keyed === null) continue;
      last = keyed;
      if (isPackable(row)) rows.push({ ...keyed, bytes: row.length });
    }
    if (bytes >= LIMITS.packingBytes) return { rows, areAll: false, last };
  }
  return { rows, areAll: read < LIMITS.packingRows, last };
}

/** The buckets that lie between the first and the last row, and one before them. */
export async function findSpansAround(
  database: Database,
  objectId: string,
  { first, last }: { readonly first: PlaceInOrder; readonly last: PlaceInOrder },
): Promise<StoredSpan[]> {
  const [before] = await findSpans(database, { objectId, time: { to: first.timeMs }, isDescending: true, limit: 1 });
  const between = await findSpans(database, { objectId, time: { from: first.timeMs, to: last.timeMs } });
  const isThere = before === undefined || between.some(({ id }) => id.toString('hex') === before.id.toString('hex'));
  return isThere ? between : [before, ...between];
}

/** Where the buckets of a query lie. */
export async function findSpans(database: Database, query: SpanQuery): Promise<StoredSpan[]> {
  const found: StoredSpan[] = [];
  const command = { ...toSpanFind(query), ...COMMITTED_READ };
  for await (const { documents } of rawBatches(database, command)) found.push(...documents.map(toSpan));
  return found;
}
