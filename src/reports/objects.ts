/** The objects of a report: those of a group, of labels, or named ones, as far as the caller sees them and may read them. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import { type Caller, mayCallObject, scopeOf } from '../core/access.js';
import { isId } from '../core/entity.js';
import { badRequest, tooLarge } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { splitList } from '../core/list.js';
import { builtInStore } from '../core/stores.js';
import { findObjectIds } from '../entities/object-ids.js';
import { parseText, type Query } from '../platform/http/query-params.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';

export interface ReportObject {
  readonly objectId: string;
  readonly ownId: string;
  readonly name: string;
}

/** What a caller must be permitted to read of each object; null for the object itself. */
export type Permission = 'track' | 'series' | null;

/** What selects objects; null for everything. */
export interface ObjectSelection {
  /** Those of the group and of the groups below it. */
  readonly group: string | null;
  /** Those with one of the labels. */
  readonly labels: readonly string[] | null;
  /** By `_id` or own `id`. */
  readonly keys: readonly string[] | null;
}

/** Throws a 400. */
export function parseObjectSelection(query: Query): ObjectSelection {
  const group = parseText(query, 'group') || null;
  if (group !== null && !isId(group)) throw badRequest('group: expected the _id of a group');
  const labels = parseList(query, 'labels', LIMITS.reportObjects);
  return { group, labels, keys: parseList(query, 'objects', LIMITS.reportObjects) };
}

/** A list of `_id`s; null if it is absent. Throws a 400. */
export function parseIds(query: Query, name: string, limit: number): string[] | null {
  const ids = parseList(query, name, limit);
  if (ids?.some((id) => !isId(id))) throw badRequest(`${name}: expected the _id of ${name}, separated by commas`);
  return ids;
}

function parseList(query: Query, name: string, limit: number): string[] | null {
  const items = [...new Set(splitList(parseText(query, name) ?? ''))].filter((item) => item !== '');
  if (items.length > limit) throw badRequest(`${name}: more than ${limit}`);
  return items.length === 0 ? null : items;
}

const BY_NAME = new Intl.Collator('en', { numeric: true });

/** The objects by name. Others than those that the caller sees are as if they did not exist. Throws 413, 503. */
export async function findReportObjects(
  database: Database,
  caller: Caller,
  selection: ObjectSelection,
  needs: Permission,
): Promise<ReportObject[]> {
  const scope = scopeOf(caller);
  const objects = builtInStore('objects');
  const conditions: Filter<Document>[] = [scopeFilter(objects, scope)];
  if (selection.group !== null) conditions.push({ branch: new ObjectId(selection.group) });
  if (selection.labels !== null) conditions.push({ labels: { $in: [...selection.labels] } });
  for (const keys of [selection.keys, scope.onlyObjects]) {
    if (keys === null) continue;
    const ids = await findObjectIds(database, scope, keys);
    conditions.push({ _id: { $in: ids.map((id) => new ObjectId(id)) } });
  }
  const options = { projection: { id: 1, name: 1 }, maxTimeMS: LIMITS.databaseOperationMs } as const;
  const find = () =>
    collectionOf(database, objects)
      .find({ $and: conditions }, options)
      .limit(LIMITS.reportObjects + 1)
      .toArray();
  const found = (await mapDriverErrors(find, LIMITS.databaseOperationMs)).map(toReportObject);
  if (found.length > LIMITS.reportObjects) {
    throw tooLarge(`a report covers at most ${LIMITS.reportObjects} objects: choose a group, labels or objects`);
  }
  return found
    .filter((object) => mayCallObject(caller, object, 'GET', needs === null ? [] : [needs]))
    .sort((a, b) => BY_NAME.compare(a.name, b.name) || BY_NAME.compare(a.ownId, b.ownId));
}

const toReportObject = ({ _id, id, name }: Document): ReportObject => ({
  objectId: String(_id),
  ownId: String(id),
  name: String(name),
});
