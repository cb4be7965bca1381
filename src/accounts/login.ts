/** Checks logins and passwords, and issues tokens. */

import { type Caller, type NamedObject, objectKeysIn, objectNamed, type Scope, scopeOf } from '../core/access.js';
import { type Entity, isId } from '../core/entity.js';
import { badRequest, unauthorized } from '../core/errors.js';
import { isObject, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { findPlace } from '../entities/place.js';
import { createEntity, newId } from '../entities/write.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findLogin, findObjectsNamed, type KnownLogin, replacePasswordHash } from './accounts.js';
import type { Attempts } from './attempts.js';
import type { Passwords } from './passwords.js';
import type { Tokens } from './tokens.js';

export interface LoginCredentials {
  readonly login: string;
  readonly password: string;
}

/** Parses a login body, JSON or form; `username` is an alias of `login`. Throws a 400 that names the missing field. */
export function parseLoginCredentials(body: unknown): LoginCredentials {
  const { login, username, password } = isObject(body) ? body : ({} as JsonObject);
  const name = login ?? username;
  if (typeof name !== 'string' || name === '') throw badRequest('login: required');
  if (typeof password !== 'string' || password === '') throw badRequest('password: required');
  return { login: name, password };
}

/** Returns the user. Throws 401 for every failure, with the same body and after the same work, or 429. */
export async function checkLogin(
  deps: { database: Database; passwords: Passwords; attempts: Attempts },
  { login, password }: LoginCredentials,
  address: string,
): Promise<KnownLogin> {
  await deps.attempts.check(login, address);
  return deps.passwords.withHashSlot(async (verify, renew) => {
    // Checked again: of many guesses sent at once, earlier ones have failed by now.
    await deps.attempts.check(login, address);
    const known =
      login.length <= LIMITS.nameCharacters && login.isWellFormed() ? await findLogin(deps.database, login) : null;
    const isMatch = await verify(known?.passwordHash ?? null, password.slice(0, LIMITS.passwordCharactersMax + 1));
    if (!isMatch || known === null) {
      await deps.attempts.failed(login, address);
      throw unauthorized();
    }
    await deps.attempts.succeeded(login, address);
    const renewed = await renew(known.passwordHash, password);
    if (renewed !== null) await replacePasswordHash(deps.database, known, renewed);
    return known;
  });
}

/**
 * Whether the credentials of a login are still valid. Called after its session or token is stored: a password change during
 * the verification ends the sessions and tokens that exist then, which does not include this one.
 */
export async function areStillValid(
  { database, passwords }: { database: Database; passwords: Passwords },
  { login, password }: LoginCredentials,
  known: KnownLogin,
): Promise<boolean> {
  const present = await findLogin(database, login);
  if (present?.userId !== known.userId) return false;
  // A different hash may belong to the same password.
  const isSame = present.passwordHash === known.passwordHash;
  return isSame || passwords.withHashSlot((verify) => verify(present.passwordHash, password));
}

export interface TokenRequest {
  /** The `_id` of the entity; by default a new one. */
  readonly id?: string;
  readonly name: string;
  readonly scopes: readonly string[] | null;
  readonly lifetimeMs: number;
  /** The client's own fields of the entity. */
  readonly fields?: JsonObject;
  readonly group?: string | null;
  /** The token that authorizes the request: the new one expires no later and is revoked with it. */
  readonly parent?: { readonly expiresAtMs: number; readonly lineage: readonly string[] } | null;
}

/** Creates a token for the caller and stores its entity in `tokens`; `entity` never holds the token itself. */
export async function issueToken(
  deps: { database: Database; tokens: Tokens; now: () => number },
  caller: TokenOwner,
  request: TokenRequest,
): Promise<{ token: string; entity: Entity }> {
  const entity = await storeToken(deps, caller, request);
  const claims = { userId: caller.userId, tokenId: entity._id, expiresAtMs: entity.expiresAt as number };
  return { token: deps.tokens.sign(claims, entity.issuedAt as number), entity };
}

type TokenOwner = Pick<Caller, 'userId' | 'groupId' | 'object' | 'scopeObjects'>;

/** Stores the entity of a token, which is not signed yet. */
export async function storeToken(
  deps: { database: Database; now: () => number },
  caller: TokenOwner,
  request: TokenRequest,
): Promise<Entity> {
  const nowMs = deps.now();
  // JSON Web Tokens count whole seconds: the entity holds the same times as the token.
  const issuedAt = Math.floor(nowMs / 1_000) * 1_000;
  const requestedMs = Math.floor((issuedAt + request.lifetimeMs) / 1_000) * 1_000;
  const expiresAt = Math.min(requestedMs, request.parent?.expiresAtMs ?? requestedMs);
  const place = await findPlace(deps.database, scopeOf(caller), request.group ?? null);
  const objects = await findScopeObjects(deps.database, scopeOf(caller), request.scopes ?? []);
  const entity: Entity = {
    ...request.fields,
    _id: request.id ?? newId(),
    name: request.name,
    scopes: request.scopes === null ? null : [...request.scopes],
    user: caller.userId,
    issuedAt,
    expiresAt,
    owner: caller.userId,
    ...place,
    access: [],
    time: nowMs,
    ...(objects.length > 0 && { _objects: objects.map(({ ownId, objectId }) => ({ ownId, objectId })) }),
    ...(request.parent && { _parents: [...request.parent.lineage] }),
  };
  return createEntity(deps.database, builtInStore('tokens'), entity);
}

/** A scope that names an object by its own id does not pass to the next object with that id. */
async function findScopeObjects(database: Database, scope: Scope, scopes: readonly string[]): Promise<NamedObject[]> {
  const ownIds = [...new Set(objectKeysIn(scopes))].filter((key) => !isId(key));
  const known = ownIds.flatMap((ownId): NamedObject[] => {
    const objectId = objectNamed(scope, ownId);
    return objectId === null ? [] : [{ ownId, objectId }];
  });
  const unknown = ownIds.filter((ownId) => objectNamed(scope, ownId) === null);
  return [...known, ...(await findObjectsNamed(database, unknown))];
}
