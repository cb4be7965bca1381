/** Routes: the caller's own account, its tokens and its sessions. Every role may use them, within the scopes of a token. */
import { createHash } from 'node:crypto';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { type Caller, scopeOf } from '../core/access.js';
import { parseNewEntity, parsePatch } from '../core/entity.js';
import { badRequest, conflict, notFound } from '../core/errors.js';
import { type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import type { EntityDeps } from '../entities/routes.js';
import { changeEntity, removeEntity } from '../entities/write.js';
import { jsonBody } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { allowMethods, unknownPath } from '../platform/http/errors.js';
import { listDatabaseFor } from '../platform/http/list-caller.js';
import { parseListQuery } from '../platform/http/query-params.js';
import { sendEntity, sendJson, sendPage } from '../platform/http/responses.js';
import { LAYOUT } from '../platform/mongo/bson/raw-cursor.js';
import { endSession } from './accounts.js';
import type { AuthDeps } from './auth-routes.js';
import {
  endOtherAccess,
  endOtherSessions,
  hasTooManyTokens,
  type KeptAccess,
  listOwnTokens,
  listSessions,
  type StoredSession,
} from './own-access.js';
import { checkOwnPassword } from './own-password.js';

export interface AccountDeps extends AuthDeps, EntityDeps {}

type Handler = (deps: AccountDeps) => RequestHandler;

const USERS = builtInStore('users');
const TOKENS = builtInStore('tokens');
const OWN_FIELDS = ['name', 'email', 'password'];

export function createAccountRouter(deps: AccountDeps): Router {
  const router = Router();
  const change = changeAccount(deps);
  const create = createToken(deps);
  router
    .route('/account')
    .get(readAccount(deps))
    .patch(jsonBody(LIMITS.loginBodyBytes, deps, change))
    .all(allowMethods('GET', 'PATCH'));
  router
    .route('/account/tokens')
    .get(listTokens(deps))
    .post(jsonBody(LIMITS.entityBodyBytes, deps, create))
    .all(allowMethods('GET', 'POST'));
  router.route('/account/tokens/:id').delete(removeToken(deps)).all(allowMethods('DELETE'));
  router
    .route('/account/sessions')
    .get(listOwnSessions(deps))
    .delete(endOthers(deps))
    .all(allowMethods('GET', 'DELETE'));
  router.route('/account/sessions/:id').delete(endOne(deps)).all(allowMethods('DELETE'));
  // Every role may use these paths, so none of them leads to a store of that name.
  router.use('/account', unknownPath);
  return router;
}

const readAccount: Handler = (deps) => async (_req, res) => sendAccount(deps, res);

async function sendAccount({ database }: AccountDeps, res: Response): Promise<void> {
  const { userId, credentials, scopes, session, token } = callerOf(res);
  const user = await getEntity(database, USERS, scopeIn(res), userId);
  sendEntity(res, {
    ...user,
    credentials: [...credentials],
    scopes: scopes === null ? null : [...scopes],
    session: session === null ? null : { _id: publicId(session.id), expiresAt: session.expiresAtMs },
    token: token === null ? null : { _id: token.id, expiresAt: token.expiresAtMs },
  });
}

const changeAccount: Handler = (deps) => async (req, res) => {
  const caller = callerOf(res);
  const body = parseObject(req.body ?? {});
  const given = Object.fromEntries(Object.entries(body).filter(([name]) => OWN_FIELDS.includes(name)));
  const { password, ...fields } = parsePatch(USERS, given);
  res.locals.fields = Object.keys(given);
  const secret = password === undefined ? null : await readNewPassword(deps, req, res, password as string);
  const patch: JsonObject = { ...fields, ...(secret !== null && { _password: secret.hash }) };
  const onlyIf = secret?.onlyIf;
  await changeEntity(deps.database, USERS, scopeOf(caller), caller.userId, { patch, nowMs: deps.now(), onlyIf });
  deps.invalidate('users', caller.userId);
  res.locals.entityId = caller.userId;
  if (secret !== null) {
    const revoked = await endOtherAccess(deps.database, caller.userId, keptOf(caller));
    for (const id of revoked) deps.invalidate('tokens', id);
  }
  await sendAccount(deps, res);
};

/** The hash to store, on the condition that the old password is still the one that was checked. */
async function readNewPassword(deps: AccountDeps, req: Request, res: Response, password: string) {
  const { oldPassword } = req.body as JsonObject;
  if (typeof oldPassword !== 'string' || oldPassword === '') throw badRequest('oldPassword: required');
  const present = await checkOwnPassword(deps, callerOf(res), {
    password: oldPassword,
    address: req.ip ?? 'unknown',
    onRefused: (action) => Object.assign(res.locals, { action }),
  });
  return { hash: await deps.passwords.hash(password), onlyIf: { $eq: ['$_password', { $literal: present }] } };
}

const keptOf = ({ session, token }: Caller): KeptAccess => ({
  sessionId: session?.id ?? null,
  tokenId: token?.id ?? null,
});

const listTokens: Handler = (deps) => async (req, res) => {
  const query = parseListQuery(req.query);
  const found = await listOwnTokens(listDatabaseFor(deps, req, res), scopeIn(res), query);
  if (query.kind === 'page' && !Buffer.isBuffer(found)) sendPage(req, res, query, found);
  else sendJson(res, found as Buffer);
};

const createToken: Handler = (deps) => async (req, res) => {
  const caller = callerOf(res);
  const requested = parseNewEntity(TOKENS, req.body ?? {}, true);
  if (await hasTooManyTokens(deps.database, caller.userId))
    throw conflict(`at most ${LIMITS.tokensPerUser} tokens: revoke one first`);
  const created = await deps.hooks.get('tokens')?.create?.(caller, requested);
  if (created === undefined) throw new Error('the store tokens has no create hook');
  res.locals.entityId = created._id;
  sendEntity(res, created);
};

const removeToken: Handler = (deps) => async (req, res) => {
  const caller = callerOf(res);
  const scope = scopeIn(res);
  const key = String(req.params.id);
  const { _id, user } = await getEntity(deps.database, TOKENS, scope, key);
  // The caller can remove visible tokens of other users in the store `tokens`.
  if (user !== caller.userId) throw notFound();
  const hooks = deps.hooks.get('tokens');
  await hooks?.beforeRemove?.(caller, _id);
  const removed = await removeEntity(deps.database, TOKENS, scope, _id);
  deps.invalidate('tokens', _id);
  res.locals.entityId = _id;
  await hooks?.afterRemove?.(removed);
  sendEntity(res, removed);
};

const listOwnSessions: Handler = (deps) => async (_req, res) => {
  const { userId, session } = callerOf(res);
  const found = await listSessions(deps.database, userId, deps.now());
  const items = found.map((stored) => JSON.stringify(toPublicSession(stored, session?.id ?? null)));
  const { begin, between, end, empty } = LAYOUT;
  sendJson(res, items.length === 0 ? empty : `${begin}${items.join(between)}${end}`);
};

const endOthers: Handler = (deps) => async (_req, res) => {
  const caller = callerOf(res);
  const count = await endOtherSessions(deps.database, caller.userId, keptOf(caller));
  sendJson(res, JSON.stringify({ success: true, count }));
};

const endOne: Handler = (deps) => async (req, res) => {
  const { userId, session } = callerOf(res);
  const found = await listSessions(deps.database, userId, deps.now());
  const stored = found.find(({ id }) => publicId(id) === String(req.params.id).toLowerCase());
  if (stored === undefined) throw notFound();
  await endSession(deps.database, stored.id);
  if (stored.id === session?.id) deps.sessions.removeCookie(res);
  const ended = toPublicSession(stored, session?.id ?? null);
  res.locals.entityId = ended._id;
  sendEntity(res, ended);
};

/** Identifies a session without revealing its secret id. */
const publicId = (sessionId: string): string => createHash('sha256').update(sessionId).digest('hex').slice(0, 24);

function toPublicSession({ id, openedMs, expiresAtMs, address, agent }: StoredSession, ownId: string | null) {
  return { _id: publicId(id), time: openedMs, expiresAt: expiresAtMs, address, agent, current: id === ownId };
}
