/** What some stores do beside storing: one row per store that does. */
import { groupRule } from './rules/groups.js';
import { objectRule } from './rules/objects.js';
import type { Rule, RuleParts } from './rules/rule.js';
import { storeRule } from './rules/stores.js';
import { roleRule, tokenRule, userRule } from './rules/users.js';

export function createRules(parts: RuleParts): ReadonlyMap<string, Rule> {
  return new Map<string, Rule>([
    ['objects', objectRule(parts)],
    ['users', userRule(parts)],
    ['roles', roleRule(parts)],
    ['tokens', tokenRule(parts)],
    ['groups', groupRule(parts)],
    ['stores', storeRule(parts)],
  ]);
}
