/** What a store may do beside storing, and what its rules share: references that must be there, rights to give. */
import type { Passwords } from '../../auth/password.js';
import type { Tokens } from '../../auth/tokens.js';
import type { Place } from '../../db/accounts.js';
import type { Database } from '../../db/connect.js';
import { getEntity, getEntityId } from '../../db/entities.js';
import { newId } from '../../db/writes.js';
import { badRequest, forbidden, toApiError } from '../../errors.js';
import { type Caller, mayGrant, type Scope, scopeOf } from '../../model/access.js';
import { type Entity, isId, type NewEntity } from '../../model/entity.js';
import type { JsonObject } from '../../model/json.js';
import type { Store } from '../../model/stores.js';

export interface RuleParts {
  readonly database: Database;
  readonly passwords: Passwords;
  readonly tokens: Tokens;
  readonly tokenLifetimeMs: number;
  /** A device's password as it is stored. */
  readonly sealDevice: (password: string) => string;
  readonly now: () => number;
  /** A store of the name that the scope may use, or null. */
  readonly findStore: (name: string, scope: Scope) => Promise<Store | null>;
  /** Tells that an entity was written, so that what was derived from it is forgotten before the answer. */
  readonly written: (store: string, id: string) => void;
  /** Work that goes on after the answer; its failure is logged. */
  readonly inBackground: (work: Promise<unknown>) => void;
}

/** What a store does instead of, before or after the generic verbs; what is absent is generic. */
export interface Rule {
  /** The fields to store of those given. */
  readonly prepareNew?: (caller: Caller, fields: JsonObject) => Promise<JsonObject>;
  /** Creates the entity in a way of its own; the result is the answer. */
  readonly create?: (caller: Caller, wanted: NewEntity) => Promise<JsonObject>;
  /** The fields to merge of those given; throws where the caller may not. */
  readonly preparePatch?: (caller: Caller, key: string, patch: JsonObject) => Promise<JsonObject>;
  readonly afterChange?: (entity: Pick<Entity, '_id'>, patch: JsonObject) => Promise<void>;
  /** After those who see the entity have changed; also again, where nobody knows whether it was done to its end. */
  readonly afterShare?: (entity: Pick<Entity, '_id'>) => Promise<void>;
  readonly beforeRemove?: (caller: Caller, key: string) => Promise<void>;
  readonly afterRemove?: (entity: Entity) => Promise<void>;
}

/** The entity with its common fields: the caller's own. */
export function toNewEntity(caller: Caller, fields: JsonObject, place: Place, time: number): Entity {
  return { _id: newId(), ...fields, owner: caller.userId, ...place, access: [], time };
}

/** What a field refers to, and the caller can see: the `_id` of an entity, or all of it. A 400 that names the field otherwise. */
export const getReferencedId = (
  parts: { database: Database; caller: Caller },
  field: string,
  store: Store,
  id: unknown,
) => orRefused(field, store, getEntityId(parts.database, store, scopeOf(parts.caller), readReference(field, id)));
export const getReferenced = (
  parts: { database: Database; caller: Caller },
  field: string,
  store: Store,
  id: unknown,
) => orRefused(field, store, getEntity(parts.database, store, scopeOf(parts.caller), readReference(field, id)));

/** The `_id` that a field holds. Throws a 400 that names it. */
export function readReference(field: string, id: unknown): string {
  if (!isId(id)) throw badRequest(`${field}: expected 24 hexadecimal digits`);
  return id.toLowerCase();
}

async function orRefused<T>(field: string, store: Store, found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (error) {
    throw toApiError(error).status === 404 ? badRequest(`${field}: there is no such entity in ${store.name}`) : error;
  }
}

/** Nobody gives rights they do not have: 403. */
export function checkGrant(caller: Caller, credentials: readonly string[]): void {
  if (!mayGrant(caller, credentials)) throw forbidden('these are rights that you do not have yourself');
}
