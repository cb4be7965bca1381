/**
 * Finds the buckets that may have packets of given `_id`s. An `_id` whose first four bytes are near its packet's time or arrival, as the
 * service makes them, is found by the least and the greatest of these in the bucket; any other, which a device chose, by a digest in
 * an index of its own.
 */
import { crc32 } from 'node:zlib';
import { type Document, ObjectId } from 'mongodb';
import type { PlaceInOrder } from '../../core/packet-order.js';
import { HOUR_MS, SECOND_MS } from '../../core/units.js';
import { PACKET_KEY } from '../../platform/mongo/bson/reader.js';

/** How far the first four bytes of an `_id` may be from a time to be near it. The service begins some with those of the full hour. */
export const NEAR_MS = HOUR_MS + 10 * SECOND_MS;
const STAMPS_PER_MS = 1_000;
const DIGEST_BITS_DROPPED = 8;
/** How many ranges of `_id`s one filter has. */
const RANGES = 100;

const startOf = (id: Buffer): number => id.readUInt32BE();
const isNear = (start: number, timeMs: number): boolean => Math.abs(start * SECOND_MS - timeMs) <= NEAR_MS;

/** Of 24 bits, which take half the space in the index of 32: a bucket that is read for nothing is rare enough. */
const digestOf = (id: Buffer): number => crc32(id) >>> DIGEST_BITS_DROPPED;

/** The fields of a bucket by which it is found. */
export function toIdFields(rows: readonly (PlaceInOrder & { readonly key: Buffer })[]): Document {
  const near: number[] = [];
  const chosen: number[] = [];
  for (const { key, timeMs, stampUs } of rows) {
    const id = key.subarray(0, PACKET_KEY.OWN_BYTES);
    if (isNear(startOf(id), timeMs) || isNear(startOf(id), stampUs / STAMPS_PER_MS)) near.push(startOf(id));
    else chosen.push(digestOf(id));
  }
  const extent = near.length > 0 && { near: { from: near.reduce(least), to: near.reduce(greatest) } };
  return { ...extent, ...(chosen.length > 0 && { chosen }) };
}

const least = (one: number, other: number): number => Math.min(one, other);
const greatest = (one: number, other: number): number => Math.max(one, other);

/** Filters that together find the buckets of an object that may have these packets, also buckets whose rows are still there. */
export function toIdFilters(objectId: string, ids: readonly Buffer[]): Document[] {
  const _oid = new ObjectId(objectId);
  const sorted = [...ids].sort((one, other) => startOf(one) - startOf(other));
  return chunksOf(rangesOf(sorted), RANGES).map((ranges) => {
    const digests = ranges.flatMap(({ ids }) => ids.map(digestOf));
    const within = ranges.map(({ from, to }) => ({ _oid, 'near.to': { $gte: from }, 'near.from': { $lte: to } }));
    return { $or: [{ _oid, chosen: { $in: digests } }, ...within] };
  });
}

interface IdRange {
  readonly from: number;
  to: number;
  readonly ids: Buffer[];
}

/** Ids that begin near each other share a range. */
function rangesOf(sorted: readonly Buffer[]): IdRange[] {
  const ranges: IdRange[] = [];
  for (const id of sorted) {
    const start = startOf(id);
    const last = ranges.at(-1);
    if (last !== undefined && (start - last.to) * SECOND_MS <= NEAR_MS) {
      last.to = start;
      last.ids.push(id);
    } else ranges.push({ from: start, to: start, ids: [id] });
  }
  return ranges;
}

const chunksOf = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, nth) => all.slice(nth * size, (nth + 1) * size));
