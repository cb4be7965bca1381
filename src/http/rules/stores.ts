/** Stores that administrators add: their schema compiles, their collection is made, and they end when they are empty. */
import { dropCustomStore, isFullOfStores, prepareCustomStore } from '../../db/custom-stores.js';
import { getEntity } from '../../db/entities.js';
import { conflict, notFound } from '../../errors.js';
import { scopeOf } from '../../model/access.js';
import type { JsonObject } from '../../model/json.js';
import { LIMITS } from '../../model/limits.js';
import { compileSchema } from '../../model/schema/schema.js';
import { builtInStore, STORES } from '../../model/stores.js';
import type { Rule, RuleParts } from './rule.js';

export function storeRule({ database }: RuleParts): Rule {
  const check = (fields: JsonObject): void => {
    if (fields.schema !== undefined) compileSchema(fields.schema as JsonObject, () => performance.now());
  };
  return {
    async prepareNew(_caller, fields) {
      if (STORES.has(fields.name as string) || RESERVED.has(fields.name as string)) {
        throw conflict('name: already taken');
      }
      check(fields);
      if (await isFullOfStores(database)) throw conflict(`there are ${LIMITS.customStores} added stores already`);
      await prepareCustomStore(database, fields.name as string);
      return fields;
    },
    async beforeRemove(caller, key) {
      const { name } = await getEntity(database, builtInStore('stores'), scopeOf(caller), key);
      if (typeof name !== 'string') throw notFound();
      const count = await prepareCustomStore(database, name).then((collection) => collection.estimatedDocumentCount());
      if (count > 0) throw conflict('the store is not empty: remove its entities first');
    },
    afterRemove: ({ name }) => dropCustomStore(database, name as string),
  };
}

/** Paths of the interface that no store can have. */
const RESERVED: ReadonlySet<string> = new Set(['auth', 'events', 'packets', 'sessions', 'docs']);
