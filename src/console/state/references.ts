/** The names of entities that others refer to by `_id`. */
import { signal } from '@preact/signals';
import { type Entity, list } from './api.js';
import { may } from './session.js';

export interface Named extends Entity {
  readonly name?: string;
  readonly login?: string;
  /** Of a group. */
  readonly parent?: string;
}

const stores = signal<ReadonlyMap<string, readonly Named[]>>(new Map());
/** By store: what was asked for last. An earlier answer may come later. */
const asked = new Map<string, Promise<readonly Named[]>>();

/** The entities of a store, as soon as they are known; none where the user may not read them. */
export function namedOf(store: string): readonly Named[] {
  if (!asked.has(store) && may('GET', `/${store}`)) {
    const answer = list<Named>(`/${store}`, { only: 'name,login,parent' });
    asked.set(store, answer);
    void answer
      .then((found) => {
        if (asked.get(store) === answer) stores.value = new Map([...stores.value, [store, found]]);
      })
      .catch(() => asked.get(store) === answer && asked.delete(store));
  }
  return stores.value.get(store) ?? [];
}

export const titleOf = ({ login, name, _id }: Named): string => login ?? name ?? _id;

/** A group and all groups below it, as far as the user sees them. */
export function groupsBelow(group: string, all: readonly Named[]): Set<string> {
  const below = new Set([group]);
  for (let size = 0; size !== below.size; ) {
    size = below.size;
    for (const { _id, parent } of all) if (parent !== undefined && below.has(parent)) below.add(_id);
  }
  return below;
}

export function nameOf(store: string, id: unknown): string {
  const found = namedOf(store).find(({ _id }) => _id === id);
  return found === undefined ? String(id ?? '') : titleOf(found);
}

/** Reads them again where they are shown. */
export function forgetNames(store: string): void {
  if (asked.delete(store)) namedOf(store);
}
