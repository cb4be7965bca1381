/** Rules by what decides about them: whose objects they read, and what else they depend on. Pure. */

export interface RuleKeys {
  set(ruleId: string, keys: Iterable<string>): void;
  delete(ruleId: string): void;
  find(key: string): Iterable<string>;
  has(key: string): boolean;
  clear(): void;
}

const NONE: readonly string[] = [];

export function createRuleKeys(): RuleKeys {
  const byKey = new Map<string, Set<string>>();
  const keysOf = new Map<string, readonly string[]>();
  const remove = (ruleId: string): void => {
    for (const key of keysOf.get(ruleId) ?? NONE) {
      const same = byKey.get(key);
      same?.delete(ruleId);
      if (same?.size === 0) byKey.delete(key);
    }
    keysOf.delete(ruleId);
  };
  return {
    set(ruleId, keys) {
      remove(ruleId);
      const own = [...new Set(keys)];
      keysOf.set(ruleId, own);
      for (const key of own) {
        const same = byKey.get(key);
        if (same === undefined) byKey.set(key, new Set([ruleId]));
        else same.add(ruleId);
      }
    },
    delete: remove,
    find: (key) => byKey.get(key) ?? NONE,
    has: (key) => byKey.has(key),
    clear() {
      byKey.clear();
      keysOf.clear();
    },
  };
}
