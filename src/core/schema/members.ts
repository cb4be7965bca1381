/** The keywords of JSON Schema (draft-07) for items of lists and members of objects. */
import { badRequest } from '../errors.js';
import { isObject, type Json, type JsonObject } from '../json.js';
import {
  type Check,
  checkBelow,
  type Fault,
  faultBelow,
  faultHere,
  type Keyword,
  type Part,
  parseSize,
  parseTextList,
} from './part.js';
import type { Pattern } from './pattern.js';
import type { StepBudget } from './step-budget.js';

/** Bounds the number of items or members. */
const ofSize =
  (
    sizeOf: (value: Json) => number | null,
    isValid: (size: number, bound: number) => boolean,
    reason: string,
  ): Keyword =>
  (part) => {
    const bound = parseSize(part);
    const fault = faultHere(`must NOT have ${reason.replace('N', String(bound))}`);
    return (value, budget) => {
      const size = sizeOf(value);
      if (size !== null && isObject(value)) budget.spend(size);
      return size === null || isValid(size, bound) ? null : fault;
    };
  };

const itemsIn = (value: Json): number | null => (Array.isArray(value) ? value.length : null);
const membersIn = (value: Json): number | null => (isObject(value) ? Object.keys(value).length : null);
const atMost = (size: number, bound: number): boolean => size <= bound;
const atLeast = (size: number, bound: number): boolean => size >= bound;

/** One schema for all items; or a list of schemas for the first items, and `additionalItems` for the rest. */
const items: Keyword = ({ value, schema, place, parse }) => {
  const isList = Array.isArray(value);
  const first = isList ? value.map((one, index) => parse(one, `${place}.${index}`)) : [];
  const others = isList ? parse(schema.additionalItems ?? true, `${place}, additionalItems`) : parse(value, place);
  return (given, budget) => {
    if (!Array.isArray(given)) return null;
    for (let index = 0; index < given.length; index++) {
      const fault = checkBelow(index, first[index] ?? others, given[index] as Json, budget);
      if (fault !== null) return fault;
    }
    return null;
  };
};

const contains: Keyword = ({ value, place, parse }) => {
  const check = parse(value, place);
  const fault = faultHere('must contain at least 1 valid item(s)');
  return (given, budget) =>
    !Array.isArray(given) || given.some((item) => check(item, budget) === null) ? null : fault;
};

const uniqueItems: Keyword = ({ value, place }) => {
  if (typeof value !== 'boolean') throw badRequest(`${place}: expected true or false`);
  if (!value) return null;
  const fault = faultHere('must not have two equal items');
  return (given, budget) => {
    if (!Array.isArray(given)) return null;
    const texts = new Set<string>();
    for (const item of given) texts.add(textOf(item, budget));
    return texts.size === given.length ? null : fault;
  };
};

/** A canonical text: equal for equal values only. */
function textOf(value: Json, budget: StepBudget): string {
  budget.spend(3);
  if (typeof value === 'string') budget.spend(value.length >> 3);
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, budget)).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${textOf(value[name] as Json, budget)}`).join()}}`;
}

const required: Keyword = (part) => {
  const names = parseTextList(part);
  return (value, budget) => {
    if (!isObject(value)) return null;
    budget.spend(names.length);
    const missing = names.find((name) => !Object.hasOwn(value, name));
    return missing === undefined ? null : faultBelow(missing, faultHere('required'));
  };
};

function parseMembers({ value, place, parse }: Part): [name: string, check: Check][] {
  if (!isObject(value)) throw badRequest(`${place}: expected an object of schemas`);
  return Object.entries(value).map(([name, schema]) => [name, parse(schema, `${place}.${name}`)]);
}

const properties: Keyword = (part) => {
  const members = parseMembers(part);
  return (value, budget) => {
    if (!isObject(value)) return null;
    budget.spend(2 * members.length);
    for (const [name, check] of members) {
      if (!Object.hasOwn(value, name)) continue;
      const fault = checkBelow(name, check, value[name] as Json, budget);
      if (fault !== null) return fault;
    }
    return null;
  };
};

const patternProperties: Keyword = (part) => {
  const members = parseMembers(part).map(([source, check]) => [part.pattern(source, part.place), check] as const);
  return (value, budget) => {
    if (!isObject(value)) return null;
    for (const name of Object.keys(value)) {
      for (const [pattern, check] of members) {
        const fault = pattern.test(name, budget) ? checkBelow(name, check, value[name] as Json, budget) : null;
        if (fault !== null) return fault;
      }
    }
    return null;
  };
};

/** Checks the members that neither `properties` nor `patternProperties` covers. */
const additionalProperties: Keyword = ({ value, schema, place, parse, pattern: compile }) => {
  const check = parse(value, place);
  const named = new Set(Object.keys(isObject(schema.properties) ? schema.properties : {}));
  const sources = Object.keys(isObject(schema.patternProperties) ? schema.patternProperties : {});
  const patterns: Pattern[] = sources.map((source) => compile(source, place));
  const refused = faultHere('must NOT have additional properties');
  return (given, budget) => {
    if (!isObject(given)) return null;
    for (const name of Object.keys(given)) {
      budget.spend(2);
      if (named.has(name) || patterns.some((pattern) => pattern.test(name, budget))) continue;
      if (value === false) return refused;
      const fault = checkBelow(name, check, given[name] as Json, budget);
      if (fault !== null) return fault;
    }
    return null;
  };
};

const propertyNames: Keyword = ({ value, place, parse }) => {
  const check = parse(value, place);
  return (given, budget) => {
    if (!isObject(given)) return null;
    const wrong = Object.keys(given).find((name) => check(name, budget) !== null);
    return wrong === undefined ? null : faultBelow(wrong, faultHere('is not an allowed name'));
  };
};

/** Requires other members, or another schema, when a member is present. */
const dependencies: Keyword = ({ value, place, parse }) => {
  if (!isObject(value)) throw badRequest(`${place}: expected an object`);
  const conditions = Object.entries(value).map(([name, wanted]): [string, Check] => [
    name,
    Array.isArray(wanted)
      ? requireAlso(name, parseTextList({ value: wanted, place }))
      : parse(wanted, `${place}.${name}`),
  ]);
  return (given, budget) => {
    if (!isObject(given)) return null;
    budget.spend(conditions.length);
    for (const [name, check] of conditions) {
      const fault = Object.hasOwn(given, name) ? check(given, budget) : null;
      if (fault !== null) return fault;
    }
    return null;
  };
};

const requireAlso =
  (given: string, names: readonly string[]): Check =>
  (value, budget): Fault | null => {
    budget.spend(names.length);
    const missing = names.find((name) => !Object.hasOwn(value as JsonObject, name));
    return missing === undefined ? null : faultHere(`must have property ${missing} when property ${given} is present`);
  };

export const ITEM_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ['maxItems', ofSize(itemsIn, atMost, 'more than N items')],
  ['minItems', ofSize(itemsIn, atLeast, 'fewer than N items')],
  ['items', items],
  ['contains', contains],
  ['uniqueItems', uniqueItems],
];

export const MEMBER_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ['maxProperties', ofSize(membersIn, atMost, 'more than N properties')],
  ['minProperties', ofSize(membersIn, atLeast, 'fewer than N properties')],
  ['required', required],
  ['properties', properties],
  ['patternProperties', patternProperties],
  ['additionalProperties', additionalProperties],
  ['propertyNames', propertyNames],
  ['dependencies', dependencies],
];
