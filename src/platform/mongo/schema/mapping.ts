/** Maps entities to documents and back, and list queries to filters. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import { type Entity, isId } from '../../../core/entity.js';
import { badRequest } from '../../../core/errors.js';
import type { Json, JsonObject } from '../../../core/json.js';
import { distinctPaths, type Page, type Selection } from '../../../core/list.js';
import { toOwnId } from '../../../core/own-id.js';
import { searchPattern } from '../../../core/search-pattern.js';
import type { Store } from '../../../core/stores.js';
import { isPacketKey, packetIdIn } from '../bson/packet-key.js';

/** The properties of a store that the mapping needs. Packets are not a store, but are mapped in the same way. */
export type Layout = Pick<Store, 'references' | 'texts' | 'hidden' | 'derived' | 'builtIn' | 'followsObject'>;

/** Converts references to ObjectIds. */
export function toDocument(layout: Layout, fields: JsonObject): Document {
  const document: Document = { ...fields };
  if (isId(document._id)) document._id = new ObjectId(document._id);
  for (const path of layout.references) convert(document, path.split('.'));
  return document;
}

function convert(document: Document, [name, ...rest]: string[]): void {
  if (name === undefined || !Object.hasOwn(document, name)) return;
  const value = document[name];
  if (rest.length > 0) {
    if (typeof value !== 'object' || value === null) return;
    document[name] = { ...value };
    convert(document[name], rest);
  } else {
    document[name] = Array.isArray(value) ? value.map(toReference) : toReference(value);
  }
}

const toReference = (value: unknown): unknown => (isId(value) ? new ObjectId(value) : value);

/** Converts ObjectIds to text and removes hidden fields. */
export function toEntity(layout: Pick<Layout, 'hidden'>, document: Document): Entity {
  const entity = toPlain(document) as Entity;
  for (const name of layout.hidden) delete entity[name];
  return entity;
}

/** Converts a BSON value to JSON. */
export function toPlain(value: unknown): Json {
  if (value instanceof ObjectId) return value.toHexString();
  if (isPacketKey(value)) return packetIdIn(value);
  if (value instanceof Date) return value.getTime();
  if (Array.isArray(value)) return value.map(toPlain);
  if (typeof value !== 'object' || value === null) return value as Json;
  const plain: JsonObject = {};
  for (const name of Object.keys(value)) plain[name] = toPlain((value as Document)[name]);
  return plain;
}

/** The conditions of a list query, all to be met. `search` names the searched fields. */
export function selectionFilter(layout: Layout, selection: Selection, search: readonly string[]): Filter<Document>[] {
  const conditions: Filter<Document>[] = [];
  const { fromMs, toMs } = selection;
  if (fromMs !== null || toMs !== null) {
    conditions.push({ time: { ...(fromMs !== null && { $gte: fromMs }), ...(toMs !== null && { $lte: toMs }) } });
  }
  for (const filter of selection.filters) {
    checkReadable(layout, filter.path);
    conditions.push({
      [filter.path]: { $in: filter.values.flatMap((given) => toOperands(layout, filter.path, given)) },
    });
  }
  if (selection.search !== null) {
    // A text of accents alone is found as it is.
    const pattern = searchPattern(selection.search) ?? literalPattern(selection.search);
    conditions.push({ $or: search.map((field) => ({ [field]: { $regex: pattern } })) });
  }
  return conditions;
}

/** The order of a page: by the field that the client names, otherwise by `_id`. */
export function orderBy(layout: Layout, sort: Page['sort']): Document {
  if (sort === null) return { _id: 1 };
  checkReadable(layout, sort.path);
  const direction = sort.descending ? -1 : 1;
  return sort.path === '_id' ? { _id: direction } : { [sort.path]: direction, _id: 1 };
}

/** The parts of a `find` command that a page decides: what follows its `after`, in its order, and no more than it shows. */
export function toPageFind(layout: Layout, page: Page, conditions: readonly Filter<Document>[]): Document {
  const after = page.after === null ? [] : [{ _id: { $gt: new ObjectId(page.after) } }];
  return {
    filter: { $and: [...conditions, ...after] },
    sort: orderBy(layout, page.sort),
    skip: page.offset,
    limit: page.limit,
    batchSize: page.limit,
    allowDiskUse: true,
  };
}

/** Refuses filters and sorting by hidden fields: the answer would reveal their values. */
function checkReadable(layout: Layout, path: string): void {
  const first = path.split('.')[0] ?? '';
  if (layout.hidden.includes(first)) throw badRequest(`${path}: no such field`);
  if (layout.derived.includes(first))
    throw badRequest(`${path}: a computed field, which cannot be filtered or sorted by`);
}

function toOperands(layout: Layout, path: string, given: Selection['filters'][number]['values'][number]): unknown[] {
  if (given.value === null) return [null];
  if ((path === '_id' || layout.references.includes(path)) && isId(given.text)) return [new ObjectId(given.text)];
  if (!layout.texts.includes(path)) return [given.value];
  // Ids that were stored before are in the form in which they were given.
  return path === 'id' ? [...new Set([toOwnId(given.text), given.text])] : [given.text];
}

// Escapes every character by its code point, so that no character has a special meaning.
function literalPattern(text: string): string {
  return Array.from(text, (character) => `\\x{${(character.codePointAt(0) ?? 0).toString(16)}}`).join('');
}

/** The projection: the requested fields and `_id`, or all fields, but never hidden ones. */
export function projectionOf(layout: Layout, only: readonly string[] | null): Document | undefined {
  if (only !== null) {
    const shown = only.filter((path) => !layout.hidden.includes(path.split('.')[0] ?? ''));
    return Object.fromEntries(distinctPaths(['_id', ...shown]).map((path) => [path, 1]));
  }
  if (layout.hidden.length === 0) return undefined;
  return Object.fromEntries(layout.hidden.map((name) => [name, 0]));
}
