/** Stores that administrators add: their schema compiles, their collection is made, and they end when they are empty. */
import { findPlace } from '../../db/accounts.js';
import { addStore, endStore, isEmptyStore, NOT_EMPTY } from '../../db/custom-stores.js';
import { getEntity } from '../../db/entities.js';
import { badRequest, conflict } from '../../errors.js';
import { type Caller, scopeOf } from '../../model/access.js';
import { ROOT_GROUP_ID } from '../../model/builtin.js';
import type { JsonObject } from '../../model/json.js';
import { compileSchema } from '../../model/schema/schema.js';
import { builtInStore, STORES } from '../../model/stores.js';
import { type Rule, type RuleParts, toNewEntity } from './rule.js';

export function storeRule({ database, findStore, now }: RuleParts): Rule {
  const getStore = (caller: Caller, key: string) => getEntity(database, builtInStore('stores'), scopeOf(caller), key);
  return {
    async create(caller, { fields, group }) {
      const name = fields.name as string;
      if (STORES.has(name) || RESERVED.has(name)) throw conflict('name: already taken');
      checkSchema(fields);
      const place = await findPlace(database, scopeOf(caller), group);
      checkShared(fields, place.group);
      // One that the caller does not see is in nobody's way.
      if ((await findStore(name, scopeOf(caller))) !== null) throw conflict('name: already taken');
      return addStore(database, toNewEntity(caller, fields, place, now()));
    },
    async preparePatch(caller, key, patch) {
      if (patch.shared !== undefined) checkShared(patch, (await getStore(caller, key)).group);
      return patch;
    },
    async beforeRemove(caller, key) {
      if (!(await isEmptyStore(database, await getStore(caller, key)))) throw NOT_EMPTY();
    },
    afterRemove: (entity) => endStore(database, entity),
  };
}

function checkSchema({ schema }: JsonObject): void {
  if (schema !== undefined) compileSchema(schema as JsonObject, () => performance.now());
}

function checkShared({ shared }: JsonObject, group: string): void {
  if (shared === true && group !== ROOT_GROUP_ID) {
    throw badRequest('shared: only a store of the root group can be there for all');
  }
}

/** Paths of the interface that no store can have. */
const RESERVED: ReadonlySet<string> = new Set(['auth', 'events', 'packets', 'sessions', 'docs']);
