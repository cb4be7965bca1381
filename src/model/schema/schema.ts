/**
 * JSON Schemas (draft-07) of the stores that administrators add. They are walked, not compiled to JavaScript: that took Ajv
 * 0.5 s for a schema of a thousand parts, and minutes for one of references to a large part. Every step of a check is paid
 * for from a `StepBudget`, so that no schema and no entity keeps the process busy.
 */
import { ApiError, badRequest } from '../../errors.js';
import { isObject, type JsonObject } from '../json.js';
import { LIMITS } from '../limits.js';
import { readSchema } from './keywords.js';
import type { Check, Fault } from './part.js';
import { patternSize } from './pattern.js';
import { Overrun, StepBudget } from './step-budget.js';

export interface Schema {
  /** How much memory it keeps, roughly. */
  readonly bytes: number;
  /** Throws a 400 that names the field that does not fit. */
  check(fields: JsonObject): void;
}

/** A pattern that is compiled keeps its instructions and their tables. */
const BYTES_OF_PATTERN_SIZE = 300;
/** What is read from a schema is larger than its text. */
const BYTES_OF_CHARACTER = 10;

/** Reads a schema; a 400 says what is wrong with it. `nowMs` reads a monotonic clock. */
export function compileSchema(schema: JsonObject, nowMs: () => number): Schema {
  const characters = JSON.stringify(schema).length;
  if (characters > LIMITS.schemaBytes) throw badRequest(`schema: larger than ${LIMITS.schemaBytes} bytes`);
  const patternsSize = checkCost(schema);
  const check = read(schema);
  return {
    bytes: characters * BYTES_OF_CHARACTER + patternsSize * BYTES_OF_PATTERN_SIZE,
    check(fields) {
      const fault = faultOf(check, fields, new StepBudget(nowMs));
      if (fault !== null) throw badRequest(`${fault.steps.join('.') || 'the entity'}: ${fault.why}`);
    },
  };
}

function faultOf(check: Check, fields: JsonObject, budget: StepBudget): Fault | null {
  try {
    return check(fields, budget);
  } catch (error) {
    if (error instanceof Overrun) return { steps: error.steps, why: error.message };
    throw error;
  }
}

function read(schema: JsonObject): Check {
  try {
    return readSchema(schema, 'schema');
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw badRequest(`schema: ${error instanceof Error ? error.message.slice(0, 500) : 'not a JSON Schema'}`);
  }
}

/** Counts before anything is read; gives the size of all patterns together. */
function checkCost(schema: JsonObject): number {
  const patterns: string[] = [];
  let parts = 0;
  const visit = (value: unknown, depth: number): void => {
    if (typeof value !== 'object' || value === null) return;
    if (depth >= LIMITS.jsonDepth) throw badRequest(`schema: nested more than ${LIMITS.jsonDepth} deep`);
    parts++;
    for (const [key, part] of Object.entries(value)) {
      if (key === 'pattern' && typeof part === 'string') patterns.push(part);
      if (key === 'patternProperties' && isObject(part)) patterns.push(...Object.keys(part));
      visit(part, depth + 1);
    }
  };
  visit(schema, 0);
  if (parts > LIMITS.schemaParts) throw badRequest(`schema: more than ${LIMITS.schemaParts} parts`);
  if (patterns.length > LIMITS.schemaPatterns) {
    throw badRequest(`schema: more than ${LIMITS.schemaPatterns} patterns`);
  }
  const sizes = patterns.map(patternSize);
  const largest = sizes.indexOf(Math.max(...sizes));
  if ((sizes[largest] ?? 0) > LIMITS.schemaPatternSize) {
    throw badRequest(
      `schema: the pattern ${(patterns[largest] ?? '').slice(0, 100)} is too large, or repeats too much`,
    );
  }
  const all = sizes.reduce((sum, size) => sum + size, 0);
  if (all > LIMITS.schemaPatternsSize) throw badRequest('schema: its patterns are too large all together');
  return all;
}
