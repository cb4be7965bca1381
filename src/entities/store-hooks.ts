/** Custom stores: checks their schema, creates their collection, and removes them only if they are empty. */

import type { Scope } from '../core/access.js';
import { type Caller, scopeOf } from '../core/access.js';
import { ROOT_GROUP_ID } from '../core/builtin.js';
import { badRequest, conflict } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { compileSchema } from '../core/schema/schema.js';
import type { Store } from '../core/stores.js';
import { builtInStore, STORES } from '../core/stores.js';
import { clock } from '../platform/clock.js';
import { addStore, assertEmptyStore, removeStore } from './custom-stores.js';
import { type HookDeps, type StoreHooks, toNewEntity } from './hooks.js';
import { inSequence } from './in-sequence.js';
import { findPlace } from './place.js';
import { getEntity } from './read.js';

export interface StoreHookDeps extends HookDeps {
  /** Returns the store of this name if the scope may use it, otherwise null. */
  readonly findStore: (name: string, scope: Scope) => Promise<Store | null>;
}

export function storeHooks({ database, findStore, now }: StoreHookDeps): StoreHooks {
  const getStore = (caller: Caller, key: string) => getEntity(database, builtInStore('stores'), scopeOf(caller), key);
  return {
    async create(caller, { fields, group }) {
      const name = fields.name as string;
      if (STORES.has(name) || RESERVED.has(name)) throw conflict('name: already taken');
      checkSchema(fields);
      const place = await findPlace(database, scopeOf(caller), group);
      checkShared(fields, place.group);
      // A store of another tenant that the caller does not see is no conflict.
      if ((await findStore(name, scopeOf(caller))) !== null) throw conflict('name: already taken');
      return inSequence('stores', () => addStore(database, toNewEntity(caller, fields, place, now())));
    },
    async preparePatch(caller, key, patch) {
      if (patch.shared !== undefined) checkShared(patch, (await getStore(caller, key)).group);
      return patch;
    },
    async beforeRemove(caller, key) {
      await assertEmptyStore(database, await getStore(caller, key), scopeOf(caller));
    },
    afterRemove: (entity) => removeStore(database, entity),
  };
}

function checkSchema({ schema }: JsonObject): void {
  if (schema !== undefined) compileSchema(schema as JsonObject, () => clock.cpuMs());
}

function checkShared({ shared }: JsonObject, group: string): void {
  if (shared === true && group !== ROOT_GROUP_ID) {
    throw badRequest('shared: only a store of the root group can be shared');
  }
}

/** API paths that are not available as names of stores. */
const RESERVED: ReadonlySet<string> = new Set([
  'account',
  'auth',
  'events',
  'geocoder',
  'in',
  'packets',
  'reports',
  'series',
  'sessions',
  'settings',
  'shared',
  'docs',
]);
