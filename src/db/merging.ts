/** A PATCH as what the database does with it. */
import type { Document } from 'mongodb';

/**
 * A PATCH as expressions of the database, by field: plain objects are merged leaf by leaf, also over what is no object
 * yet, everything else is set as it is. No name of a client ever becomes a path of more than one step, or an operator.
 */
export function toMergeFields(patch: Document): Document {
  return mergeMembers(patch, '$$ROOT');
}

const mergeMembers = (members: Document, parent: string): Document =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, mergeExpression(parent, name, value)]));

// Each step has what is there by the name of a variable: whole paths would, deep in an object, be far longer than the patch.
function mergeExpression(parent: string, name: string, value: unknown): unknown {
  if (!isPlain(value)) return { $literal: value };
  const present = { $cond: [{ $eq: [{ $type: '$$at' }, 'object'] }, '$$at', {}] };
  const merged = { $mergeObjects: [present, mergeMembers(value, '$$at')] };
  return { $let: { vars: { at: `${parent}.${name}` }, in: merged } };
}

function isPlain(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
