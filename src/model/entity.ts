/** What every entity of every store has, and how a body becomes the fields of a new entity or a change of one. */
import { badRequest } from '../errors.js';
import { isObject, type JsonObject, readObject } from './json.js';
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

/** Ignored in every body: clients read an entity, edit it and send it back whole. `group` is read on creation alone. */
const SERVICE_FIELDS: ReadonlySet<string> = new Set(['access', 'owner', 'group', 'branch', 'time', 'success']);

/** Whether text has the form of an entity's `_id`: 24 hexadecimal digits. */
export function isId(text: unknown): text is string {
  return typeof text === 'string' && ID.test(text);
}

/** What a client wants of a new entity: its own fields, and the group it shall belong to, if one is named. */
export interface NewEntity {
  fields: JsonObject;
  group: string | null;
}

/**
 * A POST body as the fields of a new entity of the store, defaults filled in; a 400 names the field at fault. `isMine`: the
 * group that the body names is not looked at.
 */
export function readNew(store: Store, body: unknown, isMine = false): NewEntity {
  const object = readObject(body);
  const group = (isMine ? null : object.group) ?? null;
  if (group !== null && !isId(group)) throw badRequest('group: expected the _id of a group');
  const fields = Object.assign({}, store.defaults, ownFields(store, object));
  store.checkNew(fields);
  store.translate?.(fields);
  checkObjects(fields);
  return { fields, group: group === null ? null : group.toLowerCase() };
}

/** A PATCH body as the fields to merge; what only the service sets is left out, not refused. */
export function readPatch(store: Store, body: unknown): JsonObject {
  const fields = ownFields(store, readObject(body));
  for (const name of store.fixed) delete fields[name];
  store.checkPatch(fields);
  store.translate?.(fields);
  checkObjects(fields);
  return fields;
}

/** A change merges each by itself; and what is created can be sent back whole. */
function checkObjects(fields: JsonObject): void {
  if (countObjects(fields) <= LIMITS.jsonObjects) return;
  throw badRequest(`more than ${LIMITS.jsonObjects} objects within objects`);
}

/** How many objects are within the object, at every depth, but for those in lists. */
function countObjects(object: JsonObject): number {
  let count = 0;
  for (const value of Object.values(object)) if (isObject(value)) count += 1 + countObjects(value);
  return count;
}

/** The fields of a body, or of an entity, that are not the service's. Every name with a leading underscore is. */
export function ownFields(store: Pick<Store, 'service'>, object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(
      ([name]) => !name.startsWith('_') && !SERVICE_FIELDS.has(name) && !store.service.includes(name),
    ),
  );
}

/** `before` with `patch` merged into it: plain objects leaf by leaf, everything else replaced (docs/reference/stores.md). */
export function merge(before: JsonObject, patch: JsonObject): JsonObject {
  const after: JsonObject = { ...before };
  for (const [name, value] of Object.entries(patch)) {
    const old = after[name];
    after[name] = isObject(value) ? merge(isObject(old) ? old : {}, value) : value;
  }
  return after;
}
