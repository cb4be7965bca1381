/** Rules: checks what they refer to and how many there are, and keeps who set them up. */
import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'mongodb';
import { type Caller, scopeOf } from '../core/access.js';
import { merge, ownFields } from '../core/entity.js';
import { badRequest } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { parseRule } from '../core/rule/rule.js';
import { builtInStore } from '../core/stores.js';
import { type HookDeps, type StoreHooks, toNewEntity } from '../entities/hooks.js';
import { inSequence } from '../entities/in-sequence.js';
import { findPlace } from '../entities/place.js';
import { getEntity } from '../entities/read.js';
import { createEntity } from '../entities/write.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { editorOf } from '../webhooks/handler-hooks.js';
import { followSeverity } from './alarm-store.js';
import { checkReferences } from './references.js';
import { loadRule } from './rule-store.js';

const RULES = builtInStore('rules');

/** What decides what a rule reads and does: whoever changes it answers for that with his rights. */
const DECISIVE = ['select', 'when', 'clear', 'then', 'escalate'];

const toEditor = (caller: Caller): JsonObject => {
  const { userId, scopes } = editorOf(caller);
  return { _editor: { user: userId, scopes: scopes === null ? null : [...scopes] } };
};

export function ruleHooks({ database, now }: HookDeps): StoreHooks {
  return {
    async create(caller, { fields, group }) {
      const settings = parseRule(fields);
      const place = await findPlace(database, scopeOf(caller), group);
      await checkReferences(database, caller, settings);
      const { branch } = place;
      return inSequence(`rules of ${branch[1] ?? branch[0]}`, async () => {
        await checkCount(database, branch);
        return createEntity(database, RULES, toNewEntity(caller, { ...fields, ...toEditor(caller) }, place, now()));
      });
    },
    async preparePatch(caller, key, patch) {
      const stored = await getEntity(database, RULES, scopeOf(caller), key);
      const isOther = DECISIVE.some((name) => name in patch && !isDeepStrictEqual(patch[name], stored[name]));
      if (!isOther) return patch;
      // What concurrent changes make of it is checked again when it is stored.
      await checkReferences(database, caller, parseRule(ownFields(RULES, merge(stored, patch, RULES.replaced))));
      return { ...patch, ...toEditor(caller) };
    },
    async afterChange({ _id }, patch) {
      const rule = 'severity' in patch ? await loadRule(database, _id) : null;
      if (rule !== null) await followSeverity(database, _id, parseRule(rule.fields).severity, now());
    },
  };
}

async function checkCount(database: Database, [root, tenant]: readonly string[]): Promise<void> {
  const within = tenant === undefined ? { group: new ObjectId(root) } : { branch: new ObjectId(tenant) };
  const limit = LIMITS.rulesPerTenant;
  const count = await mapDriverErrors(() => database.db.collection('rules').countDocuments(within, { limit }));
  if (count >= limit) throw badRequest(`there are ${limit} rules of your organisation already`);
}
