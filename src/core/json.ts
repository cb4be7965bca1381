/** Validates JSON of clients: keys, sizes and numbers must be storable and returned exactly as they came. */
import { badRequest } from './errors.js';
import { LIMITS } from './limits.js';

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** Names with a meaning in JavaScript, and `_bsontype`, which makes the driver treat an object as a BSON type. */
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype', '_bsontype']);

/** Whether a value is a JSON object: not an array, not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What is wrong with a value, and the path from the value down to the fault. */
interface Fault {
  steps: string[];
  reason: string;
}

/**
 * Checks a parsed JSON value at every depth and returns it. Throws a 400 that names the place of a forbidden key, ill-formed
 * text, a number that JSON cannot represent, or a value beyond a limit.
 */
export function checkJson(value: unknown, path: string): Json {
  const why = explainFault(value, path, 0);
  if (why === null) return value as Json;
  throw badRequest(why);
}

/** Names the place of what cannot be stored in a value at this depth, with the reason; null for a value that can be stored. */
export function explainFault(value: unknown, path: string, depth: number): string | null {
  const fault = findFault(value, depth);
  if (fault === null) return null;
  const place = [path, ...fault.steps].join('').replace(/^\./, '').slice(0, 200);
  return `${place === '' && fault.steps.length === 0 ? 'the body' : JSON.stringify(place)}: ${fault.reason}`;
}

// The path is built only on the way back from a fault, so that valid values cost no strings.
function findFault(value: unknown, depth: number): Fault | null {
  if (typeof value === 'string') return textFault(value);
  if (typeof value === 'number')
    return Number.isFinite(value) ? null : { steps: [], reason: 'the number is too large' };
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= LIMITS.jsonDepth) return { steps: [], reason: `nested more than ${LIMITS.jsonDepth} deep` };
  return Array.isArray(value) ? itemsFault(value, depth) : membersFault(value as Record<string, unknown>, depth);
}

function itemsFault(items: unknown[], depth: number): Fault | null {
  if (items.length > LIMITS.jsonArrayItems) return { steps: [], reason: `more than ${LIMITS.jsonArrayItems} items` };
  for (let index = 0; index < items.length; index++) {
    const fault = findFault(items[index], depth + 1);
    if (fault !== null) return { steps: [`[${index}]`, ...fault.steps], reason: fault.reason };
  }
  return null;
}

function membersFault(members: Record<string, unknown>, depth: number): Fault | null {
  const keys = Object.keys(members);
  if (keys.length > LIMITS.jsonKeys) {
    const next = JSON.stringify((keys[LIMITS.jsonKeys] as string).slice(0, LIMITS.keyCharacters));
    return { steps: [], reason: `more than ${LIMITS.jsonKeys} fields; the first one too many is ${next}` };
  }
  for (const key of keys) {
    const fault = keyFault(key) ?? findFault(members[key], depth + 1);
    if (fault !== null) return { steps: [`.${key}`, ...fault.steps], reason: fault.reason };
  }
  return null;
}

function keyFault(key: string): Fault | null {
  if (key === '' || key.startsWith('$') || key.includes('.') || key.includes('\0') || FORBIDDEN_KEYS.has(key)) {
    return {
      steps: [],
      reason: 'a field name may not be empty, begin with $, contain a dot or NUL, or be a reserved word',
    };
  }
  if (key.length <= LIMITS.keyCharacters && key.isWellFormed()) return null;
  return { steps: [], reason: `a field name must be well-formed and at most ${LIMITS.keyCharacters} characters` };
}

/** Whether a name has a meaning in JavaScript or for the driver, so that no value may have it. */
export const isReservedName = (name: string): boolean => FORBIDDEN_KEYS.has(name);

/** Why no stored field may have this name; null if one may. */
export const explainName = (name: string): string | null => keyFault(name)?.reason ?? null;

function textFault(text: string): Fault | null {
  if (text.length > LIMITS.jsonStringCharacters) {
    return { steps: [], reason: `longer than ${LIMITS.jsonStringCharacters} characters` };
  }
  return text.isWellFormed() ? null : { steps: [], reason: 'the text is not well-formed Unicode' };
}

/** Checks a body that must be a JSON object. Throws a 400. */
export function parseObject(body: unknown): JsonObject {
  if (!isObject(body)) throw badRequest('the body must be a JSON object');
  checkJson(body, '');
  return body;
}
