/** Logging in, by cookie or by token; asking who one is; leaving. */
import { type Request, type RequestHandler, Router } from 'express';
import type { Attempts } from '../auth/attempts.js';
import { checkLogin, isStillGood, issueToken, readCredentials } from '../auth/login.js';
import type { Passwords } from '../auth/password.js';
import { SESSION_COOKIE, type Sessions } from '../auth/sessions.js';
import type { Tokens } from '../auth/tokens.js';
import { type Accounts, endOldSessions, endSession, revokeDescendants, revokeToken } from '../db/accounts.js';
import type { Database } from '../db/connect.js';
import { withinTime } from '../db/documents.js';
import { getEntity } from '../db/entities.js';
import { badRequest, forbidden, unauthorized, unavailable } from '../errors.js';
import { isCredential, mayGrant } from '../model/access.js';
import { isObject, type JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { builtInStore } from '../model/stores.js';
import { readDuration } from '../model/time.js';
import { sendEntity, sendJson } from './answer.js';
import { readLogin } from './body.js';
import { callerOf, scopeIn } from './caller.js';
import { only } from './failure.js';

export interface AuthParts {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly passwords: Passwords;
  readonly attempts: Attempts;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  readonly tokenLifetimeMs: number;
  readonly now: () => number;
}

type Handler = (parts: AuthParts) => RequestHandler;

/** The routes that need no caller: `guard` refuses logins that a foreign web page sends. */
export function createLoginRouter(parts: AuthParts, guard: RequestHandler): Router {
  const router = Router();
  router.post('/auth', guard, readLogin(), parts.sessions.middleware, openSession(parts));
  router.post('/auth/token', guard, readLogin(), openToken(parts));
  return router;
}

/** The routes that need one. */
export function createAuthRouter(parts: AuthParts): Router {
  const router = Router();
  router
    .route('/auth')
    .get(tellCaller(parts))
    .delete(leave(parts))
    .all(only('GET', 'POST', 'DELETE'));
  router.route('/auth/token').all(only('POST'));
  return router;
}

const addressOf = (req: Request): string => req.ip ?? 'unknown';

const openSession: Handler = (parts) => async (req, res) => {
  const credentials = readCredentials(req.body);
  res.locals.login = credentials.login.slice(0, LIMITS.nameCharacters);
  const known = await checkLogin(parts, credentials, addressOf(req));
  res.locals.userId = known.userId;
  await finished((done) => req.session.regenerate(done));
  req.session.user = known.userId;
  await finished((done) => req.session.save(done));
  await endOldSessions(parts.database, known.userId);
  if (!(await isStillGood(parts, credentials, known))) {
    await finished((done) => req.session.destroy(done));
    throw unauthorized();
  }
  // interface, "Authentication result objects": the field's name is spelled exactly like this.
  sendJson(res, JSON.stringify({ sucess: true }));
};

function finished(start: (done: (error?: unknown) => void) => void): Promise<void> {
  const done = () =>
    new Promise<void>((resolve, reject) => {
      start((error) => (error ? reject(unavailable('the session store is away', error)) : resolve()));
    });
  return withinTime(done, LIMITS.databaseAnswerMs);
}

const openToken: Handler = (parts) => async (req, res) => {
  const credentials = readCredentials(req.body);
  res.locals.login = credentials.login.slice(0, LIMITS.nameCharacters);
  const { lifetimeMs, scopes } = readTokenWish(parts, req.body);
  const known = await checkLogin(parts, credentials, addressOf(req));
  res.locals.userId = known.userId;
  const account = await parts.accounts.findAccount(known.userId);
  if (account === null) throw unauthorized();
  if (scopes !== null && !mayGrant({ ...account, scopes: null }, scopes))
    throw forbidden('scopes: more than your rights');
  const { token, entity } = await issueToken(parts, account, { name: 'login', scopes, lifetimeMs });
  if (!(await isStillGood(parts, credentials, known))) {
    await revokeToken(parts.database, entity._id);
    throw unauthorized();
  }
  const { issuedAt, expiresAt } = entity;
  sendJson(res, JSON.stringify({ sucess: true, type: 'access', token, issuedAt, expiresAt }));
};

function readTokenWish(parts: AuthParts, body: unknown): { lifetimeMs: number; scopes: string[] | null } {
  const { expiresIn, scopes = null } = isObject(body) ? body : ({} as JsonObject);
  const lifetimeMs = expiresIn === undefined ? parts.tokenLifetimeMs : readDuration(expiresIn);
  if (lifetimeMs === null || lifetimeMs < 1_000 || lifetimeMs > LIMITS.tokenLifetimeMaxMs) {
    throw badRequest('expiresIn: expected a duration such as "90 days", or milliseconds');
  }
  if (scopes !== null && !(Array.isArray(scopes) && scopes.length <= LIMITS.credentials && scopes.every(isScope))) {
    throw badRequest('scopes: expected a list of "METHOD /path/pattern"');
  }
  return { lifetimeMs, scopes: scopes as string[] | null };
}

const isScope = (scope: unknown): boolean => typeof scope === 'string' && isCredential(scope);

const tellCaller: Handler = (parts) => async (_req, res) => {
  const { userId, credentials, scopes } = callerOf(res);
  const user = await getEntity(parts.database, builtInStore('users'), scopeIn(res), userId);
  sendEntity(res, { ...user, credentials: [...credentials], scopes: scopes === null ? null : [...scopes] });
};

const leave: Handler = (parts) => async (_req, res) => {
  const { session, token } = callerOf(res);
  if (session !== null) {
    await endSession(parts.database, session.id);
    res.clearCookie(SESSION_COOKIE, { path: '/', httpOnly: true, sameSite: 'lax' });
  }
  if (token !== null) {
    await revokeToken(parts.database, token.id);
    const descendants = await revokeDescendants(parts.database, token.id);
    for (const id of [token.id, ...descendants]) parts.accounts.forget({ store: 'tokens', id });
  }
  sendJson(res, JSON.stringify({ success: true }));
};
