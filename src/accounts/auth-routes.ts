/** Routes: login with a cookie or a token, the own identity, logout. */
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { isCredential } from '../core/access.js';
import { isInsideApp } from '../core/app-origin.js';
import { explainTokenLifetime, parseDuration } from '../core/duration.js';
import { badRequest, forbidden, unauthorized } from '../core/errors.js';
import { mayGrant } from '../core/grants.js';
import { isObject, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { sendEntity, sendJson } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { every, literal, named, SUCCESS, TIME } from '../platform/http/schema.js';
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

const addressOf = (req: Request): string => req.ip ?? 'unknown';

const LOGIN = z
  .object({
    login: z.string().optional(),
    username: z.string().optional().describe('Accepted in place of `login`'),
    password: z.string(),
  })
  .meta({ id: 'Login' });
const CREDENTIALS = z.array(z.string()).max(LIMITS.credentials);
const TOKEN_LOGIN = every(
  LOGIN,
  z.object({
    expiresIn: literal({
      type: ['string', 'number'],
      description: 'A duration such as `90 days`, or milliseconds',
    }).optional(),
    scopes: CREDENTIALS.nullable().optional(),
  }),
).meta({ id: 'TokenLogin' });
const EXAMPLE = { login: 'ada', password: 'correct horse battery' };

// The public interface spells the field exactly like this (docs/reference/http-api.md).
const LOGIN_ANSWER = z
  .object({ sucess: z.literal(true).describe('The spelling is part of the API') })
  .meta({ id: 'LoginAnswer' });
const TOKEN_ANSWER = every(
  LOGIN_ANSWER,
  z.object({ type: z.literal('access'), token: z.string(), issuedAt: TIME, expiresAt: TIME }),
).meta({ id: 'TokenAnswer' });

/** The user of the request. */
export const CALLER = every(
  named('User'),
  SUCCESS,
  z.object({ credentials: CREDENTIALS, scopes: CREDENTIALS.nullable() }),
).meta({ id: 'Caller' });

/** A page could log its visitor in to an account of its own, or have its visitors guess passwords. */
const refuseForeign =
  ({ corsOrigins }: AuthDeps): RequestHandler =>
  (req, _res, next) => {
    refuseForeignPage(req, corsOrigins);
    next();
  };

/** A token is in the answer alone, which logs nobody in: apps may ask for one. */
const refuseForeignWebPage =
  (deps: AuthDeps): RequestHandler =>
  (req, res, next) =>
    isInsideApp(req.headers.origin ?? '') ? next() : refuseForeign(deps)(req, res, next);

const logIn = defineRoute({
  method: 'POST',
  path: '/api/v1/auth',
  name: 'logIn',
  tag: 'auth',
  summary: 'Opens a session',
  docs: 'Opens a session: `{login, password}` as JSON or as a form; `username` is accepted in place of `login`. Sets the cookie `sid`',
  auth: 'none',
  limit: 'request',
  body: { schema: LOGIN, example: EXAMPLE, isRequired: true, isForm: true, limitBytes: LIMITS.loginBodyBytes },
  answer: { description: 'The session is open', schema: LOGIN_ANSWER, headers: ['Set-Cookie'] },
  errors: [401, 403, 429],
  before: refuseForeign,
  handle: (deps: AuthDeps) => (req, res, next) => {
    deps.sessions.middleware(req, res, (error?: unknown) => {
      if (error) next(error);
      else openSession(deps, req, res).catch(next);
    });
  },
});

const issueOwnToken = defineRoute({
  method: 'POST',
  path: '/api/v1/auth/token',
  name: 'issueToken',
  tag: 'auth',
  summary: 'Issues a token',
  docs: 'Issues a token. Accepts the same fields, and optionally `expiresIn` (`"90 days"` or ms) and `scopes`',
  auth: 'none',
  limit: 'request',
  body: {
    schema: TOKEN_LOGIN,
    example: { ...EXAMPLE, expiresIn: '90 days' },
    isRequired: true,
    isForm: true,
    limitBytes: LIMITS.loginBodyBytes,
  },
  answer: { description: 'The token', schema: TOKEN_ANSWER },
  errors: [401, 403, 429],
  before: refuseForeignWebPage,
  handle: (deps: AuthDeps) => async (req, res) => {
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
  },
});

const whoAmI = defineRoute({
  method: 'GET',
  path: '/api/v1/auth',
  name: 'whoAmI',
  tag: 'auth',
  summary: 'Returns the current user',
  docs: 'Returns the current user, with `credentials` and `scopes`',
  auth: 'caller',
  limit: 'request',
  answer: { description: 'The user, with credentials and scopes', schema: CALLER },
  errors: [404],
  handle: (deps: AuthDeps) => async (_req, res) => {
    const { userId, credentials, scopes } = callerOf(res);
    const user = await getEntity(deps.database, builtInStore('users'), scopeIn(res), userId);
    sendEntity(res, { ...user, credentials: [...credentials], scopes: scopes === null ? null : [...scopes] });
  },
});

const logOut = defineRoute({
  method: 'DELETE',
  path: '/api/v1/auth',
  name: 'logOut',
  tag: 'auth',
  summary: 'Ends the session, or revokes the token, of the request',
  auth: 'caller',
  limit: 'request',
  answer: { description: 'The session or token has ended', schema: SUCCESS, headers: ['Set-Cookie'] },
  errors: [403],
  handle: (deps: AuthDeps) => async (_req, res) => {
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
  },
});

export const AUTH_ROUTES = [logIn, issueOwnToken, whoAmI, logOut];

async function openSession(deps: AuthDeps, req: Request, res: Response): Promise<void> {
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
  sendJson(res, JSON.stringify({ sucess: true }));
}

function parseTokenRequest(deps: AuthDeps, body: unknown): { lifetimeMs: number; scopes: string[] | null } {
  const { expiresIn, scopes = null } = isObject(body) ? body : ({} as JsonObject);
  const fault = expiresIn === undefined ? null : explainTokenLifetime(expiresIn);
  if (fault !== null) throw badRequest(`expiresIn: ${fault}`);
  if (scopes !== null && !(Array.isArray(scopes) && scopes.length <= LIMITS.credentials && scopes.every(isScope))) {
    throw badRequest('scopes: expected a list of "METHOD /path/pattern"');
  }
  return { lifetimeMs: parseDuration(expiresIn) ?? deps.tokenLifetimeMs, scopes: scopes as string[] | null };
}

const isScope = (scope: unknown): boolean => typeof scope === 'string' && isCredential(scope);
