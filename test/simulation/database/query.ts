/** Filters, projections and sort orders of the simulated database. It throws for whatever it does not know. */
import type { Document } from 'mongodb';
import { areEqual, compareValues, isNumber } from './compare.js';
import { evaluate } from './expression.js';

const paths = new Map<string, readonly string[]>();

/** The names in a path; of few paths, which are asked for again and again. */
export function pathOf(text: string): readonly string[] {
  const known = paths.get(text);
  if (known !== undefined) return known;
  const path = text.split('.');
  paths.set(text, path);
  return path;
}

/** The values at a path; a path through an array leads to the values in each of its items. */
export function valuesAt(value: unknown, path: readonly string[], at = 0): unknown[] {
  const name = path[at];
  if (name === undefined) return [value];
  if (Array.isArray(value)) {
    const nested = value.flatMap((item) => (!Array.isArray(item) && isDocument(item) ? valuesAt(item, path, at) : []));
    return /^\d+$/.test(name) && Number(name) < value.length
      ? [...valuesAt(value[Number(name)], path, at + 1), ...nested]
      : nested;
  }
  if (!isDocument(value) || !Object.hasOwn(value, name)) return [undefined];
  return valuesAt((value as Document)[name], path, at + 1);
}

export function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !('_bsontype' in value) && !(value instanceof Date);
}

const isOperators = (value: unknown): value is Document =>
  isDocument(value) && !(value instanceof RegExp) && Object.keys(value).some((name) => name.startsWith('$'));

/** `nowMs` is the time by the clock of the database. */
export function matches(document: Document, filter: Document, nowMs = 0): boolean {
  for (const name of Object.keys(filter)) if (!matchesOne(document, name, filter[name], nowMs)) return false;
  return true;
}

function matchesOne(document: Document, name: string, condition: Document, nowMs: number): boolean {
  if (!name.startsWith('$')) return meets(valuesAt(document, pathOf(name)), condition);
  if (name === '$and') return condition.every((one: Document) => matches(document, one, nowMs));
  if (name === '$or') return condition.some((one: Document) => matches(document, one, nowMs));
  if (name === '$nor') return !condition.some((one: Document) => matches(document, one, nowMs));
  if (name === '$expr') return Boolean(evaluate(condition, { root: document, nowMs }));
  if (name === '$comment') return true;
  throw new Error(`the simulated database does not know ${name}`);
}

/** Whether one of the values meets the condition. */
function meets(values: readonly unknown[], condition: unknown): boolean {
  if (!isOperators(condition)) return equalsOne(values, condition);
  return Object.entries(condition).every(([operator, wanted]) => meetsOperator(values, operator, wanted));
}

/** The values, and the items of those that are arrays. */
const withItems = (values: readonly unknown[]): readonly unknown[] =>
  values.some(Array.isArray) ? values.flatMap((value) => (Array.isArray(value) ? [value, ...value] : [value])) : values;

const equalsOne = (values: readonly unknown[], wanted: unknown): boolean =>
  wanted instanceof RegExp
    ? withItems(values).some((value) => typeof value === 'string' && wanted.test(value))
    : withItems(values).some((value) => areEqual(value, wanted));

const ORDERS: Readonly<Record<string, (order: number) => boolean>> = {
  $gt: (order) => order > 0,
  $gte: (order) => order >= 0,
  $lt: (order) => order < 0,
  $lte: (order) => order <= 0,
};

function meetsOperator(values: readonly unknown[], operator: string, wanted: unknown): boolean {
  const order = ORDERS[operator];
  if (order !== undefined) {
    // Only values of one type have an order.
    return withItems(values).some((value) => isSameType(value, wanted) && order(compareValues(value, wanted)));
  }
  if (operator === '$eq') return equalsOne(values, wanted);
  if (operator === '$ne') return !equalsOne(values, wanted);
  if (operator === '$in') return (wanted as unknown[]).some((one) => equalsOne(values, one));
  if (operator === '$nin') return !(wanted as unknown[]).some((one) => equalsOne(values, one));
  if (operator === '$exists') return values.some((value) => value !== undefined) === Boolean(wanted);
  if (operator === '$not') return !meets(values, wanted);
  if (operator === '$type') return withItems(values).some((value) => isOfType(value, String(wanted)));
  if (operator === '$size') return values.some((value) => Array.isArray(value) && value.length === wanted);
  if (operator === '$elemMatch') {
    return values.some((value) => Array.isArray(value) && value.some((item) => matches(item, wanted as Document)));
  }
  throw new Error(`the simulated database does not know ${operator}`);
}

function isOfType(value: unknown, name: string): boolean {
  if (name === 'string') return typeof value === 'string';
  if (name === 'null') return value === null;
  if (name === 'number') return isNumber(value);
  throw new Error(`the simulated database does not know the type ${name}`);
}

const typeOf = (value: unknown): string =>
  value === undefined || value === null
    ? 'null'
    : (((value as Document)._bsontype === 'Long' ? 'number' : (value as Document)._bsontype) ??
      (value instanceof Date ? 'date' : Array.isArray(value) ? 'array' : typeof value));

const isSameType = (a: unknown, b: unknown): boolean => a !== undefined && typeOf(a) === typeOf(b);

/** As of values, but an empty array comes before all of them. */
function compareKeys(a: unknown, b: unknown): number {
  const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
  return isEmpty(a) || isEmpty(b) ? Number(isEmpty(b)) - Number(isEmpty(a)) : compareValues(a, b);
}

/** Orders by the least value at each path, or by the greatest where the order descends. */
export function sortDocuments(documents: readonly Document[], order: Document): Document[] {
  const paths = Object.entries(order).map(([path, direction]) => ({
    path: path.split('.'),
    sign: Number(direction) < 0 ? -1 : 1,
  }));
  const keyAt = (document: Document, path: readonly string[], sign: number): unknown =>
    valuesAt(document, path)
      .flatMap((value) => (Array.isArray(value) && value.length > 0 ? value : [value]))
      .reduce<{ value: unknown } | null>(
        (least, value) => (least !== null && compareKeys(least.value, value) * sign <= 0 ? least : { value }),
        null,
      )?.value;
  if (documents.length < 2) return [...documents];
  const keyed = documents.map((document) => ({
    document,
    keys: paths.map(({ path, sign }) => keyAt(document, path, sign)),
  }));
  keyed.sort((a, b) => {
    for (const [nth, { sign }] of paths.entries()) {
      const compared = compareKeys(a.keys[nth], b.keys[nth]) * sign;
      if (compared !== 0) return compared;
    }
    return 0;
  });
  return keyed.map(({ document }) => document);
}

/** Keeps or leaves out fields; paths into documents lead to what they name. What is computed comes after what is kept. */
export function project(document: Document, projection: Document | undefined, nowMs = 0): Document {
  const all = Object.entries(projection ?? {});
  if (all.length === 0) return document;
  const computed = all.filter(
    ([, value]) => typeof value === 'string' || (typeof value === 'object' && value !== null),
  );
  if (computed.length === 0) return projectFields(document, projection as Document);
  const fields = Object.fromEntries(all.filter((one) => !computed.includes(one)));
  if (Object.values(fields).some((value) => !value)) throw new Error('the simulated database leaves out only fields');
  const kept = projectFields(document, Object.keys(fields).length === 0 ? { _id: 1 } : fields);
  const values = computed.map(([name, expression]) => [name, evaluate(expression, { root: document, nowMs })]);
  return { ...kept, ...Object.fromEntries(values.filter(([, value]) => value !== undefined)) };
}

function projectFields(document: Document, projection: Document): Document {
  const entries = Object.entries(projection);
  const isKeeping =
    entries.some(([name, value]) => name !== '_id' && Boolean(value)) ||
    entries.every(([n, v]) => n === '_id' && Boolean(v));
  const named = entries.filter(([, value]) => Boolean(value) === isKeeping).map(([name]) => name.split('.'));
  if (isKeeping) {
    const hasId = projection._id === undefined || Boolean(projection._id);
    return keepPaths(document, hasId ? [['_id'], ...named] : named);
  }
  return dropPaths(document, named);
}

function keepPaths(document: Document, paths: readonly (readonly string[])[]): Document {
  const kept: Document = {};
  for (const [name, value] of Object.entries(document)) {
    const inside = paths.filter(([first]) => first === name);
    if (inside.length === 0) continue;
    const deeper = inside.map(([, ...rest]) => rest);
    if (deeper.some(({ length }) => length === 0)) kept[name] = value;
    else if (Array.isArray(value)) kept[name] = value.filter(isDocument).map((item) => keepPaths(item, deeper));
    else if (isDocument(value)) kept[name] = keepPaths(value, deeper);
  }
  return kept;
}

function dropPaths(document: Document, paths: readonly (readonly string[])[]): Document {
  const kept: Document = {};
  for (const [name, value] of Object.entries(document)) {
    const deeper = paths.filter(([first]) => first === name).map(([, ...rest]) => rest);
    if (deeper.some(({ length }) => length === 0)) continue;
    if (deeper.length === 0) kept[name] = value;
    else if (Array.isArray(value)) {
      kept[name] = value.map((item) => (isDocument(item) ? dropPaths(item, deeper) : item));
    } else kept[name] = isDocument(value) ? dropPaths(value, deeper) : value;
  }
  return kept;
}
