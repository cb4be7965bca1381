/** Formulas of a model: parameters that are calculated of others of the same packet, in the order in which they depend on each other. Pure. */
import { isObject, type Json, type JsonObject } from './json.js';
import { LIMITS } from './limits.js';
import { type Calculated, type DataType, isDataType, toType } from './model.js';
import { type Formula, parseFormula } from './rule/expression.js';
import { Steps } from './rule/metering.js';

export interface Formulas {
  /** Adds what is calculated to the parameters of a packet; `fail` is told of what has no result, which is null then. */
  calculate(parameters: JsonObject, fail: Fail): Calculated;
}

type Fail = (parameter: string, reason: string) => void;

/** Where something is in the tree of a model. */
type Path = readonly (string | number)[];

interface Declared {
  readonly parameter: string;
  readonly type: DataType | null;
  readonly text: string;
  readonly path: Path;
}

interface Compiled extends Declared {
  readonly formula: Formula;
}

type Report = (path: Path, reason: string) => void;

/** Parses the formulas of a model; `report` is told of each that cannot be. Null where there are none. */
export function parseFormulas(data: unknown, report: Report): Formulas | null {
  const declared = declaredIn(data, []);
  const tooMany = declared[LIMITS.modelFormulas];
  if (tooMany !== undefined) report(tooMany.path, `a model has at most ${LIMITS.modelFormulas} formulas`);
  const compiled = declared.slice(0, LIMITS.modelFormulas).flatMap((one) => compile(one, report));
  const ordered = order(compiled, report);
  let cost = 0;
  const kept = ordered.filter(({ formula, path }) => {
    cost += formula.cost;
    if (cost > LIMITS.modelFormulaCost) report(path, 'the formulas of the model are too much work for each packet');
    return cost <= LIMITS.modelFormulaCost;
  });
  if (kept.length === 0) return null;
  return {
    calculate(parameters, fail) {
      const calculation = { parameters, steps: new Steps(), room: new Room(), fail };
      const added = kept.filter((one) => calculate(one, calculation)).map(({ parameter }) => parameter);
      return {
        parameters: added,
        fail: (reason) => {
          for (const parameter of added) fail(parameter, reason);
        },
      };
    },
  };
}

function declaredIn(node: unknown, path: Path): Declared[] {
  if (!isObject(node)) return [];
  const { type, id, dataType, formula, children } = node;
  const isFormula = type === 'argument' && typeof id === 'string' && (formula ?? '') !== '';
  const own = { parameter: String(id), type: isDataType(dataType) ? dataType : null, text: formula as string };
  const below = Array.isArray(children) ? children : [];
  return [
    ...(isFormula ? [{ ...own, path: [...path, 'formula'] }] : []),
    ...below.flatMap((child, index) => declaredIn(child, [...path, 'children', index])),
  ];
}

class Invalid extends Error {}

function compile(declared: Declared, report: Report): Compiled[] {
  const fail = (reason: string): never => {
    throw new Invalid(reason);
  };
  try {
    const { parameter, text } = declared;
    if (typeof text !== 'string') return fail('expected an expression, such as "p.speed * 3.6"');
    if (RESERVED.has(parameter) || !CALCULATED.test(parameter)) return fail(`${parameter} cannot be calculated`);
    return [{ ...declared, formula: parseFormula(text, fail) }];
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    report(declared.path, error.message);
    return [];
  }
}

/** Fields of a packet that are no parameters. */
const RESERVED: ReadonlySet<string> = new Set([
  'time',
  'online',
  'id',
  'success',
  'deviceTime',
  'constructor',
  'prototype',
]);
/** Neither a member nor a field of the service. */
const CALCULATED = /^[^_$.][^.]*$/;

/** Those that others read come first. What goes in a circle has no order. */
function order(compiled: readonly Compiled[], report: Report): Compiled[] {
  const byName = new Map<string, Compiled>();
  for (const one of compiled) {
    if (byName.has(one.parameter)) report(one.path, `${one.parameter} has another formula already`);
    else byName.set(one.parameter, one);
  }
  const ordered: Compiled[] = [];
  const done = new Set<Compiled>();
  const visit = (one: Compiled, above: readonly Compiled[]): void => {
    if (done.has(one)) return;
    if (above.includes(one)) {
      const circle = [...above.slice(above.indexOf(one)), one].map(({ parameter }) => parameter);
      report(one.path, `calculated of itself: ${circle.join(', ')}`);
      return;
    }
    for (const name of one.formula.params) {
      const other = byName.get(name);
      if (other !== undefined) visit(other, [...above, one]);
    }
    if (done.has(one)) return;
    done.add(one);
    ordered.push(one);
  };
  for (const one of byName.values()) visit(one, []);
  return ordered;
}

/** The formulas of one packet. */
interface Calculation {
  readonly parameters: JsonObject;
  /** Of all of them. */
  readonly steps: Steps;
  readonly room: Room;
  readonly fail: Fail;
}

/** The room for all results of a packet. */
class Room {
  #characters: number = LIMITS.formulaResultCharacters;

  /** Throws where there is not enough of it. */
  take(value: Json): void {
    const characters = charactersOf(value);
    if (characters > this.#characters) throw new Error('the results of the formulas are too long');
    this.#characters -= characters;
  }
}

function charactersOf(value: Json): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + charactersOf(item), 0);
  return typeof value === 'string' ? value.length : LIMITS.formulaNumberCharacters;
}

/** Returns whether it has added something. */
function calculate({ parameter, type, formula }: Compiled, { parameters, steps, room, fail }: Calculation): boolean {
  const { params } = formula;
  // What a packet does not contain at all says nothing.
  if (params.length > 0 && !params.some((name) => Object.hasOwn(parameters, name))) return false;
  let value: Json = null;
  try {
    const result = toResult(formula.calculate(parameters, steps), type);
    room.take(result);
    value = result;
  } catch (error) {
    // What is not known is not known of its result either.
    const isUnknown = params.some((name) => parameters[name] === null);
    if (!isUnknown) fail(parameter, error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
  }
  parameters[parameter] = value;
  return true;
}

/** Throws for what a parameter cannot be. */
function toResult(result: unknown, type: DataType | null): Json {
  const value = toJson(result);
  const converted = value === undefined ? undefined : type === null ? value : toType(value, type);
  if (converted !== undefined) return converted;
  throw new Error(`the result is not ${type ?? 'a number, a text, true or false, or a list of these'}`);
}

function toJson(result: unknown): Json | undefined {
  if (typeof result === 'bigint') return toJson(Number(result));
  if (typeof result === 'number') return Number.isFinite(result) ? result : undefined;
  if (typeof result === 'boolean') return result;
  if (typeof result === 'string') return result.length <= LIMITS.expressionCharacters ? result : undefined;
  if (!Array.isArray(result) || result.length > LIMITS.expressionItems) return undefined;
  const items = result.map((item) => (Array.isArray(item) ? undefined : toJson(item)));
  return items.includes(undefined) ? undefined : (items as Json[]);
}
