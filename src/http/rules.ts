/** What some stores do beside storing: the fields they derive, the rights they check, what ends with them. */
import { issueToken } from '../auth/login.js';
import type { Passwords } from '../auth/password.js';
import type { Tokens } from '../auth/tokens.js';
import { endAccess, findBranch, findCredentials, isInForce, revokeToken } from '../db/accounts.js';
import type { Database } from '../db/connect.js';
import { countContents } from '../db/contents.js';
import { prepareCustomStore } from '../db/custom-stores.js';
import { getEntity } from '../db/entities.js';
import { removePackets } from '../db/packets.js';
import { createEntity, newId } from '../db/writes.js';
import { badRequest, conflict, forbidden, notFound, toApiError, unauthorized } from '../errors.js';
import { type Caller, mayGrant, scopeOf } from '../model/access.js';
import { DEFAULT_MODEL_ID, VIEWER_ROLE_ID } from '../model/builtin.js';
import type { Entity, NewEntity } from '../model/entity.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { compileSchema } from '../model/schema.js';
import { builtInStore, STORES, type Store } from '../model/stores.js';
import { readDuration } from '../model/time.js';

export interface RuleParts {
  readonly database: Database;
  readonly passwords: Passwords;
  readonly tokens: Tokens;
  readonly tokenLifetimeMs: number;
  readonly now: () => number;
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
  readonly afterChange?: (entity: Entity, patch: JsonObject) => Promise<void>;
  readonly beforeRemove?: (caller: Caller, key: string) => Promise<void>;
  readonly afterRemove?: (entity: Entity) => Promise<void>;
}

/** The entity with its common fields: the caller's own, in the caller's group or the one named. */
export async function toNewEntity(
  parts: Pick<RuleParts, 'database' | 'now'>,
  caller: Caller,
  fields: JsonObject,
  group: string | null,
): Promise<Entity> {
  const groupId = group ?? caller.groupId;
  const branch = await findBranch(parts.database, scopeOf(caller), groupId);
  if (branch === null) throw badRequest('group: not a group of yours');
  return { _id: newId(), ...fields, owner: caller.userId, group: groupId, branch, access: [], time: parts.now() };
}

export function createRules(parts: RuleParts): ReadonlyMap<string, Rule> {
  return new Map<string, Rule>([
    ['objects', objectRule(parts)],
    ['users', userRule(parts)],
    ['roles', roleRule(parts)],
    ['tokens', tokenRule(parts)],
    ['groups', groupRule(parts)],
    ['stores', storeRule(parts)],
  ]);
}

/** A referenced entity that the caller can see, or a 400 that names the field. */
async function getReferenced(
  database: Database,
  caller: Caller,
  store: Store,
  id: unknown,
  field: string,
): Promise<Entity> {
  try {
    return await getEntity(database, store, scopeOf(caller), String(id));
  } catch (error) {
    throw toApiError(error).status === 404 ? badRequest(`${field}: there is no such entity in ${store.name}`) : error;
  }
}

function objectRule({ database, inBackground }: RuleParts): Rule {
  const withModel = async (caller: Caller, fields: JsonObject, model: JsonObject[string]): Promise<JsonObject> => {
    const { _id } = await getReferenced(database, caller, builtInStore('models'), model, 'model');
    const { id, name, model: _, ...rest } = fields;
    return {
      ...(id !== undefined && { id }),
      ...(name !== undefined && { name }),
      model: _id,
      models: { id: _id },
      ...rest,
    };
  };
  return {
    prepareNew: (caller, fields) => withModel(caller, fields, fields.model ?? DEFAULT_MODEL_ID),
    preparePatch: async (caller, _key, patch) =>
      patch.model === undefined ? patch : withModel(caller, patch, patch.model),
    // Years of packets take longer than a request may: nobody can see them any more meanwhile.
    afterRemove: async ({ _id }) => inBackground(removePackets(database, _id)),
  };
}

function userRule({ database, passwords, written }: RuleParts): Rule {
  const checkRole = async (caller: Caller, role: unknown): Promise<void> => {
    const { credentials } = await getReferenced(database, caller, builtInStore('roles'), role, 'role');
    checkGrant(caller, credentials as string[]);
  };
  const withHash = async ({ password, ...fields }: JsonObject): Promise<JsonObject> =>
    password === undefined ? fields : { ...fields, _password: await passwords.hash(password as string) };
  // Whoever could change a mightier user could become that user; a token that is narrowed, its own.
  const checkMight = async (caller: Caller, key: string): Promise<void> => {
    const user = await getEntity(database, builtInStore('users'), scopeOf(caller), key);
    if (user._id === caller.userId && caller.scopes === null) return;
    checkGrant(caller, await findCredentials(database, user.role));
  };
  const endAllAccess = async (userId: string): Promise<void> => {
    for (const id of await endAccess(database, userId)) written('tokens', id);
  };
  return {
    async prepareNew(caller, fields) {
      const role = fields.role ?? VIEWER_ROLE_ID;
      await checkRole(caller, role);
      return withHash({ ...fields, role });
    },
    async preparePatch(caller, key, patch) {
      await checkMight(caller, key);
      if (patch.role !== undefined) await checkRole(caller, patch.role);
      return withHash(patch);
    },
    async afterChange({ _id }, patch) {
      if (patch._password !== undefined || patch.active === false) await endAllAccess(_id);
    },
    beforeRemove: checkMight,
    afterRemove: ({ _id }) => endAllAccess(_id),
  };
}

function roleRule({ database }: RuleParts): Rule {
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

function checkGrant(caller: Caller, credentials: readonly string[]): void {
  if (!mayGrant(caller, credentials)) throw forbidden('these are rights that you do not have yourself');
}

function tokenRule(parts: RuleParts): Rule {
  return {
    async create(caller, { fields, group }) {
      const { name, expiresIn, scopes = null, ...rest } = fields;
      if (scopes !== null) checkGrant(caller, scopes as string[]);
      const lifetimeMs = expiresIn === undefined ? parts.tokenLifetimeMs : readDuration(expiresIn as string | number);
      const { token, entity } = await issueToken(parts, caller, {
        name: name as string,
        // A token that is narrowed does not make one that is not.
        scopes: (scopes as string[] | null) ?? caller.scopes,
        lifetimeMs: lifetimeMs ?? parts.tokenLifetimeMs,
        fields: rest,
        group,
      });
      // Access that ended meanwhile does not live on in a token it could not end.
      if (!(await isInForce(parts.database, caller))) {
        await revokeToken(parts.database, entity._id);
        throw unauthorized();
      }
      return { ...entity, token };
    },
  };
}

function groupRule(parts: RuleParts): Rule {
  const { database } = parts;
  return {
    async create(caller, { fields }) {
      const parent = fields.parent === undefined ? caller.groupId : String(fields.parent).toLowerCase();
      const branch = await findBranch(database, scopeOf(caller), parent);
      if (branch === null) throw badRequest('parent: not a group of yours');
      if (branch.length >= LIMITS.branchDepth)
        throw badRequest(`parent: groups nest at most ${LIMITS.branchDepth} deep`);
      const entity = await toNewEntity(parts, caller, { ...fields, parent }, parent);
      // A group belongs to itself: its members see it.
      const own = { ...entity, group: entity._id, branch: [...branch, entity._id] };
      return createEntity(database, builtInStore('groups'), own);
    },
    async beforeRemove(caller, key) {
      const { _id } = await getEntity(database, builtInStore('groups'), scopeOf(caller), key);
      const contents = await countContents(database, _id);
      if (contents.length === 0) return;
      throw conflict(
        `the group is not empty: ${contents.map(({ store, count }) => `${count} in ${store}`).join(', ')}`,
      );
    },
  };
}

function storeRule({ database }: RuleParts): Rule {
  const check = (fields: JsonObject): void => {
    if (fields.schema !== undefined) compileSchema(fields.schema as JsonObject);
  };
  return {
    async prepareNew(_caller, fields) {
      if (STORES.has(fields.name as string) || RESERVED.has(fields.name as string)) {
        throw conflict('name: already taken');
      }
      check(fields);
      await prepareCustomStore(database, fields.name as string);
      return fields;
    },
    async preparePatch(_caller, _key, patch) {
      check(patch);
      return patch;
    },
    async beforeRemove(caller, key) {
      const { name } = await getEntity(database, builtInStore('stores'), scopeOf(caller), key);
      if (typeof name !== 'string') throw notFound();
      const count = await prepareCustomStore(database, name).then((collection) => collection.estimatedDocumentCount());
      if (count > 0) throw conflict(`the store is not empty: ${count} entities`);
    },
  };
}

/** Paths of the interface that no store can have. */
const RESERVED: ReadonlySet<string> = new Set(['auth', 'events', 'packets', 'sessions', 'docs']);
