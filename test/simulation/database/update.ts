/** Updates of the simulated database: with operators, with a pipeline, or with a whole document. */
import { BSON, type Document } from 'mongodb';
import { areEqual, compareValues, toNumber } from './compare.js';
import { evaluate } from './expression.js';
import { isDocument, matches } from './query.js';
import { copyOf } from './wire.js';

interface UpdateContext {
  readonly nowMs: number;
  readonly isInsert: boolean;
}

/** The document after the update. */
export function applyUpdate(
  document: Document,
  update: Document | readonly Document[],
  context: UpdateContext,
): Document {
  if (Array.isArray(update)) return applyPipeline(document, update, context);
  const names = Object.keys(update);
  if (!names.some((name) => name.startsWith('$'))) return { _id: document._id, ...update };
  const changed = copyOf(document);
  // In the order of their names, whichever operators they have.
  const fields = Object.entries(update).flatMap(([operator, given]) =>
    Object.entries(given as Document).map(([path, value]) => ({ operator, path, value })),
  );
  for (const field of fields.sort((a, b) => (a.path < b.path ? -1 : 1))) {
    if (field.operator !== '$setOnInsert' || context.isInsert) applyField(changed, field);
  }
  return changed;
}

function applyPipeline(document: Document, stages: readonly Document[], { nowMs }: UpdateContext): Document {
  let changed = copyOf(document);
  for (const stage of stages) {
    const [name = ''] = Object.keys(stage);
    const root = copyOf(changed);
    if (name === '$set' || name === '$addFields') {
      for (const [path, expression] of Object.entries(stage[name] as Document)) {
        const value = evaluate(expression, { root, nowMs });
        if (value !== undefined) setAt(changed, path.split('.'), value);
      }
    } else if (name === '$unset') {
      for (const path of [stage.$unset].flat()) unsetAt(changed, String(path).split('.'));
    } else if (name === '$replaceWith') {
      changed = copyOf(evaluate(stage.$replaceWith, { root, nowMs }) as Document);
    } else throw new Error(`the simulated database does not know the stage ${name}`);
  }
  return changed;
}

/** What the oplog has beside a difference, bytes. */
const DIFFERENCE_BYTES = 15;

/** Whether the oplog has the document after a pipeline as a whole, because the difference would be larger. */
export function isStoredWhole(before: Document, after: Document): boolean {
  const isSame = (name: string): boolean => Object.hasOwn(before, name) && areEqual(before[name], after[name]);
  const names = Object.keys(after).filter((name) => !isSame(name));
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const pick = (wanted: readonly string[]): Document => Object.fromEntries(wanted.map((name) => [name, after[name]]));
  const parts = {
    d: Object.fromEntries(gone.map((name) => [name, false])),
    u: pick(names.filter((name) => Object.hasOwn(before, name))),
    i: pick(names.filter((name) => !Object.hasOwn(before, name))),
  };
  const difference = Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));
  return BSON.calculateObjectSize(after) < BSON.calculateObjectSize(difference) + DIFFERENCE_BYTES;
}

interface FieldUpdate {
  readonly operator: string;
  readonly path: string;
  readonly value: unknown;
}

function applyField(document: Document, { operator, path, value }: FieldUpdate): void {
  const names = path.split('.');
  const present = getAt(document, names);
  if (operator === '$set' || operator === '$setOnInsert') setAt(document, names, value);
  else if (operator === '$unset') unsetAt(document, names);
  else if (operator === '$inc') setAt(document, names, toNumber(present ?? 0) + toNumber(value));
  else if (operator === '$max') {
    if (present === undefined || compareValues(value, present) > 0) setAt(document, names, value);
  } else if (operator === '$min') {
    if (present === undefined || compareValues(value, present) < 0) setAt(document, names, value);
  } else if (operator === '$push') setAt(document, names, pushed((present ?? []) as unknown[], value));
  else if (operator === '$addToSet') {
    const list = (present ?? []) as unknown[];
    if (!list.some((item) => areEqual(item, value))) setAt(document, names, [...list, value]);
  } else if (operator === '$pull') {
    if (Array.isArray(present))
      setAt(
        document,
        names,
        present.filter((item) => !isPulled(item, value)),
      );
  } else throw new Error(`the simulated database does not know ${operator}`);
}

const isPulled = (item: unknown, wanted: unknown): boolean =>
  isDocument(wanted) && isDocument(item) ? matches(item, wanted) : matches({ item }, { item: wanted });

function pushed(list: readonly unknown[], value: unknown): unknown[] {
  if (!isDocument(value) || !('$each' in value)) return [...list, value];
  const longer = [...list, ...value.$each];
  if (value.$slice === undefined) return longer;
  return value.$slice < 0 ? longer.slice(value.$slice) : longer.slice(0, value.$slice);
}

function getAt(document: Document, [name = '', ...rest]: readonly string[]): unknown {
  const value = document[name];
  if (rest.length === 0 || !isDocument(value)) return rest.length === 0 ? value : undefined;
  return getAt(value, rest);
}

function setAt(document: Document, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) document[name] = value;
  else {
    if (!isDocument(document[name])) document[name] = {};
    setAt(document[name], rest, value);
  }
}

function unsetAt(document: Document, [name = '', ...rest]: readonly string[]): void {
  if (rest.length === 0) delete document[name];
  else if (isDocument(document[name])) unsetAt(document[name], rest);
}

/** The document that an upsert begins with: what its filter says to be equal. */
export function seedOf(filter: Document): Document {
  const seed: Document = {};
  for (const [name, condition] of Object.entries(filter)) {
    if (name === '$and') for (const one of condition) Object.assign(seed, seedOf(one));
    else if (!name.startsWith('$')) {
      const isOperators = isDocument(condition) && Object.keys(condition).some((key) => key.startsWith('$'));
      if (!isOperators) setAt(seed, name.split('.'), condition);
      else if ('$eq' in condition) setAt(seed, name.split('.'), condition.$eq);
    }
  }
  return seed;
}
