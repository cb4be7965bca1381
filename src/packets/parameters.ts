/**
 * Parses the fields of a message that are parameters. Dotted names are members: `position.latitude` is `latitude` of `position`. A
 * field that cannot be stored costs none of the others.
 */
import { badRequest } from '../core/errors.js';
import { isRounded } from '../core/exact-json.js';
import { explainFault, explainName, isObject, type Json, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { type DataType, type Declarations, memberAt, toType } from '../core/model.js';

/** Fields of a message that are no parameters. So are all whose name begins with `_`. */
const SERVICE_FIELDS: ReadonlySet<string> = new Set(['time', 'online', 'id', 'success']);

export interface Parameters {
  readonly kept: JsonObject;
  /** Why fields are left out. */
  readonly dropped: string[];
}

/** Throws a 400 for too many fields, and for two that have the same place. */
export function parseParameters(body: JsonObject, declared: Declarations): Parameters {
  const kept: JsonObject = {};
  const dropped: string[] = [];
  // Usual packets have no fault and no dotted name: their fields need no further check.
  const fault = explainFault(body, '', 0);
  if (fault === null) {
    for (const name of Object.keys(body)) {
      if (isServiceName(name)) continue;
      const given = body[name] as Json;
      const type = declared.parameters.get(name);
      const value = type === undefined ? given : toType(given, type);
      if (value === undefined) dropped.push(`${name}: ${explainType(given, type)}`);
      else kept[name] = value;
    }
  } else if (Object.keys(body).length > LIMITS.jsonKeys) throw badRequest(fault);
  else parseEach(body, declared, { kept, dropped });
  if (declared.members.length > 0) addMembers(kept, declared);
  return { kept, dropped };
}

function parseEach(body: JsonObject, declared: Declarations, { kept, dropped }: Parameters): void {
  for (const name of Object.keys(body)) {
    const path = name.split('.');
    const fault = path.length === 1 ? explainPlainName(name) : explainPath(name, path);
    if (fault !== null) dropped.push(fault);
    if (fault !== null || isServiceName(path[0] ?? '')) continue;
    const given = withMembers(body[name] as Json, name, path.length);
    const reason = explainFault(given, name, path.length);
    const type = declared.parameters.get(name);
    const value = reason === null && type !== undefined ? toType(given, type) : given;
    if (reason !== null) dropped.push(reason);
    else if (value === undefined) dropped.push(`${name}: ${explainType(given, type)}`);
    else insert(kept, path, value, name);
  }
}

const isServiceName = (name: string): boolean => name.startsWith('_') || SERVICE_FIELDS.has(name);

/** A name that begins with `_` is no parameter, and need not be storable, unless it means something in JavaScript. */
const explainPlainName = (name: string): string | null => {
  const fault = explainName(name);
  return fault === null || (name.startsWith('_') && !RESERVED.has(name)) ? null : `${quote(name)}: ${fault}`;
};
const RESERVED: ReadonlySet<string> = new Set(['__proto__', '_bsontype']);

function explainPath(name: string, path: readonly string[]): string | null {
  const [first = ''] = path;
  if (SERVICE_FIELDS.has(first)) return `${quote(name)}: ${first} has no members`;
  if (path.length > LIMITS.jsonDepth) return `${quote(name)}: nested more than ${LIMITS.jsonDepth} deep`;
  for (const part of path) {
    const fault = explainName(part);
    if (fault !== null) return `${quote(name)}: ${fault}`;
  }
  return null;
}

const quote = (name: string): string => JSON.stringify(name.slice(0, 200));

/** The value with dotted names of its members resolved. Values without any, and such that will be refused, stay as they are. */
function withMembers(value: Json, name: string, depth: number): Json {
  if (typeof value !== 'object' || value === null || !hasDots(value, depth)) return value;
  return isTooDeep(value, depth) ? value : resolve(value, name);
}

function hasDots(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null || depth >= LIMITS.jsonDepth) return false;
  if (Array.isArray(value)) return value.some((item) => hasDots(item, depth + 1));
  return Object.keys(value).some((key) => key.includes('.') || hasDots(value[key] as Json, depth + 1));
}

/** Whether a value at this depth contains one that is nested deeper than any that is stored. */
export function isTooDeep(value: Json, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth >= LIMITS.jsonDepth || Object.values(value).some((member) => isTooDeep(member, depth + 1));
}

function resolve(value: Json, name: string): Json {
  if (Array.isArray(value)) return value.map((item) => resolve(item, name));
  if (!isObject(value)) return value;
  const resolved: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    const path = key.split('.');
    // A longer path is refused for its dots.
    insert(resolved, path.length > LIMITS.jsonDepth ? [key] : path, resolve(member, name), `${name}.${key}`);
  }
  return resolved;
}

/** Sets a member at a path. Throws a 400 if something else is there. */
function insert(object: JsonObject, path: readonly string[], value: Json, name: string): void {
  const [first = '', ...rest] = path;
  const present = Object.hasOwn(object, first) ? object[first] : undefined;
  if (present === undefined) set(object, first, rest.length === 0 ? value : inside(rest, value));
  else if (!isObject(present) || (rest.length === 0 && !isObject(value))) {
    throw badRequest(`${quote(name)}: another field of the packet has this place`);
  } else if (rest.length > 0) insert(present, rest, value, name);
  else
    for (const [key, member] of Object.entries(value as JsonObject)) insert(present, [key], member, `${name}.${key}`);
}

const inside = (path: readonly string[], value: Json): JsonObject =>
  path.reduceRight<Json>((inner, name) => set({}, name, inner), value) as JsonObject;

// Any name becomes an own property, also `__proto__`, so that the check of names sees it and refuses it.
function set(object: JsonObject, name: string, value: Json): JsonObject {
  return Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function explainType(given: Json, type: DataType | undefined): string {
  const isLong = type === 'number' && typeof given === 'string' && isRounded(given.trim());
  return isLong
    ? `expected a number of at most 15 digits; declare it as string to keep ${given.trim().slice(0, 40)}`
    : `expected ${type}, as the object's model declares it`;
}

/** Adds parameters that are members of other parameters, unless the device sent them directly. */
function addMembers(kept: JsonObject, { members, parameters: types }: Declarations): void {
  for (const { parameter, of, path } of members) {
    if (Object.hasOwn(kept, parameter) || explainName(parameter) !== null || isServiceName(parameter)) continue;
    const value = memberAt(kept[of], path) as Json | undefined;
    const type = types.get(parameter);
    const converted = value === undefined || type === undefined ? value : toType(value, type);
    if (converted !== undefined) kept[parameter] = converted;
  }
}
