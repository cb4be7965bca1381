/** Which JSON a client may hand in: the keys, sizes and numbers that can be stored and given back exactly. */
import { badRequest } from '../errors.js';
import { LIMITS } from './limits.js';

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** Names that mean something to JavaScript; and to the driver of the database, which takes an object with it for one of its own. */
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype', '_bsontype']);

/** Whether a value is a plain JSON object (no array, no null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What is wrong with a value, and where: steps from the value down to the place. */
interface Fault {
  steps: string[];
  why: string;
}

/**
 * Checks any parsed JSON value, at every depth, and gives it back: keys that mean something to the database or to
 * JavaScript, ill-formed text, numbers that JSON cannot carry back, and whatever is over a limit are a 400 that names
 * the place.
 */
export function checkJson(value: unknown, path: string): Json {
  const fault = findFault(value, 0);
  if (fault === null) return value as Json;
  const place = [path, ...fault.steps].join('').replace(/^\./, '').slice(0, 200);
  throw badRequest(`${JSON.stringify(place)}: ${fault.why}`);
}

// The place is put together only on the way back from a fault: a sound value costs no strings.
function findFault(value: unknown, depth: number): Fault | null {
  if (typeof value === 'string') return textFault(value);
  if (typeof value === 'number') return Number.isFinite(value) ? null : { steps: [], why: 'the number is too large' };
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= LIMITS.jsonDepth) return { steps: [], why: `nested more than ${LIMITS.jsonDepth} deep` };
  return Array.isArray(value) ? itemsFault(value, depth) : membersFault(value as Record<string, unknown>, depth);
}

function itemsFault(items: unknown[], depth: number): Fault | null {
  if (items.length > LIMITS.jsonArrayItems) return { steps: [], why: `more than ${LIMITS.jsonArrayItems} items` };
  for (let at = 0; at < items.length; at++) {
    const fault = findFault(items[at], depth + 1);
    if (fault !== null) return { steps: [`[${at}]`, ...fault.steps], why: fault.why };
  }
  return null;
}

function membersFault(members: Record<string, unknown>, depth: number): Fault | null {
  const keys = Object.keys(members);
  if (keys.length > LIMITS.jsonKeys) return { steps: [], why: `more than ${LIMITS.jsonKeys} fields` };
  for (const key of keys) {
    const fault = keyFault(key) ?? findFault(members[key], depth + 1);
    if (fault !== null) return { steps: [`.${key}`, ...fault.steps], why: fault.why };
  }
  return null;
}

function keyFault(key: string): Fault | null {
  if (key === '' || key.startsWith('$') || key.includes('.') || key.includes('\0') || FORBIDDEN_KEYS.has(key)) {
    return {
      steps: [],
      why: 'a field name may not be empty, begin with $, contain a dot or NUL, or be a reserved word',
    };
  }
  if (key.length <= LIMITS.keyCharacters && key.isWellFormed()) return null;
  return { steps: [], why: `a field name must be well-formed and at most ${LIMITS.keyCharacters} characters` };
}

/** Whether a field of anything that is stored may have the name. */
export function isFieldName(name: string): boolean {
  return keyFault(name) === null;
}

function textFault(text: string): Fault | null {
  if (text.length > LIMITS.jsonStringCharacters) {
    return { steps: [], why: `longer than ${LIMITS.jsonStringCharacters} characters` };
  }
  return text.isWellFormed() ? null : { steps: [], why: 'the text is not well-formed Unicode' };
}

/** A body that must be a JSON object: checked, or a 400. */
export function readObject(body: unknown): JsonObject {
  if (!isObject(body)) throw badRequest('the body must be a JSON object');
  checkJson(body, '');
  return body;
}
