/** Users with their permissions, tokens and sessions: cached for authentication, and invalidated by changes. */
import { LRUCache } from 'lru-cache';
import { type Document, ObjectId } from 'mongodb';
import {
  type Caller,
  forObject,
  type NamedObject,
  type OwnObject,
  objectKeysIn,
  type ScopeObject,
} from '../core/access.js';
import { cacheSize } from '../core/cache-size.js';
import type { Change } from '../core/change.js';
import { type Entity, isId } from '../core/entity.js';
import { LIMITS } from '../core/limits.js';
import { type LinkTerms, toLinkTerms } from '../core/link.js';
import { isValidOwnId } from '../core/own-id.js';
import { createReadThroughCache } from '../platform/cache.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { isSnapshotGone, mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { snapshotAfter } from '../platform/mongo/driver/snapshot.js';
import { NEWEST_FIRST } from './own-access.js';

/** An active user with the permissions of the role. */
export interface Account {
  readonly userId: string;
  readonly login: string;
  readonly groupId: string;
  /** The group below the root that the user belongs to; null for a user of the root group. */
  readonly tenantId: string | null;
  readonly roleId: string | null;
  readonly credentials: readonly string[];
  /** The object, if the user is its device. */
  readonly object: OwnObject | null;
  /** `_at` of the user and of its role; null before their first change. */
  readonly changedMs: { readonly user: number | null; readonly role: number | null };
  readonly createdMs: { readonly user: number; readonly role: number };
}

/** A user or role as it has been since its last change; null before the first one. */
export interface Version {
  readonly store: 'users' | 'roles';
  readonly id: string;
  readonly changedMs: number | null;
}

/** A token that was not revoked; null `scopes` means no restriction. */
export interface TokenRecord {
  readonly id: string;
  readonly userId: string;
  readonly scopes: readonly string[] | null;
  readonly scopeObjects: readonly ScopeObject[];
  readonly expiresAtMs: number;
  /** What it shows, if it is a share link, which opens no other route. */
  readonly link: LinkTerms | null;
}

export interface Accounts {
  /** Null when the user does not exist or is not active. */
  findAccount(userId: string): Promise<Account | null>;
  /**
   * Whether a user or role was as this version has it right after this position of the changes. False if the database does not know
   * that any more. Throws 503.
   */
  wasAt(version: Version, position: string): Promise<boolean>;
  findToken(tokenId: string): Promise<TokenRecord | null>;
  /** Drops outdated entries: called at once for our own writes, and by the change stream for writes of other instances. */
  invalidate(change: Pick<Change, 'store' | 'id'>): void;
  /** Called when changes were missed. */
  invalidateAll(): void;
}

/** `isLive` returns whether the change stream delivers; while it does not, the caches are not used. */
export function createAccounts(database: Database, isLive: () => boolean): Accounts {
  // The objects whose ids are part of the credentials of cached accounts.
  const devices = new Set<string>();
  const accounts = createReadThroughCache(LIMITS.cachedAccounts, isLive, (userId) =>
    loadAccount(database, userId, (objectId) => devices.add(objectId)),
  );
  // The tokens whose scopes name an object.
  const tokensOf = new Map<string, Set<string>>();
  const tokens = createReadThroughCache(LIMITS.cachedTokens, isLive, (tokenId) =>
    loadToken(database, tokenId, (objectId) => {
      tokensOf.set(objectId, (tokensOf.get(objectId) ?? new Set()).add(tokenId));
    }),
  );
  return {
    findAccount: accounts.find,
    wasAt: (version, position) => wasAt(database, version, position),
    findToken: tokens.find,
    invalidate({ store, id }) {
      if (store === 'users') accounts.invalidate(id);
      // Drops only the accounts that depend on this document.
      if (store === 'roles') accounts.invalidateWhere(({ roleId }) => roleId === id);
      if (store === 'objects' && devices.has(id)) accounts.invalidateWhere(({ object }) => object?.objectId === id);
      if (store === 'tokens') tokens.invalidate(id);
      if (store !== 'objects') return;
      for (const tokenId of tokensOf.get(id) ?? []) tokens.invalidate(tokenId);
      tokensOf.delete(id);
    },
    invalidateAll() {
      accounts.invalidateAll();
      tokens.invalidateAll();
      devices.clear();
      tokensOf.clear();
    },
  };
}

/** `onObject` is called before the object is read: a change meanwhile is not missed. */
async function loadAccount(
  database: Database,
  userId: string,
  onObject: (objectId: string) => void,
): Promise<Account | null> {
  const user = await findOne(database, 'users', { _id: new ObjectId(userId) });
  if (user === null || user.active === false) return null;
  const role = user.role instanceof ObjectId ? await findOne(database, 'roles', { _id: user.role }) : null;
  if (user.object instanceof ObjectId) onObject(user.object.toHexString());
  const object = await findObject(database, user.object);
  return {
    userId,
    login: user.login,
    groupId: user.group.toHexString(),
    tenantId: user.branch?.[1]?.toHexString() ?? null,
    roleId: role === null ? null : role._id.toHexString(),
    credentials: forObject(role?.credentials ?? [], object),
    object,
    changedMs: { user: user._at ?? null, role: role?._at ?? null },
    createdMs: { user: user.time ?? 0, role: role?.time ?? 0 },
  };
}

async function wasAt({ db }: Database, { store, id, changedMs }: Version, position: string): Promise<boolean> {
  const one = { find: store, filter: { _id: new ObjectId(id) }, projection: { _at: 1 }, limit: 1 };
  // The driver's own method has no way to name a moment.
  const command = Object.assign(
    one,
    { singleBatch: true, maxTimeMS: LIMITS.databaseOperationMs },
    snapshotAfter(position),
  );
  try {
    const { cursor } = await mapDriverErrors(() => db.command(command));
    return cursor.firstBatch.some(({ _at = null }: Document) => _at === changedMs);
  } catch (error) {
    if (isSnapshotGone(error)) return false;
    throw error;
  }
}

/** The permissions of a user as its requests have them, also of a user who is not active. */
export async function findRights(database: Database, user: Entity): Promise<Pick<Account, 'credentials' | 'object'>> {
  const object = await findObject(database, isId(user.object) ? new ObjectId(user.object) : null);
  return { credentials: forObject(await findCredentials(database, user.role), object), object };
}

async function findObject(database: Database, id: unknown): Promise<OwnObject | null> {
  const object = id instanceof ObjectId ? await findOne(database, 'objects', { _id: id }) : null;
  if (object === null) return null;
  return { objectId: object._id.toHexString(), ownId: toNameOf(object.id) };
}

/** `onObject` is called before the objects that its scopes name are read. */
async function loadToken(
  database: Database,
  tokenId: string,
  onObject: (objectId: string) => void,
): Promise<TokenRecord | null> {
  const token = await findOne(database, 'tokens', { _id: new ObjectId(tokenId) });
  if (token === null) return null;
  const scopes: readonly string[] = token.scopes ?? [];
  const bound: readonly NamedObject[] = token._objects ?? [];
  for (const id of objectIdsOf(scopes, bound)) onObject(id);
  return {
    id: tokenId,
    userId: token.user.toHexString(),
    scopes: token.scopes ?? null,
    scopeObjects: await findScopeObjects(database, scopes, bound),
    expiresAtMs: token.expiresAt,
    link: token._link === undefined ? null : toLinkTerms(token._link),
  };
}

const objectIdsOf = (scopes: readonly string[], bound: readonly NamedObject[]): string[] => [
  ...new Set([...bound.map(({ objectId }) => objectId), ...objectKeysIn(scopes).filter(isId)]),
];

/** The objects that scopes name: by `_id`, or by an own id that was bound to the object. */
export async function findScopeObjects(
  database: Database,
  scopes: readonly string[],
  bound: readonly NamedObject[] = [],
): Promise<ScopeObject[]> {
  const ids = objectIdsOf(scopes, bound);
  if (ids.length === 0) return [];
  const named = { _id: { $in: ids.map((id) => new ObjectId(id)) } };
  const options = { projection: { id: 1 }, maxTimeMS: LIMITS.databaseOperationMs, ...COMMITTED_READ };
  const found = await mapDriverErrors(() => database.db.collection('objects').find(named, options).toArray());
  const ownIds = new Map(found.map(({ _id, id }) => [_id.toHexString(), id]));
  return ids.map((objectId) => ({
    objectId,
    ownId: toNameOf(ownIds.get(objectId)),
    boundIds: bound.filter((one) => one.objectId === objectId).map(({ ownId }) => ownId),
  }));
}

const toNameOf = (ownId: unknown): string | null => (typeof ownId === 'string' && isValidOwnId(ownId) ? ownId : null);

/** The objects that have these own ids. */
export async function findObjectsNamed(database: Database, ownIds: readonly string[]): Promise<NamedObject[]> {
  if (ownIds.length === 0) return [];
  const named = database.db.collection('objects').find({ id: { $in: ownIds } }, { projection: { id: 1 } });
  const found = await mapDriverErrors(() => named.toArray());
  return found.map(({ _id, id }) => ({ objectId: _id.toHexString(), ownId: id }));
}

/** An active user with the stored password hash. */
export interface KnownLogin {
  readonly userId: string;
  readonly passwordHash: string;
}

/** Finds an active user by login. */
export async function findLogin(database: Database, login: string): Promise<KnownLogin | null> {
  const user = await findOne(database, 'users', { login });
  if (user === null || user.active === false || typeof user._password !== 'string') return null;
  return { userId: user._id.toHexString(), passwordHash: user._password };
}

/** Stores another hash of the same password, unless the password was changed meanwhile. */
export async function replacePasswordHash(database: Database, known: KnownLogin, passwordHash: string): Promise<void> {
  const present = { _id: new ObjectId(known.userId), _password: known.passwordHash };
  const update = { $set: { _password: passwordHash } };
  await mapDriverErrors(() => database.db.collection('users').updateOne(present, update));
}

/** Ends one session. */
export async function endSession(database: Database, sessionId: string): Promise<void> {
  await mapDriverErrors(() => database.db.collection<{ _id: string }>('sessions').deleteOne({ _id: sessionId }));
}

/** Keeps a user's newest sessions and ends the rest. */
export async function endOldSessions(database: Database, userId: string): Promise<void> {
  const sessions = database.db.collection<{ _id: string }>('sessions');
  const newestFirst = { sort: NEWEST_FIRST, skip: LIMITS.sessionsPerUser, projection: { _id: 1 } };
  await mapDriverErrors(async () => {
    const old = await sessions.find({ 'session.user': userId }, newestFirst).toArray();
    if (old.length > 0) await sessions.deleteMany({ _id: { $in: old.map(({ _id }) => _id) } });
  });
}

/** Records the last use of tokens or sources, to the minute, so that owners see which ones are still in use. */
export function createUseNotes(
  database: Database,
  store: 'tokens' | 'sources',
  now: () => number,
): (id: string) => void {
  const lastNotes = new LRUCache<string, number>(cacheSize(LIMITS.cachedTokens));
  return (id) => {
    const nowMs = now();
    if (nowMs - (lastNotes.get(id) ?? Number.NEGATIVE_INFINITY) < LIMITS.tokenLastUsedDelayMs) return;
    lastNotes.set(id, nowMs);
    const stale = { _id: new ObjectId(id), lastUsed: { $not: { $gt: nowMs - LIMITS.tokenLastUsedDelayMs } } };
    // A failed update is repeated at the next use.
    database.db
      .collection(store)
      .updateOne(stale, { $set: { lastUsed: nowMs } })
      .catch(() => lastNotes.delete(id));
  };
}

/** Revokes one token. */
export async function revokeToken(database: Database, tokenId: string): Promise<void> {
  await mapDriverErrors(() => database.db.collection('tokens').deleteOne({ _id: new ObjectId(tokenId) }));
}

/** The chain of tokens that created each other, from the first one down to this one; null when the token no longer exists. */
export async function findLineage(database: Database, tokenId: string): Promise<string[] | null> {
  const token = await findOne(database, 'tokens', { _id: new ObjectId(tokenId) });
  return token === null ? null : [...((token._parents ?? []) as string[]), tokenId];
}

/** Revokes all tokens that were created with this one, directly or indirectly; returns their `_id`s. */
export async function revokeDescendants(database: Database, tokenId: string): Promise<string[]> {
  const tokens = database.db.collection('tokens');
  const descendants = { _parents: tokenId };
  return mapDriverErrors(async () => {
    const revoked = await tokens.find(descendants, { projection: { _id: 1 } }).toArray();
    if (revoked.length > 0) await tokens.deleteMany(descendants);
    return revoked.map(({ _id }) => String(_id));
  });
}

/** Ends all sessions and revokes all tokens of a user; returns the `_id`s of the tokens. */
export async function endAccess(database: Database, userId: string): Promise<string[]> {
  const sessions = database.db.collection('sessions');
  const tokens = database.db.collection('tokens');
  const ofUser = { user: new ObjectId(userId) };
  return mapDriverErrors(async () => {
    const revoked = await tokens.find(ofUser, { projection: { _id: 1 } }).toArray();
    await Promise.all([sessions.deleteMany({ 'session.user': userId }), tokens.deleteMany(ofUser)]);
    return revoked.map(({ _id }) => String(_id));
  });
}

/** Whether the caller's session or token still exists. */
export async function isInForce(
  database: Database,
  { session, token }: Pick<Caller, 'session' | 'token'>,
): Promise<boolean> {
  if (token !== null) return (await findOne(database, 'tokens', { _id: new ObjectId(token.id) })) !== null;
  const sessions = database.db.collection<{ _id: string }>('sessions');
  return session !== null && (await mapDriverErrors(() => sessions.findOne({ _id: session.id }))) !== null;
}

/** The credentials of a role, without a permission check; empty when the role does not exist. */
export async function findCredentials(database: Database, roleId: unknown): Promise<string[]> {
  const role = isId(roleId) ? await findOne(database, 'roles', { _id: new ObjectId(roleId) }) : null;
  return role?.credentials ?? [];
}

function findOne(database: Database, collection: string, filter: Document): Promise<Document | null> {
  return mapDriverErrors(() =>
    database.db.collection(collection).findOne(filter, { maxTimeMS: LIMITS.databaseOperationMs, ...COMMITTED_READ }),
  );
}
