/** Users, roles and tokens: callers grant only permissions that they have, and ended access also ends its sessions and tokens. */

import { type ClientSession, ObjectId } from 'mongodb';
import { type Caller, scopeOf } from '../core/access.js';
import { VIEWER_ROLE_ID } from '../core/builtin.js';
import { parseDuration } from '../core/duration.js';
import { badRequest, conflict, unauthorized } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import {
  assertCanGrant,
  getReferenced,
  getReferencedId,
  type HookDeps,
  type MovedEntity,
  type StoreHooks,
} from '../entities/hooks.js';
import { getEntity } from '../entities/read.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { endAccess, findCredentials, findLineage, isInForce, revokeDescendants, revokeToken } from './accounts.js';
import { issueToken, type TokenRequest } from './login.js';
import type { Passwords } from './passwords.js';
import type { Tokens } from './tokens.js';

/**
 * What decides what a user may do. Callers change these fields of their own user, and their own role, only as they were when the
 * request was authenticated: it must not undo that somebody took permissions away meanwhile.
 */
const ACCESS_FIELDS = ['active', 'role', 'object', '_password'];

const isOwn = (id: string | null, key: string): boolean => key.toLowerCase() === id;

export interface UserHookDeps extends HookDeps {
  readonly passwords: Passwords;
  readonly tokens: Tokens;
  readonly tokenLifetimeMs: number;
  /** Invalidates what caches derived from an entity. Called after a write, before the answer. */
  readonly invalidate: (store: string, id: string) => void;
}

export function userHooks({ database, passwords, invalidate }: UserHookDeps): StoreHooks {
  const checkRole = async (caller: Caller, role: unknown): Promise<void> => {
    const { credentials } = await getReferenced({ database, caller }, 'role', builtInStore('roles'), role);
    assertCanGrant(caller, credentials as string[]);
  };
  const withHash = async ({ password, ...fields }: JsonObject): Promise<JsonObject> =>
    password === undefined ? fields : { ...fields, _password: await passwords.hash(password as string) };
  // A caller who could change a user with more permissions could take over that account. The same holds for a token with
  // restricted scopes and its own user.
  const assertCanManage = async (caller: Caller, key: string, { object }: JsonObject = {}): Promise<void> => {
    const user = await getEntity(database, builtInStore('users'), scopeOf(caller), key);
    // Changing the own object changes the own permissions, so it is checked like any user.
    const isKept = object === undefined || object === user.object;
    if (user._id === caller.userId && caller.scopes === null && isKept) return;
    assertCanGrant(caller, await findCredentials(database, user.role));
  };
  const assertCanEnd = async (caller: Caller, key: string): Promise<void> => {
    await assertCanManage(caller, key);
    refuseSelf(caller, key);
  };
  const checkObject = async (caller: Caller, { object }: JsonObject): Promise<void> => {
    if (object !== undefined && object !== null)
      await getReferencedId({ database, caller }, 'object', builtInStore('objects'), object);
  };
  const moveTokens = async ({ _id, from, to }: MovedEntity, session?: ClientSession): Promise<void> => {
    const own = { user: new ObjectId(_id), group: from };
    await database.db.collection('tokens').updateMany(own, { $set: to }, session && { session });
  };
  const endAllAccess = async (userId: string): Promise<void> => {
    for (const id of await endAccess(database, userId)) invalidate('tokens', id);
  };
  return {
    async prepareNew(caller, fields) {
      const role = fields.role ?? VIEWER_ROLE_ID;
      await checkRole(caller, role);
      await checkObject(caller, fields);
      return withHash({ ...fields, role });
    },
    async preparePatch(caller, key, patch) {
      await assertCanManage(caller, key, patch);
      if (patch.active === false) refuseSelf(caller, key);
      await checkObject(caller, patch);
      if (patch.role !== undefined) await checkRole(caller, patch.role);
      return withHash(patch);
    },
    unchangedSince: ({ userId, changedMs }, key, patch) =>
      isOwn(userId, key) && ACCESS_FIELDS.some((name) => name in patch) ? changedMs.user : undefined,
    async afterChange({ _id }, patch) {
      if (patch._password !== undefined || patch.active === false) await endAllAccess(_id);
    },
    // Whoever moved themselves could lose sight of all others, and lock everyone out.
    beforeMove: assertCanEnd,
    // Administrators of the new group see and revoke them; those of the former one no more.
    moveAlong: (moved, session) => moveTokens(moved, session),
    afterMove: (moved) => mapDriverErrors(() => moveTokens(moved)),
    beforeRemove: assertCanEnd,
    afterRemove: ({ _id }) => endAllAccess(_id),
  };
}

/** Ensures that an administrator remains: the last one could lock everyone out. */
function refuseSelf(caller: Caller, key: string): void {
  if (isOwn(caller.userId, key)) {
    throw conflict('this is your own account: another administrator has to do this');
  }
}

export function roleHooks({ database }: HookDeps): StoreHooks {
  const check = async (caller: Caller, fields: JsonObject): Promise<JsonObject> => {
    if (fields.credentials !== undefined) assertCanGrant(caller, fields.credentials as string[]);
    return fields;
  };
  // Otherwise callers could take permissions away from roles with more permissions.
  const assertCanManage = async (caller: Caller, key: string): Promise<void> => {
    const { credentials } = await getEntity(database, builtInStore('roles'), scopeOf(caller), key);
    assertCanGrant(caller, credentials as string[]);
  };
  return {
    prepareNew: check,
    async preparePatch(caller, key, patch) {
      await assertCanManage(caller, key);
      return check(caller, patch);
    },
    unchangedSince: ({ roleId, changedMs }, key, patch) =>
      isOwn(roleId, key) && 'credentials' in patch ? changedMs.role : undefined,
    beforeRemove: assertCanManage,
  };
}

export function tokenHooks(deps: UserHookDeps): StoreHooks {
  const revokeBelow = async (tokenId: string): Promise<void> => {
    for (const id of await revokeDescendants(deps.database, tokenId)) deps.invalidate('tokens', id);
  };
  return {
    async create(caller, { fields, group }) {
      const { name, expiresIn, scopes = null, ...rest } = fields;
      if (scopes !== null) assertCanGrant(caller, scopes as string[]);
      const lifetimeMs = expiresIn === undefined ? deps.tokenLifetimeMs : parseDuration(expiresIn);
      const { token, entity } = await issueToken(deps, caller, {
        name: name as string,
        // A token with restricted scopes cannot create an unrestricted one.
        scopes: (scopes as string[] | null) ?? caller.scopes,
        lifetimeMs: lifetimeMs ?? deps.tokenLifetimeMs,
        fields: rest,
        group,
        parent: await findParent(deps.database, caller),
      });
      // If the caller's access has ended meanwhile, the new token was not among the revoked ones.
      if (!(await isInForce(deps.database, caller))) {
        await revokeToken(deps.database, entity._id);
        throw unauthorized();
      }
      return { ...entity, token };
    },
    // Before the removal, in case the service stops in between; and after it, for descendants created meanwhile.
    async beforeRemove(caller, key) {
      const { _id } = await getEntity(deps.database, builtInStore('tokens'), scopeOf(caller), key);
      await revokeBelow(_id);
    },
    afterRemove: ({ _id }) => revokeBelow(_id),
  };
}

/** The token that a new one is derived from; null for a session. Throws 400, 401. */
export async function findParent(database: Database, { token }: Caller): Promise<TokenRequest['parent']> {
  if (token === null) return null;
  const lineage = await findLineage(database, token.id);
  if (lineage === null) throw unauthorized();
  if (lineage.length > LIMITS.tokenLineage)
    throw badRequest(`tokens can be derived from tokens at most ${LIMITS.tokenLineage} times`);
  return { expiresAtMs: token.expiresAtMs, lineage };
}
