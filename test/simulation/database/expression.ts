/** The few aggregation expressions that our updates and queries use. It throws for all others. */
import type { Document } from 'mongodb';
import { compareValues, isNumber, toNumber } from './compare.js';

export interface Variables {
  readonly root: Document;
  readonly nowMs?: number;
  readonly named?: Readonly<Record<string, unknown>>;
}

const isMissing = (value: unknown): boolean => value === undefined || value === null;

function fieldAt(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (Array.isArray(value)) return value.map((item) => fieldAt(item, path)).filter((item) => item !== undefined);
  if (typeof value !== 'object' || value === null) return undefined;
  return fieldAt((value as Document)[name], rest);
}

function variable(text: string, variables: Variables): unknown {
  const [name = '', ...path] = text.slice(2).split('.');
  if (name === 'ROOT' || name === 'CURRENT') return fieldAt(variables.root, path);
  if (name === 'NOW') return new Date(variables.nowMs ?? 0);
  if (name === 'REMOVE') return undefined;
  if (variables.named && name in variables.named) return fieldAt(variables.named[name], path);
  throw new Error(`the simulated database does not know $$${name}`);
}

export function evaluate(expression: unknown, variables: Variables): unknown {
  if (typeof expression === 'string') {
    if (expression.startsWith('$$')) return variable(expression, variables);
    return expression.startsWith('$') ? fieldAt(variables.root, expression.slice(1).split('.')) : expression;
  }
  if (Array.isArray(expression)) return expression.map((item) => evaluate(item, variables) ?? null);
  if (typeof expression !== 'object' || expression === null || '_bsontype' in expression) return expression;
  if (expression instanceof Date) return expression;
  const [operator = ''] = Object.keys(expression);
  if (!operator.startsWith('$')) {
    const entries = Object.entries(expression).map(([name, value]) => [name, evaluate(value, variables)]);
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }
  return operate(operator, (expression as Document)[operator], variables);
}

type Operator = (argument: unknown, variables: Variables) => unknown;

const all = (argument: unknown, variables: Variables): unknown[] =>
  (Array.isArray(argument) ? argument : [argument]).map((item) => evaluate(item, variables));

const ordered =
  (isMet: (order: number) => boolean): Operator =>
  (argument, variables) => {
    const [a, b] = all(argument, variables);
    // A field that is missing comes before null.
    const order =
      a === undefined || b === undefined ? Number(a !== undefined) - Number(b !== undefined) : compareValues(a, b);
    return isMet(order);
  };

function add(argument: unknown, variables: Variables): unknown {
  const items = all(argument, variables);
  if (items.some(isMissing)) return null;
  const date = items.find((item) => item instanceof Date);
  const sum = items.reduce<number>(
    (total, item) => total + (item instanceof Date ? item.getTime() : toNumber(item)),
    0,
  );
  return date === undefined ? sum : new Date(sum);
}

function subtract(argument: unknown, variables: Variables): unknown {
  const [a, b] = all(argument, variables);
  if (isMissing(a) || isMissing(b)) return null;
  const ms = (value: unknown): number => (value instanceof Date ? value.getTime() : toNumber(value));
  return a instanceof Date && isNumber(b) ? new Date(ms(a) - ms(b)) : ms(a) - ms(b);
}

function condition(argument: unknown, variables: Variables): unknown {
  const given = argument as { if: unknown; then: unknown; else: unknown };
  const [test, yes, no] = Array.isArray(argument) ? argument : [given.if, given.then, given.else];
  const met = evaluate(test, variables);
  return evaluate(isMissing(met) || met === false || met === 0 ? no : yes, variables);
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  $literal: (argument) => argument,
  $ifNull: (argument, variables) => {
    const items = all(argument, variables);
    return items.find((item) => !isMissing(item)) ?? items.at(-1);
  },
  $eq: ordered((order) => order === 0),
  $ne: ordered((order) => order !== 0),
  $gt: ordered((order) => order > 0),
  $gte: ordered((order) => order >= 0),
  $lt: ordered((order) => order < 0),
  $lte: ordered((order) => order <= 0),
  $add: add,
  $subtract: subtract,
  $cond: condition,
  $and: (argument, variables) => all(argument, variables).every((item) => Boolean(item)),
  $or: (argument, variables) => all(argument, variables).some((item) => Boolean(item)),
  $not: (argument, variables) => !all(argument, variables)[0],
  $in: (argument, variables) => {
    const [item, list] = all(argument, variables);
    return (list as unknown[]).some((one) => compareValues(one, item) === 0);
  },
  $max: (argument, variables) =>
    all(argument, variables)
      .filter((item) => !isMissing(item))
      .reduce<unknown>((a, b) => (a !== undefined && compareValues(a, b) >= 0 ? a : b), undefined) ?? null,
  $concatArrays: (argument, variables) => {
    const lists = all(argument, variables);
    return lists.some(isMissing) ? null : lists.flat();
  },
  $slice: (argument, variables) => {
    const [list, count] = all(argument, variables) as [unknown[], number];
    return count < 0 ? list.slice(count) : list.slice(0, count);
  },
  $setDifference: (argument, variables) => {
    const [list, other] = all(argument, variables) as [unknown[], unknown[]];
    return list.filter((item) => !other.some((one) => compareValues(one, item) === 0));
  },
  $objectToArray: (argument, variables) => {
    const found = evaluate(argument, variables);
    return isMissing(found) ? null : Object.entries(found as Document).map(([k, v]) => ({ k, v }));
  },
  $map: (argument, variables) => {
    const { input, in: make } = argument as { input: unknown; in: unknown };
    const list = evaluate(input, variables) as unknown[];
    const named = (item: unknown) => ({ ...variables, named: { ...variables.named, this: item } });
    return isMissing(list) ? null : list.map((item) => evaluate(make, named(item)) ?? null);
  },
  $size: (argument, variables) => (all(argument, variables)[0] as unknown[]).length,
};

function operate(operator: string, argument: unknown, variables: Variables): unknown {
  const known = OPERATORS[operator];
  if (known === undefined) throw new Error(`the simulated database does not know the expression ${operator}`);
  return known(argument, variables);
}
