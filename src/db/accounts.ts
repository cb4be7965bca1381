/** Users, their rights, their tokens and sessions: what identifying a caller needs, cached and kept true by changes. */
import { LRUCache } from 'lru-cache';
import { BSON, type Document, ObjectId } from 'mongodb';
import { badRequest } from '../errors.js';
import { type Caller, forObject, type OwnObject, type Scope } from '../model/access.js';
import { atMost } from '../model/cache-size.js';
import type { Change } from '../model/change.js';
import { isId } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import { namesObject } from '../model/own-id.js';
import { builtInStore } from '../model/stores.js';
import { findStored } from './by-key.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { createKnown } from './known.js';

/** A user who may act, and what the role permits. */
export interface Account {
  readonly userId: string;
  readonly login: string;
  readonly groupId: string;
  readonly roleId: string | null;
  readonly credentials: readonly string[];
  /** The object whose device the user is. */
  readonly object: OwnObject | null;
}

/** A token that is in force; `scopes` null narrows nothing. */
export interface TokenRecord {
  readonly id: string;
  readonly userId: string;
  readonly scopes: readonly string[] | null;
  readonly expiresAtMs: number;
}

export interface Accounts {
  /** The account of a user who exists and is active, or null. */
  findAccount(userId: string): Promise<Account | null>;
  findToken(tokenId: string): Promise<TokenRecord | null>;
  /** Forgets what a change made untrue: at once for our own writes, by the change stream for those of others. */
  forget(change: Pick<Change, 'store' | 'id'>): void;
  /** For when changes were missed. */
  forgetAll(): void;
}

/** `isLive` says whether changes of other instances are arriving; while they are not, nothing is taken from a cache. */
export function createAccounts(database: Database, isLive: () => boolean): Accounts {
  // The objects whose ids stand in the credentials of cached accounts.
  const devices = new Set<string>();
  const accounts = createKnown(LIMITS.cachedAccounts, isLive, async (userId) => {
    const account = await loadAccount(database, userId);
    if (account !== null && account.object !== null) devices.add(account.object.objectId);
    return account;
  });
  const tokens = createKnown(LIMITS.cachedTokens, isLive, (tokenId) => loadToken(database, tokenId));
  return {
    findAccount: accounts.find,
    findToken: tokens.find,
    forget({ store, id }) {
      if (store === 'users') accounts.forget(id);
      // Of all that is known, only what was made of it.
      if (store === 'roles') accounts.forgetWhere(({ roleId }) => roleId === id);
      if (store === 'objects' && devices.has(id)) accounts.forgetWhere(({ object }) => object?.objectId === id);
      if (store === 'tokens') tokens.forget(id);
    },
    forgetAll() {
      accounts.forgetAll();
      tokens.forgetAll();
      devices.clear();
    },
  };
}

async function loadAccount(database: Database, userId: string): Promise<Account | null> {
  const user = await findOne(database, 'users', { _id: new ObjectId(userId) });
  if (user === null || user.active === false) return null;
  const role = user.role instanceof ObjectId ? await findOne(database, 'roles', { _id: user.role }) : null;
  const object = await findObject(database, user.object);
  return {
    userId,
    login: user.login,
    groupId: user.group.toHexString(),
    roleId: role === null ? null : role._id.toHexString(),
    credentials: forObject(role?.credentials ?? [], object),
    object,
  };
}

async function findObject(database: Database, id: unknown): Promise<OwnObject | null> {
  const object = id instanceof ObjectId ? await findOne(database, 'objects', { _id: id }) : null;
  if (object === null) return null;
  return { objectId: object._id.toHexString(), ownId: namesObject(object.id) ? object.id : null };
}

async function loadToken(database: Database, tokenId: string): Promise<TokenRecord | null> {
  const token = await findOne(database, 'tokens', { _id: new ObjectId(tokenId) });
  if (token === null) return null;
  return {
    id: tokenId,
    userId: token.user.toHexString(),
    scopes: token.scopes ?? null,
    expiresAtMs: token.expiresAt,
  };
}

/** A user who may log in, and the stored password hash. */
export interface KnownLogin {
  readonly userId: string;
  readonly passwordHash: string;
}

/** A user by login; null when there is none or it was disabled. */
export async function findLogin(database: Database, login: string): Promise<KnownLogin | null> {
  const user = await findOne(database, 'users', { login });
  if (user === null || user.active === false || typeof user._password !== 'string') return null;
  return { userId: user._id.toHexString(), passwordHash: user._password };
}

/** The same password in another form; nothing is done where it was changed meanwhile. */
export async function replacePasswordHash(database: Database, known: KnownLogin, passwordHash: string): Promise<void> {
  const present = { _id: new ObjectId(known.userId), _password: known.passwordHash };
  const update = { $set: { _password: passwordHash } };
  await translated(() => database.db.collection('users').updateOne(present, update));
}

/** Where an entity belongs: a group, and the chain of groups from the root down to it. */
export interface Place {
  readonly group: string;
  readonly branch: string[];
}

// Exports of other installations name groups of theirs.
const HINT = '; without it, or with ?group=mine, the entity belongs to your own';

/** The scope's own group, or the one that the field names; a 400 where it is none that the scope reaches. */
export async function findPlace(
  database: Database,
  scope: Scope,
  named: string | null,
  field = 'group',
): Promise<Place> {
  const group = named ?? scope.groupId;
  const found = await findStored(database, builtInStore('groups'), '_id', group.toLowerCase());
  const branch = found === null ? [] : (BSON.deserialize(found).branch as ObjectId[]).map(String);
  if (!branch.includes(scope.groupId))
    throw badRequest(`${field}: not a group of yours${field === 'group' ? HINT : ''}`);
  return { group, branch };
}

/** Ends one session. */
export async function endSession(database: Database, sessionId: string): Promise<void> {
  await translated(() => database.db.collection<{ _id: string }>('sessions').deleteOne({ _id: sessionId }));
}

/** Keeps a user's newest sessions and ends the rest. */
export async function endOldSessions(database: Database, userId: string): Promise<void> {
  const sessions = database.db.collection<{ _id: string }>('sessions');
  const newestFirst = { sort: { expires: -1 as const }, skip: LIMITS.sessionsPerUser, projection: { _id: 1 } };
  await translated(async () => {
    const old = await sessions.find({ 'session.user': userId }, newestFirst).toArray();
    if (old.length > 0) await sessions.deleteMany({ _id: { $in: old.map(({ _id }) => _id) } });
  });
}

/** Notes when a token was used, to the minute: its owner sees which ones are still in use. */
export function createUseNotes(database: Database, now: () => number): (tokenId: string) => void {
  const noted = new LRUCache<string, number>(atMost(LIMITS.cachedTokens));
  return (tokenId) => {
    const nowMs = now();
    if (nowMs - (noted.get(tokenId) ?? Number.NEGATIVE_INFINITY) < LIMITS.tokenUseNotedMs) return;
    noted.set(tokenId, nowMs);
    const stale = { _id: new ObjectId(tokenId), lastUsed: { $not: { $gt: nowMs - LIMITS.tokenUseNotedMs } } };
    // A note that fails is made at the next use.
    database.db
      .collection('tokens')
      .updateOne(stale, { $set: { lastUsed: nowMs } })
      .catch(() => noted.delete(tokenId));
  };
}

/** Revokes one token. */
export async function revokeToken(database: Database, tokenId: string): Promise<void> {
  await translated(() => database.db.collection('tokens').deleteOne({ _id: new ObjectId(tokenId) }));
}

/** The token and those that it was made with, the first one first; null where it is no longer there. */
export async function findLineage(database: Database, tokenId: string): Promise<string[] | null> {
  const token = await findOne(database, 'tokens', { _id: new ObjectId(tokenId) });
  return token === null ? null : [...((token._parents ?? []) as string[]), tokenId];
}

/** Revokes the tokens that were made with this one, or with one of those; gives their `_id`s. */
export async function revokeDescendants(database: Database, tokenId: string): Promise<string[]> {
  const tokens = database.db.collection('tokens');
  const descendants = { _parents: tokenId };
  return translated(async () => {
    const revoked = await tokens.find(descendants, { projection: { _id: 1 } }).toArray();
    if (revoked.length > 0) await tokens.deleteMany(descendants);
    return revoked.map(({ _id }) => String(_id));
  });
}

/** Ends every session and revokes every token of a user; gives the `_id`s of the tokens. */
export async function endAccess(database: Database, userId: string): Promise<string[]> {
  const [sessions, tokens] = [database.db.collection('sessions'), database.db.collection('tokens')];
  const ofUser = { user: new ObjectId(userId) };
  return translated(async () => {
    const revoked = await tokens.find(ofUser, { projection: { _id: 1 } }).toArray();
    await Promise.all([sessions.deleteMany({ 'session.user': userId }), tokens.deleteMany(ofUser)]);
    return revoked.map(({ _id }) => String(_id));
  });
}

/** Whether the session or token that a caller came with is still there. */
export async function isInForce(
  database: Database,
  { session, token }: Pick<Caller, 'session' | 'token'>,
): Promise<boolean> {
  if (token !== null) return (await findOne(database, 'tokens', { _id: new ObjectId(token.id) })) !== null;
  const sessions = database.db.collection<{ _id: string }>('sessions');
  return session !== null && (await translated(() => sessions.findOne({ _id: session.id }))) !== null;
}

/** What a role permits, whoever asks; nothing where there is no such role (any more). */
export async function findCredentials(database: Database, roleId: unknown): Promise<string[]> {
  const role = isId(roleId) ? await findOne(database, 'roles', { _id: new ObjectId(roleId) }) : null;
  return role?.credentials ?? [];
}

function findOne(database: Database, collection: string, filter: Document): Promise<Document | null> {
  return translated(() =>
    database.db.collection(collection).findOne(filter, { maxTimeMS: LIMITS.databaseOperationMs }),
  );
}
