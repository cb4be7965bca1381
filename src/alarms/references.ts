/** What rules refer to: geofences, objects, handlers and others, which whoever sets the rule must be able to see. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import { type Caller, type Scope, scopeOf } from '../core/access.js';
import { isId } from '../core/entity.js';
import { badRequest } from '../core/errors.js';
import { createZone, type Zone } from '../core/geofence.js';
import type { Json, JsonObject } from '../core/json.js';
import type { RuleAction } from '../core/rule/action.js';
import { type FenceCondition, type SingleCondition, singlesOf } from '../core/rule/condition.js';
import type { RuleSettings } from '../core/rule/rule.js';
import { builtInStore } from '../core/stores.js';
import { findObjectIds } from '../entities/object-ids.js';
import { readableFilter } from '../entities/through-objects.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';

/** Throws a 400 that names the first reference to something that the caller does not see. */
export async function checkReferences(database: Database, caller: Caller, settings: RuleSettings): Promise<void> {
  const scope = scopeOf(caller);
  await checkObjects(database, scope, settings.select.objects ?? []);
  const { group, model } = settings.select;
  if (group !== null) await check(database, scope, 'groups', [{ place: 'select.group', id: group }]);
  if (model !== null) await check(database, scope, 'models', [{ place: 'select.model', id: model }]);
  await check(database, scope, 'geofences', fencesIn(settings));
  const handlers = actionsOf(settings).flatMap(({ place, action }) =>
    action.kind === 'webhook' ? [{ place: `${place}.webhook`, id: action.handlerId }] : [],
  );
  await check(database, scope, 'handlers', handlers);
  const notified = actionsOf(settings).flatMap(({ place, action }) =>
    action.kind === 'notify' ? [{ place: `${place}.notify`, notify: action.notify }] : [],
  );
  const users = notified.flatMap(({ place, notify }) =>
    notify.users.map((id, index) => ({ place: `${place}.users[${index}]`, id })),
  );
  await check(database, scope, 'users', users);
  const groups = notified.flatMap(({ place, notify }) =>
    notify.group === null ? [] : [{ place: `${place}.group`, id: notify.group }],
  );
  await check(database, scope, 'groups', groups);
}

const actionsOf = ({ actions, escalation }: RuleSettings): { place: string; action: RuleAction }[] => [
  ...actions.map((action, index) => ({ place: `then[${index}]`, action })),
  ...escalation.flatMap((step, nth) =>
    step.actions.map((action, index) => ({ place: `escalate[${nth}].then[${index}]`, action })),
  ),
];

interface Reference {
  readonly place: string;
  readonly id: string;
}

export const conditionsOf = ({ when, clear }: RuleSettings): readonly SingleCondition[] => [
  ...singlesOf(when),
  ...(clear === null ? [] : singlesOf(clear)),
];

const isFence = (condition: SingleCondition): condition is FenceCondition => condition.kind === 'geofence';

const fencesIn = (settings: RuleSettings): Reference[] =>
  conditionsOf(settings)
    .filter(isFence)
    .flatMap(({ place, ids }) => ids.map((id) => ({ place: `${place}.geofence`, id })));

async function checkObjects(database: Database, scope: Scope, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  const found = await findObjectIds(database, scope, keys);
  if (found.length >= keys.length) return;
  for (const [index, key] of keys.entries()) {
    const isFound = isId(key)
      ? found.includes(key.toLowerCase())
      : (await findObjectIds(database, scope, [key])).length > 0;
    if (!isFound) throw badRequest(`select.objects[${index}]: there is no such object`);
  }
}

async function check(
  database: Database,
  scope: Scope,
  storeName: string,
  references: readonly Reference[],
): Promise<void> {
  if (references.length === 0) return;
  const found = await findReadable(database, scope, storeName, {
    ids: references.map(({ id }) => id),
    fields: { _id: 1 },
  });
  const ids = new Set(found.map(({ _id }) => String(_id)));
  const missing = references.find(({ id }) => !ids.has(id));
  if (missing !== undefined) throw badRequest(`${missing.place}: there is no such entity in ${storeName}`);
}

async function findReadable(
  database: Database,
  scope: Scope,
  storeName: string,
  { ids, fields }: { ids: readonly string[]; fields: Document },
): Promise<Document[]> {
  const store = builtInStore(storeName);
  const filter: Filter<Document> = {
    $and: [{ _id: { $in: ids.map((id) => new ObjectId(id)) } }, await readableFilter(database, store, scope)],
  };
  return mapDriverErrors(() => collectionOf(database, store).find(filter, { projection: fields }).toArray());
}

/** Those of these handlers that the scope sees. */
export async function findVisibleHandlers(database: Database, scope: Scope, ids: readonly string[]): Promise<string[]> {
  const found = await findReadable(database, scope, 'handlers', { ids, fields: { _id: 1 } });
  return found.map(({ _id }) => String(_id));
}

/** The `_id`s of the geofences of a rule. */
export const fencesOf = (settings: RuleSettings): readonly string[] =>
  [...new Set(fencesIn(settings).map(({ id }) => id))].sort();

/** Empty for a geofence without one. */
export const toName = (name: Json | undefined): string => (typeof name === 'string' ? name.trim() : '');

export interface Zones {
  zoneOf(ids: readonly string[]): Zone;
  /** By `_id`; another name replaces the one before. */
  readonly names: Map<string, string>;
}

/** The geofences of a rule, as its owner sees them, as zones. */
export async function loadZones(database: Database, scope: Scope, settings: RuleSettings): Promise<Zones> {
  const ids = fencesOf(settings);
  const fields = { geometry: 1, radius: 1, name: 1 };
  const found = ids.length === 0 ? [] : await findReadable(database, scope, 'geofences', { ids, fields });
  const geofences = new Map(found.map((one) => [String(one._id), toPlain(one) as JsonObject]));
  return {
    zoneOf: (named) => createZone(named.map((id) => geofences.get(id) ?? {})),
    names: new Map([...geofences].map(([id, { name }]) => [id, toName(name)])),
  };
}
