/**
 * JSON Schemas (draft-07) of the stores that administrators add. They are interpreted, not compiled to JavaScript: Ajv took
 * 0.5 s for a schema of a thousand parts, and minutes for references to a large part. A `StepBudget` bounds every check, so
 * that no schema and no entity can block the process.
 *
 * Ajv in a worker thread cannot keep these bounds: only terminating the thread interrupts it. On a busy machine, a limit of
 * 250 ms refused valid entities, because a thread takes as long to start and to load Ajv. A limit of 1 s makes other tenants
 * wait for several seconds. Neither can name the field.
 */
import { ApiError, badRequest } from '../errors.js';
import { isObject, type JsonObject } from '../json.js';
import { LIMITS } from '../limits.js';
import { parseSchema } from './keywords.js';
import type { Check, Fault } from './part.js';
import { patternSize } from './pattern.js';
import { Overrun, StepBudget } from './step-budget.js';

export interface Schema {
  /** The approximate memory of the compiled schema. */
  readonly bytes: number;
  /** Throws a 400 that names the invalid field. */
  check(fields: JsonObject): void;
}

/** A compiled pattern keeps its instructions and their tables. */
const BYTES_OF_PATTERN_SIZE = 300;
/** A compiled schema is larger than its text. */
const BYTES_OF_CHARACTER = 10;

/** Throws a 400 that says what is wrong with the schema. `nowMs` reads the processor time of the process. */
export function compileSchema(schema: JsonObject, nowMs: () => number): Schema {
  const characters = JSON.stringify(schema).length;
  if (characters > LIMITS.schemaBytes) throw badRequest(`schema: larger than ${LIMITS.schemaBytes} bytes`);
  const patternsSize = checkCost(schema);
  const check = parse(schema);
  return {
    bytes: characters * BYTES_OF_CHARACTER + patternsSize * BYTES_OF_PATTERN_SIZE,
    check(fields) {
      const fault = faultOf(check, fields, new StepBudget(nowMs));
      if (fault !== null) throw badRequest(`${fault.steps.join('.') || 'the entity'}: ${fault.reason}`);
    },
  };
}

function faultOf(check: Check, fields: JsonObject, budget: StepBudget): Fault | null {
  try {
    return check(fields, budget);
  } catch (error) {
    if (error instanceof Overrun) return { steps: error.steps, reason: error.message };
    throw error;
  }
}

function parse(schema: JsonObject): Check {
  try {
    return parseSchema(schema, 'schema');
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw badRequest(`schema: ${error instanceof Error ? error.message.slice(0, 500) : 'not a JSON Schema'}`);
  }
}

/** Checks the limits before the schema is compiled; returns the total size of its patterns. */
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
  if (all > LIMITS.schemaPatternsSize) throw badRequest('schema: its patterns are too large in total');
  return all;
}
