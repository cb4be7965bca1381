/** The rules of an object, and which of them a packet may concern. Pure. */
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { SingleCondition } from '../core/rule/condition.js';
import type { ActiveRule } from './active-rule.js';
import type { HeldState } from './partition-memory.js';

export interface RuleSet {
  readonly rules: readonly ActiveRule[];
  readonly readsLast: boolean;
  readonly readsFix: boolean;
  /** The steps that the expressions of one rule may take for a packet. */
  readonly stepsOfRule: number;
  has(rule: ActiveRule): boolean;
  find(ruleId: string): ActiveRule | undefined;
  /** The rules that a packet may concern: by what it contains, or because time goes on. */
  concernedBy(packet: JsonObject, states: ReadonlyMap<string, HeldState> | undefined): Iterable<ActiveRule>;
}

/** With so few rules, looking at all of them is quicker than finding out which ones. */
const FEW = 8;

export function createRuleSet(rules: readonly ActiveRule[]): RuleSet {
  const common = {
    rules,
    readsLast: rules.some(({ compiled }) => compiled.readsLast),
    readsFix: rules.some(({ compiled }) => compiled.readsFix),
    stepsOfRule: stepsOfRule(rules),
  };
  if (rules.length <= FEW) {
    const find = (ruleId: string): ActiveRule | undefined => rules.find(({ id }) => id === ruleId);
    return { ...common, find, has: (rule) => rules.includes(rule), concernedBy: () => rules };
  }
  const byId = new Map(rules.map((rule) => [rule.id, rule]));
  const always = rules.filter((rule) => paramsOf(rule) === null);
  const byParam = new Map<string, ActiveRule[]>();
  for (const rule of rules) {
    for (const name of paramsOf(rule) ?? []) {
      const same = byParam.get(name);
      if (same === undefined) byParam.set(name, [rule]);
      else same.push(rule);
    }
  }
  return {
    ...common,
    has: (rule) => byId.get(rule.id) === rule,
    find: (ruleId) => byId.get(ruleId),
    concernedBy(packet, states) {
      const found = new Set(always);
      for (const name of Object.keys(packet)) {
        const reading = byParam.get(name);
        if (reading !== undefined) for (const rule of reading) found.add(rule);
      }
      if (states === undefined) return found;
      for (const [ruleId, { state }] of states) {
        const rule = state.phase === 'idle' ? undefined : byId.get(ruleId);
        if (rule !== undefined) found.add(rule);
      }
      return found;
    },
  };
}

/** All have the same share: what one of them takes is not missing to another one. */
function stepsOfRule(rules: readonly ActiveRule[]): number {
  const count = rules.filter(({ compiled }) => compiled.hasExpression).length;
  return Math.min(LIMITS.expressionSteps, Math.floor(LIMITS.objectExpressionSteps / Math.max(1, count)));
}

/** The parameters without which a packet says nothing to an idle rule; null where it may say something without any. */
function paramsOf({ compiled }: ActiveRule): readonly string[] | null {
  if (compiled.settings.schedule !== null) return null;
  const names = new Set<string>();
  for (const { condition } of compiled.singles) {
    const name = paramOf(condition);
    if (name === null) return null;
    names.add(name);
  }
  return [...names];
}

const paramOf = (condition: SingleCondition): string | null =>
  condition.kind === 'param' ? (condition.path[0] ?? null) : condition.kind === 'online' ? 'online' : null;
