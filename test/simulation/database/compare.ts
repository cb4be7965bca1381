/** The order and the equality of values, as the database has them. */
import { Binary, BSON, Decimal128, Double, Int32, Long, ObjectId, Timestamp } from 'mongodb';

/** Types in their order; values of different types are never equal (docs of MongoDB, "Comparison/Sort Order"). */
function rankOf(value: unknown): number {
  if (value === undefined || value === null) return 1;
  if (isNumber(value)) return 2;
  if (typeof value === 'string') return 3;
  if (Array.isArray(value)) return 5;
  if (value instanceof Binary) return 6;
  if (value instanceof ObjectId) return 7;
  if (typeof value === 'boolean') return 8;
  if (value instanceof Date) return 9;
  if (value instanceof Timestamp) return 10;
  if (value instanceof RegExp) return 11;
  return 4;
}

export const isNumber = (value: unknown): boolean =>
  typeof value === 'number' ||
  typeof value === 'bigint' ||
  (value instanceof Long && !(value instanceof Timestamp)) ||
  value instanceof Int32 ||
  value instanceof Double ||
  value instanceof Decimal128;

export function toNumber(value: unknown): number {
  if (typeof value === 'number') return value;
  return value instanceof Long ? value.toNumber() : Number(String(value));
}

export function compareValues(a: unknown, b: unknown): number {
  const rank = rankOf(a);
  const byRank = rank - rankOf(b);
  if (byRank !== 0) return byRank;
  if (rank === 1) return 0;
  if (rank === 2) return toNumber(a) - toNumber(b);
  if (rank === 3) return compareTexts(a as string, b as string);
  if (rank === 5) return compareLists(a as unknown[], b as unknown[]);
  if (rank === 6) return compareBinaries(a as Binary, b as Binary);
  if (rank === 7) return Buffer.compare((a as ObjectId).id, (b as ObjectId).id);
  if (rank === 8) return Number(a) - Number(b);
  if (rank === 9) return (a as Date).getTime() - (b as Date).getTime();
  if (rank === 10) return (a as Timestamp).compare(b as Timestamp);
  return compareObjects(a as object, b as object);
}

export const areEqual = (a: unknown, b: unknown): boolean =>
  a === b ? !Number.isNaN(a) : (typeof a !== 'string' || typeof b !== 'string') && compareValues(a, b) === 0;

const SURROGATE = /[\ud800-\udfff]/;

/** By their bytes, which differ in order from their characters only where there are pairs of them. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  if (SURROGATE.test(a) || SURROGATE.test(b)) return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : 1;
}

function compareLists(a: readonly unknown[], b: readonly unknown[]): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const order = compareValues(a[at], b[at]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareBinaries(a: Binary, b: Binary): number {
  return a.length() - b.length() || a.sub_type - b.sub_type || Buffer.compare(a.value(), b.value());
}

function compareObjects(a: object, b: object): number {
  const ours = Object.entries(a);
  const theirs = Object.entries(b);
  for (let at = 0; at < Math.min(ours.length, theirs.length); at++) {
    const [name, value] = ours[at] as [string, unknown];
    const [otherName, other] = theirs[at] as [string, unknown];
    const order = rankOf(value) - rankOf(other) || compareValues(name, otherName) || compareValues(value, other);
    if (order !== 0) return order;
  }
  return ours.length - theirs.length;
}

/** A value as a key of a map: equal ones have the same key. */
export function keyOf(value: unknown): string {
  if (value instanceof ObjectId) return `o${value.toHexString()}`;
  if (typeof value === 'string') return `s${value}`;
  if (value instanceof Binary) return `b${value.sub_type}:${value.toString('hex')}`;
  if (isNumber(value)) return `n${toNumber(value)}`;
  return `x${Buffer.from(BSON.serialize({ value })).toString('hex')}`;
}
