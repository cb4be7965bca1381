/** Routes: login with a cookie or a token, the own identity, logout. */
import { type Request, type RequestHandler, Router } from 'express';
import { isCredential, mayGrant } from '../core/access.js';
import { isTokenLifetime, parseDuration, TOKEN_LIFETIME } from '../core/duration.js';
import { badRequest, forbidden, unauthorized } from '../core/errors.js';
import { isObject, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import { readLogin } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { sendEntity, sendJson } from '../platform/http/responses.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { type Accounts, endOldSessions, endSession, revokeDescendants, revokeToken } from './accounts.js';
import type { Attempts } from './attempts.js';
import { refuseForeignPage } from './authenticate.js';
import { areStillValid, checkLogin, issueToken, parseLoginCredentials } from './login.js';
import type { Passwords } from './passwords.js';
import type { Sessions } from './sessions.js';
import type { Tokens } from './tokens.js';

export interface AuthDeps {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly passwords: Passwords;
  readonly attempts: Attempts;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  readonly tokenLifetimeMs: number;
  /** The origins whose pages may send their user's cookie, besides the service's own. */
  readonly corsOrigins: readonly string[];
  readonly now: () => number;
}

type Handler = (deps: AuthDeps) => RequestHandler;

/** The routes without authentication. They refuse logins sent by foreign web pages. */
export function createLoginRouter(deps: AuthDeps): Router {
  const refuseForeign: RequestHandler = (req, _res, next) => {
    refuseForeignPage(req, deps.corsOrigins);
    next();
  };
  const router = Router();
  router.post('/auth', refuseForeign, readLogin(), deps.sessions.middleware, openSession(deps));
  router.post('/auth/token', refuseForeign, readLogin(), openToken(deps));
  return router;
}

/** The routes with authentication. */
export function createAuthRouter(deps: AuthDeps): Router {
  const router = Router();
  router
    .route('/auth')
    .get(sendCaller(deps))
    .delete(logOut(deps))
    .all(allowMethods('GET', 'POST', 'DELETE'));
  router.route('/auth/token').all(allowMethods('POST'));
  return router;
}

const addressOf = (req: Request): string => req.ip ?? 'unknown';

const openSession: Handler = (deps) => async (req, res) => {
  const credentials = parseLoginCredentials(req.body);
  res.locals.login = credentials.login.slice(0, LIMITS.nameCharacters);
  const user = await checkLogin(deps, credentials, addressOf(req));
  res.locals.userId = user.userId;
  const agent = req.get('user-agent')?.slice(0, LIMITS.sessionAgentCharacters);
  const session = { user: user.userId, openedMs: deps.now(), address: addressOf(req), ...(agent && { agent }) };
  const isOpen = await deps.sessions.open(req, session, async () => {
    await endOldSessions(deps.database, user.userId);
    return areStillValid(deps, credentials, user);
  });
  if (!isOpen) throw unauthorized();
  // The public interface spells the field exactly like this (docs/reference/http-api.md).
  sendJson(res, JSON.stringify({ sucess: true }));
};

const openToken: Handler = (deps) => async (req, res) => {
  const credentials = parseLoginCredentials(req.body);
  res.locals.login = credentials.login.slice(0, LIMITS.nameCharacters);
  const { lifetimeMs, scopes } = parseTokenRequest(deps, req.body);
  const user = await checkLogin(deps, credentials, addressOf(req));
  res.locals.userId = user.userId;
  const account = await deps.accounts.findAccount(user.userId);
  if (account === null) throw unauthorized();
  if (scopes !== null && !mayGrant({ ...account, scopes: null }, scopes))
    throw forbidden('scopes: you do not have all of these permissions');
  const { token, entity } = await issueToken(deps, account, { name: 'login', scopes, lifetimeMs });
  if (!(await areStillValid(deps, credentials, user))) {
    await revokeToken(deps.database, entity._id);
    throw unauthorized();
  }
  const { issuedAt, expiresAt } = entity;
  sendJson(res, JSON.stringify({ sucess: true, type: 'access', token, issuedAt, expiresAt }));
};

function parseTokenRequest(deps: AuthDeps, body: unknown): { lifetimeMs: number; scopes: string[] | null } {
  const { expiresIn, scopes = null } = isObject(body) ? body : ({} as JsonObject);
  if (expiresIn !== undefined && !isTokenLifetime(expiresIn)) throw badRequest(`expiresIn: expected ${TOKEN_LIFETIME}`);
  if (scopes !== null && !(Array.isArray(scopes) && scopes.length <= LIMITS.credentials && scopes.every(isScope))) {
    throw badRequest('scopes: expected a list of "METHOD /path/pattern"');
  }
  return { lifetimeMs: parseDuration(expiresIn) ?? deps.tokenLifetimeMs, scopes: scopes as string[] | null };
}

const isScope = (scope: unknown): boolean => typeof scope === 'string' && isCredential(scope);

const sendCaller: Handler = (deps) => async (_req, res) => {
  const { userId, credentials, scopes } = callerOf(res);
  const user = await getEntity(deps.database, builtInStore('users'), scopeIn(res), userId);
  sendEntity(res, { ...user, credentials: [...credentials], scopes: scopes === null ? null : [...scopes] });
};

const logOut: Handler = (deps) => async (_req, res) => {
  const { session, token } = callerOf(res);
  if (session !== null) {
    await endSession(deps.database, session.id);
    deps.sessions.removeCookie(res);
  }
  if (token !== null) {
    await revokeToken(deps.database, token.id);
    const descendants = await revokeDescendants(deps.database, token.id);
    for (const id of [token.id, ...descendants]) deps.accounts.invalidate({ store: 'tokens', id });
  }
  sendJson(res, JSON.stringify({ success: true }));
};
