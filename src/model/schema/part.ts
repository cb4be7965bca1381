/** What a keyword of a JSON Schema is read from, and what it becomes. */
import { badRequest } from '../../errors.js';
import type { Json, JsonObject } from '../json.js';
import { compilePattern, type Pattern } from './pattern.js';
import { Overrun, type StepBudget } from './step-budget.js';

/** What does not fit, and where: steps from the value down to the place. */
export interface Fault {
  readonly steps: readonly string[];
  readonly why: string;
}

/** Null where the value fits. */
export type Check = (value: Json, budget: StepBudget) => Fault | null;

/** A keyword of a schema: its value, the schema that has it, and where that stands. */
export interface Part {
  readonly value: Json;
  readonly schema: JsonObject;
  readonly place: string;
  readonly read: (schema: Json | undefined, place: string) => Check;
  readonly pattern: (source: string, place: string) => Pattern;
}

/** Gives null for a keyword that another one of the same schema takes into account. */
export type Keyword = (part: Part) => Check | null;

export const faultHere = (why: string): Fault => ({ steps: [], why });
export const faultBelow = (step: string, { steps, why }: Fault): Fault => ({ steps: [step, ...steps], why });

/** Checks an item or a member; a fault names it. */
export function checkBelow(step: string | number, check: Check, value: Json, budget: StepBudget): Fault | null {
  try {
    const fault = check(value, budget);
    return fault === null ? null : faultBelow(String(step), fault);
  } catch (error) {
    if (error instanceof Overrun) error.steps.unshift(String(step));
    throw error;
  }
}

export function readNumber({ value, place }: Part, isFit: (value: number) => boolean = () => true): number {
  if (typeof value === 'number' && isFit(value)) return value;
  throw badRequest(`${place}: not a number that this can be`);
}

export const readSize = (part: Part): number => readNumber(part, (size) => Number.isInteger(size) && size >= 0);

export function readTexts({ value, place }: Pick<Part, 'value' | 'place'>): string[] {
  const isText = (item: Json): item is string => typeof item === 'string';
  if (Array.isArray(value) && value.every(isText)) return value;
  throw badRequest(`${place}: expected a list of texts`);
}

export function readChecks({ value, place, read }: Part): Check[] {
  if (!Array.isArray(value) || value.length === 0) throw badRequest(`${place}: expected a list of schemas`);
  return value.map((schema, at) => read(schema, `${place}.${at}`));
}

/** Compiles each pattern of a schema once. Throws a 400 for what is none. */
export function createPatterns(): Part['pattern'] {
  const compiled = new Map<string, Pattern>();
  return (source, place) => {
    try {
      const pattern = compiled.get(source) ?? compilePattern(source);
      compiled.set(source, pattern);
      return pattern;
    } catch (error) {
      throw badRequest(`${place}: ${error instanceof Error ? error.message.slice(0, 300) : 'no pattern'}`);
    }
  };
}
