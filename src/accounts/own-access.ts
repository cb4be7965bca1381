/** Sessions and tokens that users manage for themselves. */
import { ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { LIMITS } from '../core/limits.js';
import type { ListQuery } from '../core/list.js';
import { builtInStore } from '../core/stores.js';
import { listEntities, summarizeEntities } from '../entities/read.js';
import type { JsonPage } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

/** A page of the user's own tokens, or their summary. */
export async function listOwnTokens(database: Database, scope: Scope, query: ListQuery): Promise<JsonPage | Buffer> {
  const conditions = [{ user: new ObjectId(scope.userId) }];
  const tokens = builtInStore('tokens');
  if (query.kind === 'summary') return summarizeEntities(database, tokens, scope, query, conditions);
  return listEntities(database, tokens, scope, query, { conditions, isShort: true });
}

/** A stored session. Its `id` is half of the cookie's secret: no answer contains it. */
export interface StoredSession {
  readonly id: string;
  /** Absent in sessions that were opened before this was stored. */
  readonly openedMs: number | null;
  readonly expiresAtMs: number;
  readonly address: string | null;
  readonly agent: string | null;
}

/** Sessions end at whole seconds: those of one second differ in when they were opened. */
export const NEWEST_FIRST = { expires: -1, 'session.openedMs': -1 } as const;

/** A user's sessions that have not expired, the newest first. */
export async function listSessions(database: Database, userId: string, nowMs: number): Promise<StoredSession[]> {
  const filter = { 'session.user': userId, expires: { $gt: new Date(nowMs) } };
  const newestFirst = { sort: NEWEST_FIRST, limit: LIMITS.sessionsPerUser };
  const found = await mapDriverErrors(() => sessionsOf(database).find(filter, newestFirst).toArray());
  return found.map(({ _id, expires, session }) => ({
    id: _id,
    openedMs: session.openedMs ?? null,
    expiresAtMs: expires.getTime(),
    address: session.address ?? null,
    agent: session.agent ?? null,
  }));
}

/** The caller's own session or token, which stays valid when all others end. */
export interface KeptAccess {
  readonly sessionId: string | null;
  readonly tokenId: string | null;
}

/** Ends a user's sessions, except the kept one; returns their number. */
export async function endOtherSessions(database: Database, userId: string, kept: KeptAccess): Promise<number> {
  const others = { 'session.user': userId, ...(kept.sessionId !== null && { _id: { $ne: kept.sessionId } }) };
  return (await mapDriverErrors(() => sessionsOf(database).deleteMany(others))).deletedCount;
}

/** Ends a user's sessions and revokes the user's tokens, except the kept ones; returns the `_id`s of the revoked tokens. */
export async function endOtherAccess(database: Database, userId: string, kept: KeptAccess): Promise<string[]> {
  const tokens = database.db.collection('tokens');
  const others = {
    user: new ObjectId(userId),
    ...(kept.tokenId !== null && { _id: { $ne: new ObjectId(kept.tokenId) } }),
  };
  await endOtherSessions(database, userId, kept);
  return mapDriverErrors(async () => {
    const revoked = await tokens.find(others, { projection: { _id: 1 } }).toArray();
    await tokens.deleteMany(others);
    return revoked.map(({ _id }) => String(_id));
  });
}

/** Whether a user has reached the limit of tokens. */
export async function hasTooManyTokens(database: Database, userId: string): Promise<boolean> {
  const max = LIMITS.tokensPerUser;
  const tokens = database.db.collection('tokens');
  return (await mapDriverErrors(() => tokens.countDocuments({ user: new ObjectId(userId) }, { limit: max }))) >= max;
}

interface SessionDocument {
  readonly _id: string;
  readonly expires: Date;
  readonly session: { readonly openedMs?: number; readonly address?: string; readonly agent?: string };
}

const sessionsOf = (database: Database) => database.db.collection<SessionDocument>('sessions');
