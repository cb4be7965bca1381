/** What a security event says of a change, as rows: a field, its former and its new value. */
import type { Entity } from '../state/api.js';

export interface ChangedValue {
  /** The path of a member, such as `config.plate`. */
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
  /** False for a value that the event does not contain, such as a password. */
  readonly isShown: boolean;
}

export function changedValuesOf({ fields, before, after }: Entity): ChangedValue[] {
  const old = leavesOf(before);
  const young = leavesOf(after);
  const paths = [...new Set([...old.keys(), ...young.keys()])];
  const names = Array.isArray(fields) ? fields.map(String) : [];
  return names.flatMap((name): ChangedValue[] => {
    const own = paths.filter((path) => path === name || path.startsWith(`${name}.`));
    if (own.length === 0) return [{ path: name, before: undefined, after: undefined, isShown: false }];
    return own.map((path) => ({ path, before: old.get(path), after: young.get(path), isShown: true }));
  });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function leavesOf(value: unknown, path = '', found = new Map<string, unknown>()): Map<string, unknown> {
  if (!isObject(value) || (path !== '' && Object.keys(value).length === 0)) {
    if (path !== '') found.set(path, value);
    return found;
  }
  for (const [name, member] of Object.entries(value)) leavesOf(member, path === '' ? name : `${path}.${name}`, found);
  return found;
}
