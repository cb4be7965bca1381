/** Checks the names of fields in files and arguments of the command line. */
import { isReservedName } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { PlainError } from '../program.js';

/**
 * Refuses names such as `__proto__`, at every depth: they name what all objects of JavaScript share, and Vigil stores none of them.
 * `place` is the path of the value, for the error. YAML aliases can nest a value in itself, so the depth is bounded too.
 */
export function checkNames(value: unknown, place = '', depth = 0): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth >= LIMITS.jsonDepth) throw new PlainError(`${place}: nested more than ${LIMITS.jsonDepth} deep`);
  for (const [name, inner] of Object.entries(value)) {
    const step = Array.isArray(value) ? `[${name}]` : `.${name}`;
    const path = place === '' ? name : place + step;
    if (isReservedName(name)) throw new PlainError(`${path}: a field cannot be named "${name}"`);
    checkNames(inner, path, depth + 1);
  }
}

/** The own value of a field: not one that every object inherits, such as `toString`. */
export const ownValue = (fields: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;
