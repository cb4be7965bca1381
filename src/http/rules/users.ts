/** Users, roles and tokens: nobody gives rights they lack, and access that ends, ends everywhere. */
import { issueToken, type TokenRequest } from '../../auth/login.js';
import {
  endAccess,
  findCredentials,
  findLineage,
  isInForce,
  revokeDescendants,
  revokeToken,
} from '../../db/accounts.js';
import type { Database } from '../../db/connect.js';
import { getEntity } from '../../db/entities.js';
import { badRequest, conflict, unauthorized } from '../../errors.js';
import { type Caller, scopeOf } from '../../model/access.js';
import { VIEWER_ROLE_ID } from '../../model/builtin.js';
import type { JsonObject } from '../../model/json.js';
import { LIMITS } from '../../model/limits.js';
import { builtInStore } from '../../model/stores.js';
import { readDuration } from '../../model/time.js';
import { checkGrant, getReferenced, getReferencedId, type Rule, type RuleParts } from './rule.js';

export function userRule({ database, passwords, written }: RuleParts): Rule {
  const checkRole = async (caller: Caller, role: unknown): Promise<void> => {
    const { credentials } = await getReferenced({ database, caller }, 'role', builtInStore('roles'), role);
    checkGrant(caller, credentials as string[]);
  };
  const withHash = async ({ password, ...fields }: JsonObject): Promise<JsonObject> =>
    password === undefined ? fields : { ...fields, _password: await passwords.hash(password as string) };
  // Whoever could change a mightier user could become that user; a token that is narrowed, its own.
  const checkMight = async (caller: Caller, key: string, { object }: JsonObject = {}): Promise<void> => {
    const user = await getEntity(database, builtInStore('users'), scopeOf(caller), key);
    // Another object is other rights, for oneself as well.
    if (user._id === caller.userId && caller.scopes === null && (object ?? user.object) === user.object) return;
    checkGrant(caller, await findCredentials(database, user.role));
  };
  const checkObject = async (caller: Caller, { object }: JsonObject): Promise<void> => {
    if (object !== undefined) await getReferencedId({ database, caller }, 'object', builtInStore('objects'), object);
  };
  const endAllAccess = async (userId: string): Promise<void> => {
    for (const id of await endAccess(database, userId)) written('tokens', id);
  };
  return {
    async prepareNew(caller, fields) {
      const role = fields.role ?? VIEWER_ROLE_ID;
      await checkRole(caller, role);
      await checkObject(caller, fields);
      return withHash({ ...fields, role });
    },
    async preparePatch(caller, key, patch) {
      await checkMight(caller, key, patch);
      if (patch.active === false) refuseSelf(caller, key);
      await checkObject(caller, patch);
      if (patch.role !== undefined) await checkRole(caller, patch.role);
      return withHash(patch);
    },
    async afterChange({ _id }, patch) {
      if (patch._password !== undefined || patch.active === false) await endAllAccess(_id);
    },
    async beforeRemove(caller, key) {
      await checkMight(caller, key);
      refuseSelf(caller, key);
    },
    afterRemove: ({ _id }) => endAllAccess(_id),
  };
}

/** Whoever is there to administrate stays: the last one would lock everyone out. */
function refuseSelf(caller: Caller, key: string): void {
  if (key.toLowerCase() === caller.userId) throw conflict('this is you: another administrator has to do that');
}

export function roleRule({ database }: RuleParts): Rule {
  const check = async (caller: Caller, fields: JsonObject): Promise<JsonObject> => {
    if (fields.credentials !== undefined) checkGrant(caller, fields.credentials as string[]);
    return fields;
  };
  // Whoever could change a mightier role could take from the mightier what they may.
  const checkMight = async (caller: Caller, key: string): Promise<void> => {
    const { credentials } = await getEntity(database, builtInStore('roles'), scopeOf(caller), key);
    checkGrant(caller, credentials as string[]);
  };
  return {
    prepareNew: check,
    async preparePatch(caller, key, patch) {
      await checkMight(caller, key);
      return check(caller, patch);
    },
    beforeRemove: checkMight,
  };
}

export function tokenRule(parts: RuleParts): Rule {
  const revokeBelow = async (tokenId: string): Promise<void> => {
    for (const id of await revokeDescendants(parts.database, tokenId)) parts.written('tokens', id);
  };
  return {
    async create(caller, { fields, group }) {
      const { name, expiresIn, scopes = null, ...rest } = fields;
      if (scopes !== null) checkGrant(caller, scopes as string[]);
      const lifetimeMs = expiresIn === undefined ? parts.tokenLifetimeMs : readDuration(expiresIn);
      const { token, entity } = await issueToken(parts, caller, {
        name: name as string,
        // A token that is narrowed does not make one that is not.
        scopes: (scopes as string[] | null) ?? caller.scopes,
        lifetimeMs: lifetimeMs ?? parts.tokenLifetimeMs,
        fields: rest,
        group,
        parent: await findParent(parts.database, caller),
      });
      // Access that ended meanwhile does not live on in a token it could not end.
      if (!(await isInForce(parts.database, caller))) {
        await revokeToken(parts.database, entity._id);
        throw unauthorized();
      }
      return { ...entity, token };
    },
    // Before, so that nothing is left of it where the service ends in between; and after, for one that was just being made.
    async beforeRemove(caller, key) {
      const { _id } = await getEntity(parts.database, builtInStore('tokens'), scopeOf(caller), key);
      await revokeBelow(_id);
    },
    afterRemove: ({ _id }) => revokeBelow(_id),
  };
}

async function findParent(database: Database, { token }: Caller): Promise<TokenRequest['parent']> {
  if (token === null) return null;
  const lineage = await findLineage(database, token.id);
  if (lineage === null) throw unauthorized();
  if (lineage.length > LIMITS.tokenLineage)
    throw badRequest(`a token of a token, at most ${LIMITS.tokenLineage} times`);
  return { expiresAtMs: token.expiresAtMs, lineage };
}
