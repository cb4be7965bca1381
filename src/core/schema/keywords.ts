/** Compiles a JSON Schema (draft-07) to one check of a value. The messages are those of Ajv. */
import { badRequest } from '../errors.js';
import { isObject, type Json } from '../json.js';
import { ITEM_KEYWORDS, MEMBER_KEYWORDS } from './members.js';
import { type Check, createPatterns, faultHere, type Keyword, type Part, parseChecks } from './part.js';
import { VALUE_KEYWORDS } from './values.js';

const VALID: Check = () => null;
/** Unsupported, because a schema is read only from top to bottom. */
const UNSUPPORTED = ['$ref', '$dynamicRef', '$recursiveRef', '$async'];

/** Throws a 400 that names the invalid place of the schema. */
export function parseSchema(schema: Json, place: string): Check {
  const pattern = createPatterns();
  const parse: Part['parse'] = (part, partPlace) => {
    if (part === true) return VALID;
    if (part === false) return () => faultHere('must not be given');
    if (!isObject(part)) throw badRequest(`${partPlace}: expected a schema: an object, true or false`);
    const refused = UNSUPPORTED.find((name) => Object.hasOwn(part, name));
    if (refused !== undefined) throw badRequest(`${partPlace}: ${refused} is not supported`);
    const checks: Check[] = [];
    for (const [name, keyword] of KEYWORDS) {
      if (!Object.hasOwn(part, name)) continue;
      const check = keyword({ value: part[name] as Json, schema: part, place: `${partPlace}.${name}`, parse, pattern });
      if (check !== null) checks.push(check);
    }
    return checks.length === 0 ? VALID : all(checks);
  };
  return parse(schema, place);
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

const allOf: Keyword = (part) => all(parseChecks(part));

/** Counts matching schemas; `isSettled` ends the count early. */
const someOf =
  (isValidCount: (count: number) => boolean, isSettled: (count: number) => boolean, reason: string): Keyword =>
  (part) => {
    const checks = parseChecks(part);
    return (value, budget) => {
      let count = 0;
      for (const check of checks) {
        if (check(value, budget) === null) count++;
        if (isSettled(count)) break;
      }
      return isValidCount(count) ? null : faultHere(reason);
    };
  };

const not: Keyword = ({ value, place, parse }) => {
  const check = parse(value, place);
  return (given, budget) => (check(given, budget) === null ? faultHere('must NOT be valid') : null);
};

const condition: Keyword = ({ value, schema, place, parse }) => {
  const check = parse(value, place);
  const then = parse(schema.then ?? true, place);
  const otherwise = parse(schema.else ?? true, place);
  return (given, budget) => (check(given, budget) === null ? then : otherwise)(given, budget);
};

/** In the order of evaluation. */
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
