/** The input and the output of keyword compilers: a part of a schema, and a check. */
import { badRequest } from '../errors.js';
import type { Json, JsonObject } from '../json.js';
import { compilePattern, type Pattern } from './pattern.js';
import { Overrun, type StepBudget } from './step-budget.js';

/** What is wrong with a value, and the path from the value down to the fault. */
export interface Fault {
  readonly steps: readonly string[];
  readonly reason: string;
}

/** Returns null for a valid value. */
export type Check = (value: Json, budget: StepBudget) => Fault | null;

/** A keyword: its value, the schema that contains it, and its place for error messages. */
export interface Part {
  readonly value: Json;
  readonly schema: JsonObject;
  readonly place: string;
  readonly parse: (schema: Json | undefined, place: string) => Check;
  readonly pattern: (source: string, place: string) => Pattern;
}

/** Returns null for a keyword that needs no check of its own. */
export type Keyword = (part: Part) => Check | null;

export const faultHere = (reason: string): Fault => ({ steps: [], reason });
export const faultBelow = (step: string, { steps, reason }: Fault): Fault => ({ steps: [step, ...steps], reason });

/** Checks an item or a member; the fault includes its name. */
export function checkBelow(step: string | number, check: Check, value: Json, budget: StepBudget): Fault | null {
  try {
    const fault = check(value, budget);
    return fault === null ? null : faultBelow(String(step), fault);
  } catch (error) {
    if (error instanceof Overrun) error.steps.unshift(String(step));
    throw error;
  }
}

export function parseNumber({ value, place }: Part, isValid: (value: number) => boolean = () => true): number {
  if (typeof value === 'number' && isValid(value)) return value;
  throw badRequest(`${place}: not a valid number here`);
}

export const parseSize = (part: Part): number => parseNumber(part, (size) => Number.isInteger(size) && size >= 0);

export function parseTextList({ value, place }: Pick<Part, 'value' | 'place'>): string[] {
  const isText = (item: Json): item is string => typeof item === 'string';
  if (Array.isArray(value) && value.every(isText)) return value;
  throw badRequest(`${place}: expected a list of strings`);
}

export function parseChecks({ value, place, parse }: Part): Check[] {
  if (!Array.isArray(value) || value.length === 0) throw badRequest(`${place}: expected a list of schemas`);
  return value.map((schema, index) => parse(schema, `${place}.${index}`));
}

/** Compiles each pattern of a schema once. Throws a 400 for an invalid pattern. */
export function createPatterns(): Part['pattern'] {
  const compiled = new Map<string, Pattern>();
  return (source, place) => {
    try {
      const pattern = compiled.get(source) ?? compilePattern(source);
      compiled.set(source, pattern);
      return pattern;
    } catch (error) {
      throw badRequest(`${place}: ${error instanceof Error ? error.message.slice(0, 300) : 'not a pattern'}`);
    }
  };
}
