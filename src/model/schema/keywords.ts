/** What a JSON Schema (draft-07) demands, as one check of a value; the messages are those that Ajv has. */
import { badRequest } from '../../errors.js';
import { isObject, type Json } from '../json.js';
import { ITEM_KEYWORDS, MEMBER_KEYWORDS } from './members.js';
import { type Check, createPatterns, faultHere, type Keyword, type Part, readChecks } from './part.js';
import { VALUE_KEYWORDS } from './values.js';

const FITS: Check = () => null;
/** They would make of a schema something that is not read from top to bottom. */
const NOT_TAKEN = ['$ref', '$dynamicRef', '$recursiveRef', '$async'];

/** Reads what a schema demands. Throws a 400 that names the place at fault. */
export function readSchema(schema: Json, place: string): Check {
  const pattern = createPatterns();
  const read: Part['read'] = (part, at) => {
    if (part === true) return FITS;
    if (part === false) return () => faultHere('must not be given');
    if (!isObject(part)) throw badRequest(`${at}: expected a schema: an object, true or false`);
    const refused = NOT_TAKEN.find((name) => Object.hasOwn(part, name));
    if (refused !== undefined) throw badRequest(`${at}: ${refused} is not taken`);
    const checks: Check[] = [];
    for (const [name, keyword] of KEYWORDS) {
      if (!Object.hasOwn(part, name)) continue;
      const check = keyword({ value: part[name] as Json, schema: part, place: `${at}.${name}`, read, pattern });
      if (check !== null) checks.push(check);
    }
    return checks.length === 0 ? FITS : all(checks);
  };
  return read(schema, place);
}

function all(checks: readonly Check[]): Check {
  return (value, budget) => {
    budget.spend(1 + checks.length);
    for (const check of checks) {
      const fault = check(value, budget);
      if (fault !== null) return fault;
    }
    return null;
  };
}

const allOf: Keyword = (part) => all(readChecks(part));

/** How many of the schemas have to fit; `isSettled` says when there is no need to ask more of them. */
const someOf =
  (isFit: (count: number) => boolean, isSettled: (count: number) => boolean, why: string): Keyword =>
  (part) => {
    const checks = readChecks(part);
    return (value, budget) => {
      let count = 0;
      for (const check of checks) {
        if (check(value, budget) === null) count++;
        if (isSettled(count)) break;
      }
      return isFit(count) ? null : faultHere(why);
    };
  };

const not: Keyword = ({ value, place, read }) => {
  const check = read(value, place);
  return (given, budget) => (check(given, budget) === null ? faultHere('must NOT be valid') : null);
};

const condition: Keyword = ({ value, schema, place, read }) => {
  const check = read(value, place);
  const [then, otherwise] = [read(schema.then ?? true, place), read(schema.else ?? true, place)];
  return (given, budget) => (check(given, budget) === null ? then : otherwise)(given, budget);
};

/** In the order in which they are asked. */
const KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ...VALUE_KEYWORDS,
  ...ITEM_KEYWORDS,
  ...MEMBER_KEYWORDS,
  ['allOf', allOf],
  [
    'anyOf',
    someOf(
      (count) => count > 0,
      (count) => count > 0,
      'must match a schema in anyOf',
    ),
  ],
  [
    'oneOf',
    someOf(
      (count) => count === 1,
      (count) => count > 1,
      'must match exactly one schema in oneOf',
    ),
  ],
  ['not', not],
  ['if', condition],
];
