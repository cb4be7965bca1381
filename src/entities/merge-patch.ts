/** Converts a PATCH to aggregation expressions. */
import type { Document } from 'mongodb';

/**
 * Converts a PATCH to expressions by field: merges plain objects recursively, also over values that are not objects, and sets all
 * other values, and those of `replaced`. A field name of a client never becomes a path of several steps, nor an operator.
 */
export function toMergeFields(patch: Document, replaced: readonly string[] = []): Document {
  const merged = mergeMembers(patch, '$$ROOT');
  for (const name of replaced) if (Object.hasOwn(patch, name)) merged[name] = { $literal: patch[name] };
  return merged;
}

const mergeMembers = (members: Document, parent: string): Document =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, mergeExpression(parent, name, value)]));

// Each level binds the present value to a variable: full paths of deep members would be far longer than the patch.
function mergeExpression(parent: string, name: string, value: unknown): unknown {
  if (!isPlain(value)) return { $literal: value };
  const present = { $cond: [{ $eq: [{ $type: '$$old' }, 'object'] }, '$$old', {}] };
  const merged = { $mergeObjects: [present, mergeMembers(value, '$$old')] };
  return { $let: { vars: { old: `${parent}.${name}` }, in: merged } };
}

function isPlain(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
