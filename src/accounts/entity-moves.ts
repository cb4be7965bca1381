/** Moves an entity to another group, with what belongs to it: atomically for all readers. */
import { type ClientSession, type Document, ObjectId } from 'mongodb';
import { type Caller, mayCall, type Scope, scopeOf } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import { forbidden, notFound } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import type { WriteDeps, Writer } from '../entities/entity-writes.js';
import type { MovedEntity } from '../entities/hooks.js';
import { findPlace, notYours, type StoredPlace } from '../entities/place.js';
import { getChangeable } from '../entities/write.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';

/** What a move has changed; the same group twice if the entity was there already. */
export interface Move {
  readonly _id: string;
  readonly from: string;
  readonly to: string;
}

/** Throws 403 unless the caller may create entities in the store: they appear in a group like new ones. */
export function assertCanCreate(caller: Caller, store: string): void {
  if (mayCall(caller, 'POST', [store])) return;
  throw forbidden(`a move needs the right to create in ${store}, too: POST /${store}`);
}

/** The entity, if the caller may move it to the group. Throws 404, 403, 400 (the group), 409. */
export async function getMovable(
  { database, hooks }: WriteDeps,
  { store, caller }: Writer,
  key: string,
  groupId: string,
): Promise<Entity> {
  const entity = await getChangeable(database, store, scopeOf(caller), key);
  // Whoever created it, or got it shared, changes it; but to take it away from a group is up to its administrators.
  if (!entity.branch.includes(caller.groupId)) throw forbidden('it belongs to a group that is not yours');
  await hooks.get(store.name)?.beforeMove?.(caller, entity._id);
  await findPlace(database, scopeOf(caller), groupId, 'group', '');
  return entity;
}

/** Moves an entity. Live events, lists and reads follow at once. Throws like `getMovable`. */
export async function moveOne(deps: WriteDeps, writer: Writer, key: string, groupId: string): Promise<Move> {
  const { _id } = await getMovable(deps, writer, key, groupId);
  const move = (session: ClientSession) => moveWithin(deps, writer, { _id, groupId }, session);
  const moved = await mapDriverErrors(
    () => deps.database.client.withSession((session) => session.withTransaction(() => move(session))),
    LIMITS.databaseOperationMs,
  );
  deps.invalidate(writer.store.name, _id);
  // Also if it was there already: an earlier request may have been interrupted.
  await deps.hooks.get(writer.store.name)?.afterMove?.(moved);
  return { _id, from: String(moved.from), to: groupId };
}

async function moveWithin(
  { database, hooks, now }: WriteDeps,
  { store, caller }: Writer,
  { _id, groupId }: { readonly _id: string; readonly groupId: string },
  session: ClientSession,
): Promise<MovedEntity> {
  const scope = scopeOf(caller);
  // Read again: the group, or the entity, may have been moved since.
  const to = await findStoredPlace(database, scope, groupId, session);
  const within = { _id: new ObjectId(_id), branch: new ObjectId(scope.groupId) };
  const collection = collectionOf(database, store);
  const before = await collection.findOne(within, { projection: { group: 1 }, session });
  if (before === null) throw notFound();
  const moved = { _id, from: before.group as ObjectId, to };
  if (!to.group.equals(moved.from)) {
    const _at = { $max: [now(), { $add: [{ $ifNull: ['$_at', 0] }, 1] }] };
    await collection.updateOne(within, [{ $set: { ...to, _at } }], { session });
    await hooks.get(store.name)?.moveAlong?.(moved, session);
  }
  return moved;
}

async function findStoredPlace(
  database: Database,
  scope: Scope,
  groupId: string,
  session: ClientSession,
): Promise<StoredPlace> {
  const groups = collectionOf(database, builtInStore('groups'));
  const named: Document = { _id: new ObjectId(groupId), branch: new ObjectId(scope.groupId) };
  const group = await groups.findOne(named, { projection: { branch: 1 }, session });
  if (group === null) throw notYours('group');
  return { group: group._id, branch: group.branch };
}
