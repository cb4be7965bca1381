/** The common fields of entities, and the conversion of request bodies to fields of new or changed entities. */
import { badRequest } from './errors.js';
import { isObject, type JsonObject, parseObject } from './json.js';
import { LIMITS } from './limits.js';
import { ID } from './own-id.js';
import type { Store } from './stores.js';

/** The common fields, as docs/reference/stores.md lists them; times in ms since the epoch. */
export interface Common {
  _id: string;
  owner: string;
  group: string;
  branch: string[];
  access: string[];
  time: number;
  _at?: number;
}
export type Entity = Common & JsonObject;

/** Ignored in bodies: clients read an entity, edit it and send it back whole. `group` is read only on creation. */
const SERVICE_FIELDS: ReadonlySet<string> = new Set(['access', 'owner', 'group', 'branch', 'time', 'success']);

/** Whether text has the form of an entity's `_id`: 24 hexadecimal digits. */
export function isId(text: unknown): text is string {
  return typeof text === 'string' && ID.test(text);
}

/** A client's own fields of a new entity, and the group that the body names. */
export interface NewEntity {
  fields: JsonObject;
  group: string | null;
}

/**
 * Converts a POST body to the fields of a new entity, with defaults filled in. Throws a 400 that names the field. `isMine`
 * ignores the group that the body names.
 */
export function parseNewEntity(store: Store, body: unknown, isMine = false): NewEntity {
  const object = parseObject(body);
  const group = (isMine ? null : object.group) ?? null;
  if (group !== null && !isId(group)) throw badRequest('group: expected the _id of a group');
  const fields = Object.assign({}, store.defaults, ownFields(store, object));
  store.normalize?.(fields);
  store.checkNew(fields);
  store.translate?.(fields);
  for (const name of store.removable) if (fields[name] === null) delete fields[name];
  checkObjects(fields);
  return { fields, group: group === null ? null : group.toLowerCase() };
}

/** Converts a PATCH body to the fields to merge. Fields that only the service sets are ignored, not refused. */
export function parsePatch(store: Store, body: unknown): JsonObject {
  const fields = ownFields(store, parseObject(body));
  for (const name of store.fixed) delete fields[name];
  store.normalize?.(fields);
  store.checkPatch(fields);
  store.translate?.(fields);
  checkObjects(fields);
  return fields;
}

/** A PATCH merges each nested object separately. Creation has the same bound, so that a created entity can be sent back. */
function checkObjects(fields: JsonObject): void {
  if (countObjects(fields) <= LIMITS.jsonObjects) return;
  throw badRequest(`more than ${LIMITS.jsonObjects} nested objects`);
}

/** Counts nested objects at every depth, except those in lists. */
function countObjects(object: JsonObject): number {
  let count = 0;
  for (const value of Object.values(object)) if (isObject(value)) count += 1 + countObjects(value);
  return count;
}

/** The client's own fields of a body or an entity. Names with a leading underscore belong to the service. */
export function ownFields(store: Pick<Store, 'service'>, object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(
      ([name]) => !name.startsWith('_') && !SERVICE_FIELDS.has(name) && !store.service.includes(name),
    ),
  );
}

/** Merges `patch` into `before`: plain objects recursively, everything else, and the fields `replaced`, as a whole (docs/reference/stores.md). */
export function merge(before: JsonObject, patch: JsonObject, replaced: readonly string[] = []): JsonObject {
  const after: JsonObject = { ...before };
  for (const [name, value] of Object.entries(patch)) {
    const old = after[name];
    after[name] = isObject(value) && !replaced.includes(name) ? merge(isObject(old) ? old : {}, value) : value;
  }
  return after;
}
