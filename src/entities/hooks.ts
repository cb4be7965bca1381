/** The interface of hooks, and the checks that they share: references to existing entities, permissions that a caller may grant. */

import type { ClientSession, ObjectId } from 'mongodb';
import { type Caller, scopeOf } from '../core/access.js';
import { type Entity, isId, type NewEntity } from '../core/entity.js';
import { badRequest, forbidden, toApiError } from '../core/errors.js';
import { mayGrant } from '../core/grants.js';
import type { JsonObject } from '../core/json.js';
import type { Store } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { GroupPlace, StoredPlace } from './place.js';
import { getReadable } from './read.js';
import { newId } from './write.js';

/** What most hooks need. */
export interface HookDeps {
  readonly database: Database;
  readonly now: () => number;
  /** Lets work continue after the answer; its failure is logged. */
  readonly inBackground: (work: Promise<unknown>) => void;
}

/** An entity that moves, or was moved, from a group to a place. */
export interface MovedEntity {
  readonly _id: string;
  readonly from: ObjectId;
  readonly to: StoredPlace;
}

/** What a store does instead of, before or after the generic verbs. All hooks are optional. */
export interface StoreHooks {
  /** Returns the fields to store. */
  readonly prepareNew?: (caller: Caller, fields: JsonObject) => Promise<JsonObject>;
  /** Replaces the generic creation; returns the answer. */
  readonly create?: (caller: Caller, wanted: NewEntity) => Promise<JsonObject>;
  /** Returns the fields to merge. Throws if the caller may not change them. */
  readonly preparePatch?: (caller: Caller, key: string, patch: JsonObject) => Promise<JsonObject>;
  /** The `_at` that the entity must still have when the patch is applied, else it is a 409; undefined for any. */
  readonly unchangedSince?: (caller: Caller, key: string, patch: JsonObject) => number | null | undefined;
  readonly afterChange?: (entity: Pick<Entity, '_id'>, patch: JsonObject) => Promise<void>;
  /** Returns fields that are set with the first share to a user. */
  readonly shareMarks?: () => JsonObject;
  /** After a change of the entity's sharing. Called again if a previous call may have been interrupted. */
  readonly afterShare?: (entity: Pick<Entity, '_id'>) => Promise<void>;
  /** Before a move to another group, with the entity's `_id`. Throws if the caller may not move it. */
  readonly beforeMove?: (caller: Caller, _id: string) => Promise<void>;
  /** Moves what belongs to the entity in the transaction of its move, which sees the errors of the driver as they are. */
  readonly moveAlong?: (moved: MovedEntity, session: ClientSession) => Promise<void>;
  /** The same after the move, for what was created meanwhile by those who had read the former group. */
  readonly afterMove?: (moved: MovedEntity) => Promise<void>;
  readonly beforeRemove?: (caller: Caller, key: string) => Promise<void>;
  readonly afterRemove?: (entity: Entity) => Promise<void>;
}

/** Adds the common fields: the caller becomes the owner. */
export function toNewEntity(caller: Caller, fields: JsonObject, place: GroupPlace, time: number): Entity {
  return { _id: newId(), ...fields, owner: caller.userId, ...place, access: [], time };
}

/** Return the entity that a field refers to, or its `_id`. Throw a 400 that names the field if the caller sees no such entity. */
export const getReferencedId = (
  deps: { database: Database; caller: Caller },
  field: string,
  store: Store,
  id: unknown,
) => getReferenced(deps, field, store, id).then(({ _id }) => _id);
export const getReferenced = (deps: { database: Database; caller: Caller }, field: string, store: Store, id: unknown) =>
  orBadRequest(field, store, getReadable(deps.database, store, scopeOf(deps.caller), parseReference(field, id)));

/** Parses a field that contains an `_id`. Throws a 400 that names the field. */
export function parseReference(field: string, id: unknown): string {
  if (!isId(id)) throw badRequest(`${field}: expected 24 hexadecimal digits`);
  return id.toLowerCase();
}

async function orBadRequest<T>(field: string, store: Store, found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (error) {
    throw toApiError(error).status === 404 ? badRequest(`${field}: there is no such entity in ${store.name}`) : error;
  }
}

/** Throws 403 if the caller does not have these permissions itself. */
export function assertCanGrant(caller: Caller, credentials: readonly string[]): void {
  if (!mayGrant(caller, credentials)) throw forbidden('these are rights that you do not have yourself');
}
