/** Objects as rules see them: who sees them, what selects them, and their rules; kept true by the changes of objects. */
import { LRUCache } from 'lru-cache';
import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import { type AccessFields, audienceOf } from '../core/access.js';
import { cacheSize } from '../core/cache-size.js';
import type { Change } from '../core/change.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { type DocumentBatch, parseDocuments } from '../platform/mongo/bson/document-batch.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import type { SelectedObject } from './active-rule.js';
import { type Matched, NO_RULES, type RuleRegistry } from './rule-registry.js';
import { tenantOf } from './rule-store.js';
import { toRuleObject } from './rule-test.js';

export interface RuleObject extends SelectedObject, Matched {
  /** Whose work it makes, in turns with that of others. */
  readonly tenant: string;
  readonly owner: string;
  readonly group: string;
  readonly access: readonly string[];
  readonly createdMs: number;
}

/** An object with its rules, without what their conditions read of it. */
export type MatchedObject = Pick<RuleObject, 'id' | 'audience' | 'tenant' | 'set'>;

/** What rules select objects by. */
const SELECTING_FIELDS = { owner: 1, group: 1, branch: 1, access: 1, model: 1, labels: 1 };

export interface RuleObjects {
  /** Null where there is no such object. */
  find(objectId: string): RuleObject | null | Promise<RuleObject | null>;
  /** Reads those that are not known, in one query: they are found at once then. Throws 503. */
  read(objectIds: Iterable<string>): Promise<void>;
  /** The tenant of an object that is known; null where it is not. */
  tenantFor(objectId: string): string | null;
  /** The objects that a query finds by their `_id`s, with the rules of each; none of them is remembered. Throws 503. */
  match(filter: Filter<Document>, batchSize?: number): AsyncGenerator<readonly MatchedObject[]>;
  apply(change: Change): void;
  forgetAll(): void;
}

export function createRuleObjects(database: Database, registry: RuleRegistry): RuleObjects {
  const known = new LRUCache<string, RuleObject>(cacheSize(LIMITS.cachedObjectFacts));
  let applied = 0;
  const withRules = (object: RuleObject): RuleObject => {
    registry.update(object);
    return object;
  };
  const load = async (objectIds: readonly string[]): Promise<RuleObject[]> => {
    const before = applied;
    const named = { _id: { $in: objectIds.map((id) => new ObjectId(id)) } };
    const found = await mapDriverErrors(() => database.db.collection('objects').find(named).toArray());
    const objects = found.map((document) => toObject(toPlain(document) as JsonObject));
    if (before === applied) for (const object of objects) known.set(object.id, object);
    return objects;
  };
  const loadOne = async (objectId: string): Promise<RuleObject | null> => {
    const [object] = await load([objectId]);
    return object === undefined ? null : withRules(object);
  };
  return {
    find(objectId) {
      const found = known.get(objectId);
      return found === undefined ? loadOne(objectId) : withRules(found);
    },
    async read(objectIds) {
      const unknown = [...new Set(objectIds)].filter((id) => !known.has(id));
      for (let from = 0; from < unknown.length; from += LIMITS.pastObjectsBatch) {
        await load(unknown.slice(from, from + LIMITS.pastObjectsBatch));
      }
    },
    tenantFor: (objectId) => known.peek(objectId)?.tenant ?? null,
    async *match(filter, batchSize = LIMITS.historyPage) {
      const command = { find: 'objects', filter, projection: SELECTING_FIELDS, batchSize };
      for await (const batch of rawBatches(database, command, { readsAhead: true }))
        yield parseObjects(batch).map((plain) => withRules(toObject(plain)));
    },
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

function parseObjects(batch: DocumentBatch): JsonObject[] {
  try {
    return parseDocuments(batch);
  } catch {
    // A foreign writer stored a type without a JSON form.
    return batch.documents.map((document) => toPlain(BSON.deserialize(document)) as JsonObject);
  }
}

function toObject(plain: JsonObject): RuleObject {
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
    tenant: tenantOf(access),
    set: NO_RULES,
    version: -1,
  };
}
