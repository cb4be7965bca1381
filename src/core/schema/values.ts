/** The keywords of JSON Schema (draft-07) for single values. */
import { badRequest } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { isOfFormat } from './formats.js';
import { type Check, faultHere, type Keyword, parseNumber, parseSize, parseTextList } from './part.js';
import type { StepBudget } from './step-budget.js';

const TYPES: Readonly<Record<string, (value: Json) => boolean>> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isObject,
  null: (value) => value === null,
};

const type: Keyword = ({ value, schema, place }) => {
  const names = parseTextList({ value: typeof value === 'string' ? [value] : value, place });
  const wrong = names.find((name) => !Object.hasOwn(TYPES, name));
  if (names.length === 0 || wrong !== undefined)
    throw badRequest(`${place}: expected ${Object.keys(TYPES).join(', ')}`);
  if (schema.nullable === true) names.push('null');
  const all = [...new Set(names)];
  const reason = `must be ${all.join(',')}`;
  const isOne = all.map((name) => TYPES[name] as (value: Json) => boolean);
  return (given) => (isOne.some((is) => is(given)) ? null : faultHere(reason));
};

const isPlain = (value: Json): boolean => typeof value !== 'object' || value === null;

/** Whether two values are equal JSON, whatever the order of members. */
export function isEqual(one: Json, other: Json, budget: StepBudget): boolean {
  budget.spend(1);
  if (isPlain(one) || isPlain(other)) return one === other;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => isEqual(item, other[index] as Json, budget));
  }
  const mine = one as JsonObject;
  const theirs = other as JsonObject;
  const names = Object.keys(mine);
  budget.spend(names.length);
  if (names.length !== Object.keys(theirs).length) return false;
  return names.every(
    (name) => Object.hasOwn(theirs, name) && isEqual(mine[name] as Json, theirs[name] as Json, budget),
  );
}

function oneOfThese(options: readonly Json[], reason: string): Check {
  const plain = new Set(options.filter(isPlain));
  const others = options.filter((option) => !isPlain(option));
  return (value, budget) => {
    const isValid = isPlain(value) ? plain.has(value) : others.some((option) => isEqual(option, value, budget));
    return isValid ? null : faultHere(reason);
  };
}

const enumeration: Keyword = ({ value, place }) => {
  if (!Array.isArray(value) || value.length === 0) throw badRequest(`${place}: expected a list of values`);
  return oneOfThese(value, 'must be equal to one of the allowed values');
};

const ofNumber =
  (isValid: (value: number, bound: number) => boolean, reason: string, isBound?: (bound: number) => boolean): Keyword =>
  (part) => {
    const bound = parseNumber(part, isBound);
    return (value) =>
      typeof value !== 'number' || isValid(value, bound) ? null : faultHere(`must be ${reason} ${bound}`);
  };

/** The length is in code points. The length in UTF-16 units mostly decides without counting them. */
const ofLength =
  (isValid: (length: number, bound: number) => boolean, reason: string): Keyword =>
  (part) => {
    const bound = parseSize(part);
    return (value, budget) => {
      if (typeof value !== 'string') return null;
      const min = value.length / 2;
      const max = value.length;
      const isKnown = isValid(min, bound) === isValid(max, bound);
      if (!isKnown) budget.spend(value.length);
      const isMatch = isKnown ? isValid(max, bound) : isValid(Array.from(value).length, bound);
      return isMatch ? null : faultHere(`must NOT have ${reason} than ${bound} characters`);
    };
  };

const pattern: Keyword = ({ value, place, pattern: compile }) => {
  if (typeof value !== 'string') throw badRequest(`${place}: expected a string`);
  const compiled = compile(value, place);
  const fault = faultHere(`must match pattern "${value}"`);
  return (given, budget) => (typeof given !== 'string' || compiled.test(given, budget) ? null : fault);
};

const format: Keyword = ({ value, place }) => {
  if (typeof value !== 'string') throw badRequest(`${place}: expected a string`);
  const fault = faultHere(`must match format "${value}"`);
  return (given, budget) => (isOfFormat(value, given, budget) ? null : fault);
};

/** In the order of evaluation. */
export const VALUE_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ['type', type],
  ['const', ({ value }) => oneOfThese([value], 'must be equal to constant')],
  ['enum', enumeration],
  ['maximum', ofNumber((value, bound) => value <= bound, '<=')],
  ['minimum', ofNumber((value, bound) => value >= bound, '>=')],
  ['exclusiveMaximum', ofNumber((value, bound) => value < bound, '<')],
  ['exclusiveMinimum', ofNumber((value, bound) => value > bound, '>')],
  [
    'multipleOf',
    ofNumber(
      (value, bound) => Number.isInteger(value / bound),
      'multiple of',
      (bound) => bound > 0,
    ),
  ],
  ['maxLength', ofLength((length, bound) => length <= bound, 'more')],
  ['minLength', ofLength((length, bound) => length >= bound, 'fewer')],
  ['pattern', pattern],
  ['format', format],
];
