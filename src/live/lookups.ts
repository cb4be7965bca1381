/**
 * What the filter and the permissions of a subscriber name, as the database has it. The feed waits for these look-ups after a change of
 * permissions: what was found is kept while nothing has changed that decides it, and the same names of one user are looked up once.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Caller, objectKeysIn, permittedObjects, type Scope, scopeOf } from '../core/access.js';
import { isId } from '../core/entity.js';
import type { EventFilter } from '../core/feed.js';
import { toOwnId } from '../core/own-id.js';

export interface Finders {
  /** The `_id`s of the given objects (by `_id` or own id) that the scope sees. */
  readonly findObjects: (scope: Scope, keys: readonly string[]) => Promise<string[]>;
  /** The `_id`s of the given groups that are the scope's own group or below it. */
  readonly findGroups: (scope: Scope, ids: readonly string[]) => Promise<string[]>;
}

/** All of a scope that decides which objects and groups its keys find. */
type Viewer = Pick<Scope, 'userId' | 'groupId' | 'objects'>;

/** The keys to look up, and for whom. Null where there is no restriction. */
export interface WantedNames {
  readonly viewer: Viewer;
  /** The objects that the permissions name. */
  readonly permitted: readonly string[] | null;
  /** The objects and the groups of the filter. */
  readonly objects: readonly string[] | null;
  readonly groups: readonly string[] | null;
}

type Part = 'permitted' | 'objects' | 'groups';

/** What was wanted, and the `_id`s of it that were found. */
export interface Found extends Readonly<Record<Part, readonly string[] | null>> {
  readonly wanted: WantedNames;
}

/** What a caller with this filter wants. */
export function wantedBy(caller: Caller, { objects: wantedObjects, groups }: EventFilter): WantedNames {
  const { userId, groupId, objects } = scopeOf(caller);
  const permitted = permittedObjects(caller);
  return {
    viewer: { userId, groupId, objects },
    permitted: permitted === 'all' ? null : permitted,
    objects: wantedObjects,
    groups,
  };
}

/** By `_id` and own id, the objects and groups that decide what is found: after a change of one, it may be something else. */
export function namesIn({ viewer, permitted, objects, groups }: WantedNames): string[] {
  const keys = [...(permitted ?? []), ...(objects ?? []), ...(groups ?? [])];
  // An own id may have been stored before its form was required.
  const names = keys.flatMap((key) => (isId(key) ? [key.toLowerCase()] : [key, toOwnId(key)]));
  return [...new Set([...names, ...viewer.objects.map(({ objectId }) => objectId)])];
}

/** The own ids by which the credentials of a caller name objects. */
export const ownIdsIn = ({ credentials, scopes }: Caller): string[] => [
  ...new Set(objectKeysIn([...credentials, ...(scopes ?? [])]).filter((key) => !isId(key))),
];

type NamedStore = 'objects' | 'groups';

export interface Lookups {
  /** Finds what the caller wants, except what it kept from an earlier time. */
  find(caller: Caller, wanted: WantedNames, kept: Found | null): Promise<Found>;
}

/** Look-ups at one moment, such as those after one change: users share none, as they see different objects. */
export function createLookups({ findObjects, findGroups }: Finders): Lookups {
  const begun = new Map<string, Promise<readonly string[]>>();
  const begin = (
    scope: Scope,
    viewer: Viewer,
    store: NamedStore,
    keys: readonly string[],
  ): Promise<readonly string[]> => {
    const { userId, groupId, objects } = viewer;
    const asked = JSON.stringify([userId, groupId, objects, store, keys]);
    const ids = begun.get(asked) ?? (store === 'objects' ? findObjects(scope, keys) : findGroups(scope, keys));
    begun.set(asked, ids);
    return ids;
  };
  return {
    async find(caller, wanted, kept) {
      const scope = scopeOf(caller);
      const { viewer } = wanted;
      const isKept = kept !== null && isDeepStrictEqual(kept.wanted.viewer, viewer);
      const find = (part: Part, store: NamedStore): Promise<readonly string[]> | readonly string[] | null => {
        const keys = wanted[part];
        if (keys === null || keys.length === 0) return keys;
        if (isKept && isDeepStrictEqual(kept.wanted[part], keys)) return kept[part];
        return begin(scope, viewer, store, keys);
      };
      const permitted = await find('permitted', 'objects');
      const groups = await find('groups', 'groups');
      return { wanted, permitted, groups, objects: await find('objects', 'objects') };
    },
  };
}
