/** Computes the changes that make the service match the files. Pure. */
import { ownValue } from './field-names.js';

/** One difference of a field. */
export interface Difference {
  /** The names of the fields from the entity down to this one. */
  readonly names: readonly string[];
  readonly before: unknown;
  readonly after: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** Write-only fields: they can be set, but not compared. */
const HIDDEN = new Set(['password', 'secret']);

/**
 * Finds the differences between an entity and its description in a file. Fields that the file omits stay unchanged; objects are
 * merged field by field, as in a PATCH. `null` also describes a field that is not there: that is how a user’s `email` is removed.
 */
export function findDifferences(current: Fields, wanted: Fields, outer: readonly string[] = []): Difference[] {
  return Object.entries(wanted).flatMap(([name, after]) => {
    const names = [...outer, name];
    const before = ownValue(current, name);
    if (before === undefined && (HIDDEN.has(name) || after === null)) return [];
    if (isObject(after) && isObject(before)) return findDifferences(before, after, names);
    return isEqual(before, after) ? [] : [{ names, before, after }];
  });
}

/** The body of the PATCH that resolves the differences. */
export function toChange(differences: readonly Difference[]): Record<string, unknown> {
  const change: Record<string, unknown> = {};
  for (const { names, after } of differences) {
    let inner = change;
    for (const name of names.slice(0, -1)) {
      if (!Object.hasOwn(inner, name)) inner[name] = {};
      inner = inner[name] as Record<string, unknown>;
    }
    inner[names.at(-1) as string] = after;
  }
  return change;
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Compares JSON values; the order of fields is ignored. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].every((name) => isEqual(ownValue(a, name), ownValue(b, name)));
}

/** The names of the entities that a value refers to: `{$ref: "models/Truck"}`. */
export function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isObject(value)) return [];
  return typeof value.$ref === 'string' ? [value.$ref] : Object.values(value).flatMap(referencesIn);
}

/** Replaces the references in a value with `_id`s. */
export function resolveReferences(value: unknown, idOf: (reference: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => resolveReferences(item, idOf));
  if (!isObject(value)) return value;
  if (typeof value.$ref === 'string') return idOf(value.$ref);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolveReferences(item, idOf)]));
}
