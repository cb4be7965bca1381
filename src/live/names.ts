/** Who names an object or a group, by `_id` or own id: found by it when it changes. */
import type { Change } from '../core/change.js';

export interface NameIndex<T> {
  /** Replaces the names of one. */
  set(one: T, names: readonly string[]): void;
  /** All that name the entity of this change, as it was or as it is. */
  namedBy(change: Change): ReadonlySet<T>;
}

export function createNameIndex<T>(): NameIndex<T> {
  const byName = new Map<string, Set<T>>();
  const namesOf = new Map<T, readonly string[]>();
  const remove = (name: string, one: T): void => {
    const named = byName.get(name);
    named?.delete(one);
    if (named?.size === 0) byName.delete(name);
  };
  return {
    set(one, names) {
      for (const name of namesOf.get(one) ?? []) remove(name, one);
      if (names.length === 0) namesOf.delete(one);
      else namesOf.set(one, names);
      for (const name of names) byName.set(name, (byName.get(name) ?? new Set()).add(one));
    },
    namedBy(change) {
      if (byName.size === 0) return new Set();
      const { kind, id, before, after } = change;
      // Without both images, it may have had any id.
      if (kind === 'changed' && (before === null || after === null)) return new Set(namesOf.keys());
      return new Set([id, before?.id, after?.id].flatMap((name) => [...(byName.get(String(name)) ?? [])]));
    },
  };
}
