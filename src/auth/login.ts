/** Checks a login and a password, and issues tokens. */

import { findLogin, findPlace, type KnownLogin, replacePasswordHash } from '../db/accounts.js';
import type { Database } from '../db/connect.js';
import { createEntity, newId } from '../db/writes.js';
import { badRequest, unauthorized } from '../errors.js';
import { type Caller, scopeOf } from '../model/access.js';
import type { Entity } from '../model/entity.js';
import { isObject, type JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { builtInStore } from '../model/stores.js';
import type { Attempts } from './attempts.js';
import type { Passwords } from './password.js';
import type { Tokens } from './tokens.js';

export interface Credentials {
  readonly login: string;
  readonly password: string;
}

/** A login body, JSON or form: `username` stands for `login` too. Throws a 400 that names the missing field. */
export function readCredentials(body: unknown): Credentials {
  const { login, username, password } = isObject(body) ? body : ({} as JsonObject);
  const name = login ?? username;
  if (typeof name !== 'string' || name === '') throw badRequest('login: required');
  if (typeof password !== 'string' || password === '') throw badRequest('password: required');
  return { login: name, password };
}

/** The user these credentials are of. Throws 401, the same and after the same work for any failure, or 429. */
export async function checkLogin(
  parts: { database: Database; passwords: Passwords; attempts: Attempts },
  { login, password }: Credentials,
  address: string,
): Promise<KnownLogin> {
  await parts.attempts.check(login, address);
  return parts.passwords.inTurn(async (verify, renew) => {
    // Asked again: of many guesses sent at once, those before this one have failed by now.
    await parts.attempts.check(login, address);
    const known =
      login.length <= LIMITS.nameCharacters && login.isWellFormed() ? await findLogin(parts.database, login) : null;
    const fits = await verify(known?.passwordHash ?? null, password.slice(0, LIMITS.passwordCharactersMax + 1));
    if (!fits || known === null) {
      await parts.attempts.failed(login, address);
      throw unauthorized();
    }
    await parts.attempts.succeeded(login, address);
    const renewed = await renew(known.passwordHash, password);
    if (renewed !== null) await replacePasswordHash(parts.database, known, renewed);
    return known;
  });
}

/**
 * Whether what let a login in is still so. Asked when its session or token is stored: a password that was changed
 * while the old one was being verified has ended the user's access before that, and could not end this.
 */
export async function isStillGood(
  { database, passwords }: { database: Database; passwords: Passwords },
  { login, password }: Credentials,
  known: KnownLogin,
): Promise<boolean> {
  const present = await findLogin(database, login);
  if (present?.userId !== known.userId) return false;
  // Another hash may be one of the same password.
  const isSame = present.passwordHash === known.passwordHash;
  return isSame || passwords.inTurn((verify) => verify(present.passwordHash, password));
}

export interface TokenRequest {
  readonly name: string;
  readonly scopes: readonly string[] | null;
  readonly lifetimeMs: number;
  /** Fields of the entity beside the service's. */
  readonly fields?: JsonObject;
  readonly group?: string | null;
  /** The token that it is made with: it expires no later, and is revoked with that. */
  readonly parent?: { readonly expiresAtMs: number; readonly lineage: readonly string[] } | null;
}

/** A token of the caller's, stored in `tokens` and in force from now on; `entity` never holds the token itself. */
export async function issueToken(
  parts: { database: Database; tokens: Tokens; now: () => number },
  caller: Pick<Caller, 'userId' | 'groupId'>,
  request: TokenRequest,
): Promise<{ token: string; entity: Entity }> {
  const nowMs = parts.now();
  // JSON Web Tokens count whole seconds: what is told in ms is what is signed.
  const issuedAt = Math.floor(nowMs / 1_000) * 1_000;
  const wishedMs = Math.floor((issuedAt + request.lifetimeMs) / 1_000) * 1_000;
  const expiresAt = Math.min(wishedMs, request.parent?.expiresAtMs ?? wishedMs);
  const place = await findPlace(parts.database, scopeOf(caller), request.group ?? null);
  const entity: Entity = {
    ...request.fields,
    _id: newId(),
    name: request.name,
    scopes: request.scopes === null ? null : [...request.scopes],
    user: caller.userId,
    issuedAt,
    expiresAt,
    owner: caller.userId,
    ...place,
    access: [],
    time: nowMs,
    ...(request.parent && { _parents: [...request.parent.lineage] }),
  };
  const stored = await createEntity(parts.database, builtInStore('tokens'), entity);
  const claims = { userId: caller.userId, tokenId: stored._id, expiresAtMs: expiresAt };
  return { token: parts.tokens.sign(claims, issuedAt), entity: stored };
}
