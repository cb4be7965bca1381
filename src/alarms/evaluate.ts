/**
 * Rules as closures. A condition is true, false, or not known: what a packet does not say leaves each condition as it was. A combination
 * is true only where its parts prove it (Kleene's logic); a part that was never known keeps nothing true that others have ended. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Fix, Zone } from '../core/geofence.js';
import { isObject, type Json, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import {
  type Condition,
  type Operand,
  type ParameterCondition,
  type SingleCondition,
  singlesOf,
} from '../core/rule/condition.js';
import type { Steps } from '../core/rule/metering.js';
import type { RuleSettings } from '../core/rule/rule.js';

/** Null: not known. */
export type Truth = boolean | null;

/** What a single condition is, since when, and what it read. */
export interface Reading {
  readonly truth: Truth;
  readonly sinceMs: number;
  readonly value: Json;
}

export const UNREAD: Reading = { truth: null, sinceMs: 0, value: null };

/** A packet as conditions read it. */
export interface PacketInput {
  readonly packet: JsonObject;
  /** False for a packet that only reports presence. */
  readonly isData: boolean;
  /** Whether no packet of a later time came before it. */
  readonly isNewest: boolean;
  readonly fix: Fix | null;
  readonly previousFix: Fix | null;
  /** The values of parameters before the packet. */
  readonly last: JsonObject;
  readonly object: JsonObject;
}

/** What a packet says of a condition; null where it says nothing. */
export interface Finding {
  readonly truth: boolean;
  readonly value: Json;
}

export interface Single {
  readonly condition: SingleCondition;
  /** Whether the value decides what the next packet means: it is kept like the result. */
  readonly hasMemory: boolean;
  /** A condition on time alone becomes true so long after the last data packet. */
  readonly silentMs: number | null;
  /** How many comparisons a packet costs at most, about. */
  costOf(input: PacketInput | null): number;
  /** `steps`: those that its expression may take. */
  find(input: PacketInput, before: Reading, steps: Steps): Finding | null;
}

export interface CompiledRule {
  readonly settings: RuleSettings;
  /** Those of `when`, then those of `clear`. */
  readonly singles: readonly Single[];
  /** Of these, how many belong to `when`. */
  readonly whenCount: number;
  /** Of geofences, by `_id`: they are words for people, and decide nothing. */
  readonly fenceNames: Map<string, string>;
  when(readings: readonly Reading[]): Truth;
  /** Whether a raised alarm ends. */
  clear(readings: readonly Reading[]): Truth;
  readonly readsLast: boolean;
  readonly readsFix: boolean;
  readonly hasExpression: boolean;
  readonly silentMs: number | null;
  /** How many comparisons a packet costs at most, about; null for one that is older than another one. */
  costOf(input: PacketInput | null): number;
  /** Of a rule with one condition that remembers nothing, whose hours never end: whether it calls when that is true; otherwise null. */
  readonly callsWhen: boolean | null;
}

/** Whether a packet leaves a rule of one condition idle; not known if the steps are spent. */
export function isQuiet({ callsWhen, singles: [first] }: CompiledRule, input: PacketInput, steps: Steps): boolean {
  return callsWhen !== null && first?.find(input, UNREAD, steps)?.truth !== callsWhen;
}

/** `zoneOf` gives the zone of geofences. */
export function compileRule(
  settings: RuleSettings,
  zoneOf: (ids: readonly string[]) => Zone,
  fenceNames: Map<string, string> = new Map(),
): CompiledRule {
  const whenSingles = singlesOf(settings.when);
  const clearSingles = settings.clear === null ? [] : singlesOf(settings.clear);
  const singles = [...whenSingles, ...clearSingles].map((condition) => toSingle(condition, zoneOf));
  const when = toTruth(settings.when, counter(0));
  const clear = settings.clear === null ? null : toTruth(settings.clear, counter(whenSingles.length));
  const [first, ...others] = singles;
  const isSimple =
    others.length === 0 && first?.hasMemory === false && first.silentMs === null && settings.schedule === null;
  const silences = singles.flatMap(({ silentMs }) => silentMs ?? []);
  return {
    settings,
    singles,
    whenCount: whenSingles.length,
    fenceNames,
    when,
    // What still calls is not over.
    clear:
      clear === null ? (readings) => not(when(readings)) : (readings) => and(clear(readings), isNot(when(readings))),
    readsLast: singles.some(({ condition }) => condition.kind === 'expr' && condition.expression.readsLast),
    readsFix: singles.some(({ condition }) => condition.kind === 'geofence'),
    hasExpression: singles.some(({ condition }) => condition.kind === 'expr'),
    silentMs: silences.length === 0 ? null : Math.min(...silences),
    costOf: (input) => singles.reduce((sum, single) => sum + single.costOf(input), 0),
    callsWhen: isSimple ? when([{ truth: true, sinceMs: 0, value: null }]) : null,
  };
}

function counter(start: number): () => number {
  let next = start;
  return () => next++;
}

type Evaluate = (readings: readonly Reading[]) => Truth;

/** `isNegated`: within an odd number of `not`. */
function toTruth(condition: Condition, nextIndex: () => number, isNegated = false): Evaluate {
  if (condition.kind === 'not') {
    const part = toTruth(condition.part, nextIndex, !isNegated);
    return (readings) => not(part(readings));
  }
  if (condition.kind === 'all' || condition.kind === 'any') {
    const decisive = condition.kind === 'any';
    const parts = condition.parts.map((part) => toTruth(part, nextIndex, isNegated));
    // Where each part alone would do, one that was never known does not.
    const leavesOut = decisive !== isNegated;
    return (readings) => combine(parts, readings, { decisive, leavesOut });
  }
  const index = nextIndex();
  return (readings) => (readings[index] as Reading).truth;
}

function combine(
  parts: readonly Evaluate[],
  readings: readonly Reading[],
  { decisive, leavesOut }: { decisive: boolean; leavesOut: boolean },
): Truth {
  let known = 0;
  for (const part of parts) {
    const truth = part(readings);
    if (truth === decisive) return decisive;
    if (truth !== null) known++;
  }
  const isKnown = leavesOut ? known > 0 : known === parts.length;
  return isKnown ? !decisive : null;
}

const not = (truth: Truth): Truth => (truth === null ? null : !truth);
const and = (truth: Truth, other: boolean): Truth => (other ? truth : false);
const isNot = (truth: Truth): boolean => truth !== true;

function toSingle(condition: SingleCondition, zoneOf: (ids: readonly string[]) => Zone): Single {
  const common = { condition, hasMemory: false, silentMs: null, costOf: () => 1 };
  switch (condition.kind) {
    case 'param':
      return { ...common, hasMemory: condition.op === 'changed', find: findParameter(condition) };
    case 'geofence':
      return { ...common, ...toFence(condition.test, zoneOf(condition.ids)) };
    case 'silent':
      return {
        ...common,
        silentMs: condition.afterMs,
        find: ({ isData }) => (isData ? { truth: false, value: null } : null),
      };
    case 'online':
      return { ...common, find: (input) => findOnline(input, condition.isOnline) };
    default:
      return { ...common, costOf: () => LIMITS.conditionsOfExpression, find: findExpression(condition.expression) };
  }
}

const findOnline = ({ packet: { online }, isNewest }: PacketInput, isOnline: boolean): Finding | null =>
  typeof online === 'boolean' && isNewest ? { truth: online === isOnline, value: online } : null;

/** The value at a path; undefined where there is none. */
export function valueAt(fields: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = fields;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function findParameter({ path, op, operands }: ParameterCondition): Single['find'] {
  return ({ packet, object }, before) => {
    const value = valueAt(packet, path) ?? null;
    if (value === null) return null;
    if (op === 'changed') return { truth: before.truth !== null && !isSame(before.value, value), value };
    const wanted: Json[] = [];
    for (const operand of operands) {
      const one = operandOf(operand, object);
      if (one === null) return null;
      wanted.push(one);
    }
    const truth = compare(op, value, wanted);
    return truth === null ? null : { truth, value };
  };
}

export function operandOf(operand: Operand, object: JsonObject): Json {
  if ('value' in operand) return operand.value;
  const { config } = object;
  return isObject(config) ? (valueAt(config, operand.config) ?? null) : null;
}

/** 0 is the same as -0. */
const isSame = (one: Json, other: Json): boolean => one === other || isDeepStrictEqual(one, other);

/** Null where the values cannot be compared. */
function compare(op: ParameterCondition['op'], value: Json, wanted: readonly Json[]): Truth {
  const [first = null, second = null] = wanted;
  if (op === '==') return isSame(value, first);
  if (op === '!=') return !isSame(value, first);
  if (op === 'in') return Array.isArray(first) ? first.some((one) => isSame(one, value)) : null;
  if (op === 'between' && wanted.length === 1) return Array.isArray(first) ? compare(op, value, first) : null;
  if (typeof value !== 'number' || typeof first !== 'number') return null;
  if (op === '>') return value > first;
  if (op === '>=') return value >= first;
  if (op === '<') return value < first;
  if (op === '<=') return value <= first;
  return typeof second === 'number' ? value >= first && value <= second : null;
}

function toFence(
  test: 'inside' | 'outside' | 'enter' | 'exit',
  zone: Zone,
): Pick<Single, 'hasMemory' | 'costOf' | 'find'> {
  const isPassing = test === 'enter' || test === 'exit';
  const costOf = (input: PacketInput | null): number => costOfFence(zone, input, isPassing);
  if (test === 'inside' || test === 'outside') {
    return {
      hasMemory: false,
      costOf,
      find({ fix }) {
        const isInside = fix === null ? null : zone.isInside(fix);
        return isInside === null ? null : { truth: isInside === (test === 'inside'), value: sideOf(isInside) };
      },
    };
  }
  return { hasMemory: true, costOf, find: (input, before) => findPassing(test, zone, input, before) };
}

/** Most shapes are elsewhere; of the others, each side is compared with a way, and looked at quickly for a place. */
function costOfFence(zone: Zone, input: PacketInput | null, isPassing: boolean): number {
  const { fix, previousFix } = input ?? { fix: null, previousFix: null };
  if (fix === null) return 1;
  const hasWay = isPassing && previousFix !== null;
  const points = zone.pointsNear(hasWay ? previousFix : fix, fix);
  return LIMITS.conditionsOfExpression + Math.ceil(points / (hasWay ? 1 : LIMITS.fencePointsOfCondition));
}

const sideOf = (isInside: boolean): string => (isInside ? 'inside' : 'outside');

/** Entered holds from entering until leaving; left, from leaving until entering. Crossed between two fixes: both, at once. */
function findPassing(
  test: 'enter' | 'exit',
  zone: Zone,
  { fix, previousFix }: PacketInput,
  before: Reading,
): Finding | null {
  const isInside = fix === null ? null : zone.isInside(fix);
  if (fix === null || isInside === null) return null;
  const value = sideOf(isInside);
  const isThere = isInside === (test === 'enter');
  if (before.truth === null) return { truth: false, value };
  if (value !== before.value) return { truth: isThere, value };
  const isCrossed = !isInside && previousFix !== null && zone.isCrossed(previousFix, fix);
  // From a fix that is less exact than the zone, nobody knows the way.
  const isPassed = isCrossed && zone.isInside(previousFix) !== null;
  return { truth: isPassed || (isThere && before.truth), value };
}

function findExpression(expression: Extract<SingleCondition, { kind: 'expr' }>['expression']): Single['find'] {
  const readsPresence = expression.mayDependOn('online');
  return ({ packet, isData, last, object }, _before, steps) => {
    // A report of presence lacks every parameter: it says nothing of them.
    if (!isData && !readsPresence) return null;
    const truth = expression.evaluate({ p: packet, last, object }, steps);
    if (truth === null) return null;
    const read = expression.params.filter((name) => Object.hasOwn(packet, name));
    return { truth, value: Object.fromEntries(read.map((name) => [name, packet[name] as Json])) };
  };
}
