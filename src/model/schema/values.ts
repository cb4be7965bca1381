/** The keywords of JSON Schema (draft-07) that speak of a value itself. */
import { badRequest } from '../../errors.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import { isOfFormat } from './formats.js';
import { type Check, faultHere, type Keyword, readNumber, readSize, readTexts } from './part.js';
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
  const names = readTexts({ value: typeof value === 'string' ? [value] : value, place });
  const wrong = names.find((name) => !Object.hasOwn(TYPES, name));
  if (names.length === 0 || wrong !== undefined)
    throw badRequest(`${place}: expected ${Object.keys(TYPES).join(', ')}`);
  if (schema.nullable === true) names.push('null');
  const all = [...new Set(names)];
  const why = `must be ${all.join(',')}`;
  const isOne = all.map((name) => TYPES[name] as (value: Json) => boolean);
  return (given) => (isOne.some((is) => is(given)) ? null : faultHere(why));
};

const isPlain = (value: Json): boolean => typeof value !== 'object' || value === null;

/** Whether two values are the same JSON; the order of members means nothing. */
export function isEqual(one: Json, other: Json, budget: StepBudget): boolean {
  budget.spend(1);
  if (isPlain(one) || isPlain(other)) return one === other;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, at) => isEqual(item, other[at] as Json, budget));
  }
  const [mine, theirs] = [one as JsonObject, other as JsonObject];
  const names = Object.keys(mine);
  budget.spend(names.length);
  if (names.length !== Object.keys(theirs).length) return false;
  return names.every(
    (name) => Object.hasOwn(theirs, name) && isEqual(mine[name] as Json, theirs[name] as Json, budget),
  );
}

function oneOfThese(options: readonly Json[], why: string): Check {
  const plain = new Set(options.filter(isPlain));
  const others = options.filter((option) => !isPlain(option));
  return (value, budget) => {
    const fits = isPlain(value) ? plain.has(value) : others.some((option) => isEqual(option, value, budget));
    return fits ? null : faultHere(why);
  };
}

const enumeration: Keyword = ({ value, place }) => {
  if (!Array.isArray(value) || value.length === 0) throw badRequest(`${place}: expected a list of values`);
  return oneOfThese(value, 'must be equal to one of the allowed values');
};

const ofNumber =
  (fits: (value: number, bound: number) => boolean, why: string, isBound?: (bound: number) => boolean): Keyword =>
  (part) => {
    const bound = readNumber(part, isBound);
    return (value) => (typeof value !== 'number' || fits(value, bound) ? null : faultHere(`must be ${why} ${bound}`));
  };

/** Characters are code points; how many units of UTF-16 there are says it without counting, but for a few. */
const ofLength =
  (fits: (length: number, bound: number) => boolean, why: string): Keyword =>
  (part) => {
    const bound = readSize(part);
    return (value, budget) => {
      if (typeof value !== 'string') return null;
      const [least, most] = [value.length / 2, value.length];
      const isKnown = fits(least, bound) === fits(most, bound);
      if (!isKnown) budget.spend(value.length);
      const fitting = isKnown ? fits(most, bound) : fits(Array.from(value).length, bound);
      return fitting ? null : faultHere(`must NOT have ${why} than ${bound} characters`);
    };
  };

const pattern: Keyword = ({ value, place, pattern: compile }) => {
  if (typeof value !== 'string') throw badRequest(`${place}: expected a text`);
  const compiled = compile(value, place);
  const fault = faultHere(`must match pattern "${value}"`);
  return (given, budget) => (typeof given !== 'string' || compiled.test(given, budget) ? null : fault);
};

const format: Keyword = ({ value, place }) => {
  if (typeof value !== 'string') throw badRequest(`${place}: expected a text`);
  const fault = faultHere(`must match format "${value}"`);
  return (given, budget) => (isOfFormat(value, given, budget) ? null : fault);
};

/** In the order in which they are asked. */
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
