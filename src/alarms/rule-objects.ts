/** Objects as rules see them: who sees them, what selects them, and their rules; kept true by the changes of objects. */
import { LRUCache } from 'lru-cache';
import { type Document, ObjectId } from 'mongodb';
import { type AccessFields, audienceOf } from '../core/access.js';
import { cacheSize } from '../core/cache-size.js';
import type { Change } from '../core/change.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import type { ActiveRule, RuleRegistry, SelectedObject } from './rule-registry.js';
import { toRuleObject } from './rule-test.js';

export interface RuleObject extends SelectedObject {
  readonly owner: string;
  readonly group: string;
  readonly access: readonly string[];
  readonly createdMs: number;
  rules: readonly ActiveRule[];
  /** How many comparisons these cost at most, about. */
  cost: number;
  /** The version of the registry for which these are its rules. */
  version: number;
}

export interface RuleObjects {
  /** Null where there is no such object. */
  find(objectId: string): RuleObject | null | Promise<RuleObject | null>;
  /** Of an object that a query has found. */
  toObject(found: Document): RuleObject;
  apply(change: Change): void;
  forgetAll(): void;
}

export function createRuleObjects(database: Database, registry: RuleRegistry): RuleObjects {
  const known = new LRUCache<string, RuleObject>(cacheSize(LIMITS.cachedObjectFacts));
  let applied = 0;
  const withRules = (object: RuleObject): RuleObject => {
    if (object.version !== registry.version()) {
      object.rules = registry.match(object);
      object.cost = object.rules.reduce((sum, { compiled }) => sum + compiled.cost, 0);
      object.version = registry.version();
    }
    return object;
  };
  const load = async (objectId: string): Promise<RuleObject | null> => {
    const before = applied;
    const find = () => database.db.collection('objects').findOne({ _id: new ObjectId(objectId) });
    const found = await mapDriverErrors(find);
    if (found === null) return null;
    const object = toObject(found);
    if (before === applied) known.set(objectId, object);
    return withRules(object);
  };
  return {
    find(objectId) {
      const found = known.get(objectId);
      return found === undefined ? load(objectId) : withRules(found);
    },
    toObject: (found) => withRules(toObject(found)),
    apply(change) {
      if (change.store !== 'objects') return;
      applied++;
      known.delete(change.id);
    },
    forgetAll() {
      applied++;
      known.clear();
    },
  };
}

function toObject(found: Document): RuleObject {
  const plain = toPlain(found) as JsonObject;
  const access = plain as unknown as AccessFields & { group: string };
  return {
    id: String(plain._id),
    audience: audienceOf(access),
    branch: access.branch,
    owner: access.owner,
    group: access.group,
    access: access.access,
    createdMs: Number(plain.time),
    object: toRuleObject(plain),
    rules: [],
    cost: 0,
    version: -1,
  };
}
