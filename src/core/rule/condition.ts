/** Conditions of rules: their parsing, with errors that name the place. Pure. */
import { parseDuration } from '../duration.js';
import { badRequest } from '../errors.js';
import { isObject, isReservedName, type Json, type JsonObject } from '../json.js';
import { LIMITS } from '../limits.js';
import { ID } from '../own-id.js';
import { type Expression, parseExpression } from './expression.js';

export const OPERATORS = ['>', '>=', '<', '<=', '==', '!=', 'in', 'between', 'changed'] as const;
export type Operator = (typeof OPERATORS)[number];

/** What a parameter is compared with: a value, or a member of the object's `config`. */
export type Operand = { readonly value: Json } | { readonly config: readonly string[] };

interface Placed {
  /** Where it is in the rule, such as `when.all[1]`. */
  readonly place: string;
}

export interface ParameterCondition extends Placed {
  readonly kind: 'param';
  readonly path: readonly string[];
  readonly op: Operator;
  /** None for `changed`, two for `between`, otherwise one. */
  readonly operands: readonly Operand[];
}

export const FENCE_TESTS = ['inside', 'outside', 'enter', 'exit'] as const;

export interface FenceCondition extends Placed {
  readonly kind: 'geofence';
  readonly ids: readonly string[];
  readonly test: (typeof FENCE_TESTS)[number];
}

export interface SilentCondition extends Placed {
  readonly kind: 'silent';
  readonly afterMs: number;
}

export interface OnlineCondition extends Placed {
  readonly kind: 'online';
  readonly isOnline: boolean;
}

export interface ExpressionCondition extends Placed {
  readonly kind: 'expr';
  readonly expression: Expression;
}

/** A condition that reads something itself. */
export type SingleCondition =
  | ParameterCondition
  | FenceCondition
  | SilentCondition
  | OnlineCondition
  | ExpressionCondition;

export type Condition =
  | SingleCondition
  | { readonly kind: 'all' | 'any'; readonly parts: readonly Condition[] }
  | { readonly kind: 'not'; readonly part: Condition };

/** The conditions that read something, in the order in which they are written. */
export function singlesOf(condition: Condition): readonly SingleCondition[] {
  if (condition.kind === 'not') return singlesOf(condition.part);
  return 'parts' in condition ? condition.parts.flatMap(singlesOf) : [condition];
}

/** The member that says which kind of condition it is, and the others that it may have. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  param: ['op', 'value'],
  all: [],
  any: [],
  not: [],
  geofence: ['is', 'on'],
  silent: [],
  online: [],
  expr: [],
};
const KIND_NAMES = Object.keys(KINDS);

/** Parses a condition. Throws a 400 that names the place. */
export function parseCondition(value: Json | undefined, place: string): Condition {
  if (!isObject(value))
    throw badRequest(`${place}: expected a condition, an object with one of ${KIND_NAMES.join(', ')}`);
  const members = Object.keys(value).filter((name) => value[name] !== null);
  const kinds = members.filter((name) => KIND_NAMES.includes(name));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) throw badRequest(`${place}: expected one of ${KIND_NAMES.join(', ')}`);
  const other = members.find((name) => name !== kind && !KINDS[kind]?.includes(name));
  if (other !== undefined) throw badRequest(`${place}.${other}: not known in a condition with ${kind}`);
  return parseKind(kind, value, place);
}

function parseKind(kind: string, value: JsonObject, place: string): Condition {
  switch (kind) {
    case 'all':
    case 'any':
      return { kind, parts: parseParts(value[kind], `${place}.${kind}`) };
    case 'not':
      return { kind, part: parseCondition(value.not, `${place}.not`) };
    case 'param':
      return parseParameter(value, place);
    case 'geofence':
      return parseFence(value, place);
    case 'silent':
      return { kind: 'silent', place, afterMs: parseSpan(value.silent, `${place}.silent`, 1) };
    case 'online':
      if (typeof value.online !== 'boolean') throw badRequest(`${place}.online: expected true or false`);
      return { kind: 'online', place, isOnline: value.online };
    default:
      return { kind: 'expr', place, expression: parseExpression(value.expr, `${place}.expr`) };
  }
}

function parseParts(value: Json | undefined, place: string): readonly Condition[] {
  if (!Array.isArray(value) || value.length === 0) throw badRequest(`${place}: expected a list of conditions`);
  if (value.length > LIMITS.ruleConditions) throw badRequest(`${place}: at most ${LIMITS.ruleConditions} conditions`);
  return value.map((part, index) => parseCondition(part, `${place}[${index}]`));
}

/** Parses a span of time to ms. Throws a 400 that names the place. */
export function parseSpan(value: Json | undefined, place: string, leastMs = 0): number {
  const ms = parseDuration(value);
  if (ms !== null && ms >= leastMs && ms <= LIMITS.ruleSpanMaxMs) return ms;
  const most = `at most ${LIMITS.ruleSpanMaxMs / 86_400_000} days`;
  throw badRequest(`${place}: expected a duration such as "10 min", or milliseconds; ${most}`);
}

function parseParameter(value: JsonObject, place: string): ParameterCondition {
  const path = parsePath(value.param, `${place}.param`);
  const { op } = value;
  if (!OPERATORS.includes(op as Operator)) throw badRequest(`${place}.op: expected one of ${OPERATORS.join(', ')}`);
  const operands = parseOperands(op as Operator, value.value, `${place}.value`);
  return { kind: 'param', place, path, op: op as Operator, operands };
}

function parsePath(value: Json | undefined, place: string): readonly string[] {
  const path = typeof value === 'string' ? value.split('.') : [];
  const isStorable = (name: string): boolean =>
    name !== '' && name.length <= LIMITS.keyCharacters && !isReservedName(name);
  if (path.length > 0 && path.every(isStorable)) return path;
  throw badRequest(`${place}: expected the name of a parameter, such as "temperature" or "engine.temp"`);
}

const isScalar = (value: Json | undefined): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);

function parseOperands(op: Operator, value: Json | undefined, place: string): readonly Operand[] {
  if (op === 'changed') {
    if (value === undefined || value === null) return [];
    throw badRequest(`${place}: not known with changed`);
  }
  if (isObject(value)) return [parseConfig(value, place)];
  if (op === 'in') return [{ value: parseValues(value, place) }];
  if (op === 'between') return parseRange(value, place);
  if (op === '==' || op === '!=') {
    if (!isScalar(value))
      throw badRequest(`${place}: expected a number, a text, true or false, or {"config": "<name>"}`);
  } else if (typeof value !== 'number') throw badRequest(`${place}: expected a number, or {"config": "<name>"}`);
  return [{ value }];
}

function parseConfig(value: JsonObject, place: string): Operand {
  const other = Object.keys(value).find((name) => name !== 'config' && value[name] !== null);
  if (other !== undefined)
    throw badRequest(`${place}.${other}: expected only config, the name of a member of the object's config`);
  return { config: parsePath(value.config, `${place}.config`) };
}

function parseValues(value: Json | undefined, place: string): Json {
  const isList = Array.isArray(value) && value.length > 0 && value.length <= LIMITS.ruleValues && value.every(isScalar);
  if (isList) return value;
  throw badRequest(`${place}: expected a list of 1 to ${LIMITS.ruleValues} numbers or texts, or {"config": "<name>"}`);
}

function parseRange(value: Json | undefined, place: string): readonly Operand[] {
  const expected = `${place}: expected two numbers, the lowest and the highest, or {"config": "<name>"}`;
  if (!Array.isArray(value) || value.length !== 2) throw badRequest(expected);
  const ends = value.map((end, index): Operand => {
    if (isObject(end)) return parseConfig(end, `${place}[${index}]`);
    if (typeof end !== 'number') throw badRequest(expected);
    return { value: end };
  });
  const [low, high] = value;
  if (typeof low === 'number' && typeof high === 'number' && low > high) throw badRequest(expected);
  return ends;
}

function parseFence(value: JsonObject, place: string): FenceCondition {
  const given = Array.isArray(value.geofence) ? value.geofence : [value.geofence];
  const isList = given.length > 0 && given.length <= LIMITS.ruleFences;
  if (!isList || !given.every((id) => typeof id === 'string' && ID.test(id))) {
    throw badRequest(`${place}.geofence: expected the _id of a geofence, or a list of at most ${LIMITS.ruleFences}`);
  }
  const ids = [...new Set(given.map((id) => String(id).toLowerCase()))];
  const { is = null, on = null } = value;
  if ((is === null) === (on === null)) throw badRequest(`${place}: expected either is or on beside geofence`);
  if (is !== null && is !== 'inside' && is !== 'outside') throw badRequest(`${place}.is: expected inside or outside`);
  if (on !== null && on !== 'enter' && on !== 'exit') throw badRequest(`${place}.on: expected enter or exit`);
  return { kind: 'geofence', place, ids, test: (is ?? on) as FenceCondition['test'] };
}
