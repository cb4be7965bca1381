/**
 * A subset of JSONPath (RFC 9535): `$`, then names and indexes, which lead to one value: `$.dev.id`, `$['in.1'][0]`, `$.t[-1]`.
 * Wildcards, slices, filters and `..` are not part of it. Pure.
 */
import type { Json } from './json.js';
import { LIMITS } from './limits.js';

/** Names of members, and indexes of lists. */
export type JsonPath = readonly (string | number)[];

// member-name-shorthand, index, and quoted names, with blanks in front: RFC 9535, 2.1.1, 2.3 and 2.5.1.
const SHORTHAND = /^\s*\.([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)/;
const INDEX = /^\s*\[\s*(0|-?[1-9]\d{0,8})\s*\]/;
const DOUBLE_QUOTED = /^\s*\[\s*("(?:[^"\\\p{Cc}]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")\s*\]/u;
const SINGLE_QUOTED = /^\s*\[\s*'((?:[^'\\\p{Cc}]|\\['\\/bfnrt]|\\u[0-9a-fA-F]{4})*)'\s*\]/u;

/** Null for a text that is no such path. */
export function parseJsonPath(text: string): JsonPath | null {
  if (!text.startsWith('$') || text.length > LIMITS.sourcePathCharacters) return null;
  const path: (string | number)[] = [];
  for (let rest = text.slice(1).trimEnd(); rest !== ''; ) {
    const step = parseStep(rest);
    if (step === null) return null;
    path.push(step.name);
    rest = rest.slice(step.length);
  }
  return path;
}

function parseStep(rest: string): { readonly name: string | number; readonly length: number } | null {
  const shorthand = SHORTHAND.exec(rest);
  if (shorthand !== null) return { name: shorthand[1] as string, length: shorthand[0].length };
  const index = INDEX.exec(rest);
  if (index !== null) return { name: Number(index[1]), length: index[0].length };
  const double = DOUBLE_QUOTED.exec(rest);
  if (double !== null) return { name: JSON.parse(double[1] as string), length: double[0].length };
  const single = SINGLE_QUOTED.exec(rest);
  if (single === null) return null;
  const quoted = (single[1] as string).replace(/\\.|"/g, (found) => {
    if (found === '"') return '\\"';
    return found === "\\'" ? "'" : found;
  });
  return { name: JSON.parse(`"${quoted}"`), length: single[0].length };
}

/** The value at the path; undefined where there is none. An index below 0 counts from the end. */
export function valueAt(value: unknown, path: JsonPath): Json | undefined {
  let current: unknown = value;
  for (const step of path) {
    if (typeof step === 'number') current = Array.isArray(current) ? current.at(step) : undefined;
    else current = isMember(current, step) ? current[step] : undefined;
  }
  return current as Json | undefined;
}

const isMember = (value: unknown, name: string): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, name);
