/** Routes: the caller's own account, its tokens and its sessions. Every role may use them, within the scopes of a token. */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { type Caller, scopeOf } from '../core/access.js';
import { parseNewEntity, parsePatch } from '../core/entity.js';
import { badRequest, conflict, notFound } from '../core/errors.js';
import { type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { CHANNEL, CHANNEL_KINDS, OWN_CHANNEL } from '../core/notification.js';
import { SEVERITIES } from '../core/rule/severity.js';
import { builtInStore } from '../core/stores.js';
import { inSequence } from '../entities/in-sequence.js';
import { getEntity } from '../entities/read.js';
import { CREATED_TOKEN, type EntityDeps } from '../entities/routes.js';
import { changeEntity, removeEntity } from '../entities/write.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { listDatabaseFor } from '../platform/http/list-caller.js';
import { LIST_QUERY, parseListQuery } from '../platform/http/list-params.js';
import { ENTITY_KEY } from '../platform/http/parameters.js';
import { sendEntity, sendJson, sendPage } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { COUNT, entityOf, every, named, pageOf, SUCCESS, TIME } from '../platform/http/schema.js';
import { LAYOUT } from '../platform/mongo/bson/raw-cursor.js';
import { endSession } from './accounts.js';
import { type AuthDeps, CALLER } from './auth-routes.js';
import {
  endConfirmations,
  findNotificationSettings,
  type OwnChannels,
  readNotificationSettings,
} from './notification-settings.js';
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

export interface AccountDeps extends AuthDeps, EntityDeps {
  readonly channels: OwnChannels;
}

const USERS = builtInStore('users');
const TOKENS = builtInStore('tokens');
const OWN_FIELDS = ['name', 'email', 'password'];

const MAYBE_TEXT = z.string().nullable();
const CURRENT = z.union([z.object({ _id: z.string(), expiresAt: TIME }), z.null()]);
const QUIET = z
  .object({ from: z.string(), to: z.string(), tz: z.string().optional() })
  .describe(
    'The hours in which messages below `critical` wait, such as `{"from": "22:00", "to": "06:00", "tz": "Europe/Berlin"}`',
  );
const ACCOUNT = every(
  CALLER,
  z.object({
    session: CURRENT,
    token: CURRENT,
    channels: z.array(OWN_CHANNEL).describe('Over what the user is notified'),
    channelKinds: z.array(z.enum(CHANNEL_KINDS)).describe('What the operator has set up'),
    pushKey: z.string().describe('What browsers subscribe with: the `applicationServerKey` of their `PushManager`'),
    quiet: QUIET.nullable(),
    minSeverity: z.enum(SEVERITIES).describe('The least severity of which the user is notified'),
  }),
);

const CHANGE = z
  .object({
    name: MAYBE_TEXT,
    email: z.string().meta({ format: 'email' }).nullable().describe('`null` removes it'),
    password: z
      .string()
      .min(LIMITS.passwordCharactersMin)
      .max(LIMITS.passwordCharactersMax)
      .describe('A new password. Ends all other sessions and tokens of the user'),
    oldPassword: z.string().describe('Required with `password`'),
    channels: z.array(CHANNEL).max(LIMITS.channelsPerUser).nullable(),
    quiet: QUIET.nullable(),
    minSeverity: z.enum(SEVERITIES).nullable(),
  })
  .partial();

const SESSION = z.strictObject({
  _id: z.string().describe('Names the session; it is not the value of the cookie'),
  time: z.int().nullable().describe('The time of the login, in milliseconds since the epoch'),
  expiresAt: TIME,
  address: MAYBE_TEXT.describe('The address from which the session was opened'),
  agent: MAYBE_TEXT.describe('The `User-Agent` with which it was opened'),
  current: z.boolean().describe('Whether the request came with this session'),
});

const getAccount = defineRoute({
  method: 'GET',
  path: '/api/v1/account',
  name: 'getAccount',
  tag: 'account',
  summary: 'Returns the current user and how the request came in',
  docs: 'Returns the current user, with `credentials`, `scopes`, and the `session` or `token` of the request',
  auth: 'caller',
  limit: 'request',
  answer: { description: 'The user, with credentials, scopes, session and token', schema: ACCOUNT },
  errors: [403, 404],
  handle: (deps: AccountDeps) => async (_req, res) => sendAccount(deps, res),
});

const changeAccount = defineRoute({
  method: 'PATCH',
  path: '/api/v1/account',
  name: 'changeAccount',
  tag: 'account',
  summary: 'Changes the own name, email, password, or how the user is notified',
  docs: 'Changes the own `name`, `email`, `password` (see [own account](permissions.md#own-account)), `channels`, `quiet` or `minSeverity` (see [notifications](notifications.md#channels))',
  auth: 'caller',
  limit: 'request',
  body: { schema: CHANGE, example: { name: 'Ada' }, limitBytes: LIMITS.accountBodyBytes },
  answer: { description: 'The changed user', schema: ACCOUNT },
  errors: [403, 404, 409],
  handle: (deps: AccountDeps) => async (req, res) => {
    const caller = callerOf(res);
    const body = parseObject(req.body ?? {});
    const given = Object.fromEntries(Object.entries(body).filter(([name]) => OWN_FIELDS.includes(name)));
    const { password, ...fields } = parsePatch(USERS, given);
    const settings = await readNotificationSettings(deps, caller, body);
    const changed = Object.keys(settings).filter((name) => name !== '_confirmed');
    res.locals.fields = [...Object.keys(given), ...changed.map((name) => name.slice(1))];
    const secret = password === undefined ? null : await readNewPassword(deps, req, res, password as string);
    const patch: JsonObject = { ...fields, ...settings, ...(secret !== null && { _password: secret.hash }) };
    const onlyIf = secret?.onlyIf;
    await changeEntity(deps.database, USERS, scopeOf(caller), caller.userId, { patch, nowMs: deps.now(), onlyIf });
    if (settings._channels !== undefined) await endConfirmations(deps, caller.userId, settings._channels);
    deps.invalidate('users', caller.userId);
    res.locals.entityId = caller.userId;
    if (secret !== null) {
      const revoked = await endOtherAccess(deps.database, caller.userId, keptOf(caller));
      for (const id of revoked) deps.invalidate('tokens', id);
    }
    await sendAccount(deps, res);
  },
});

const listTokens = defineRoute({
  method: 'GET',
  path: '/api/v1/account/tokens',
  name: 'listOwnTokens',
  tag: 'account',
  summary: 'Lists the own tokens',
  docs: 'The own tokens; accepts [list parameters](#list-parameters)',
  auth: 'caller',
  limit: 'list',
  query: LIST_QUERY,
  answer: {
    description: 'The tokens, sorted by `_id`',
    schema: pageOf(named('TokenFields')),
    headers: ['Link'],
  },
  errors: [403, 413],
  handle: (deps: AccountDeps) => async (req, res) => {
    const query = parseListQuery(req.query);
    const found = await listOwnTokens(listDatabaseFor(deps, req, res), scopeIn(res), query);
    if (query.kind === 'page' && !Buffer.isBuffer(found)) sendPage(req, res, query, found);
    else sendJson(res, found as Buffer);
  },
});

const createToken = defineRoute({
  method: 'POST',
  path: '/api/v1/account/tokens',
  name: 'createOwnToken',
  tag: 'account',
  summary: 'Creates a token with the own permissions',
  docs: 'Creates a token for the caller: `{name, expiresIn, scopes}`. Only this answer contains the `token`',
  auth: 'caller',
  limit: 'request',
  body: {
    schema: named('TokenNew'),
    example: { name: 'Dashboard', expiresIn: '90 days', scopes: ['GET /*'] },
    isRequired: true,
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: {
    description: 'The token; this answer alone contains it',
    schema: CREATED_TOKEN,
  },
  errors: [403, 409],
  handle: (deps: AccountDeps) => async (req, res) => {
    const caller = callerOf(res);
    const requested = parseNewEntity(TOKENS, req.body ?? {}, true);
    const created = await inSequence(`tokens of ${caller.userId}`, async () => {
      if (await hasTooManyTokens(deps.database, caller.userId))
        throw conflict(`at most ${LIMITS.tokensPerUser} tokens: revoke one first`);
      return deps.hooks.get('tokens')?.create?.(caller, requested);
    });
    if (created === undefined) throw new Error('the store tokens has no create hook');
    res.locals.entityId = created._id;
    sendEntity(res, created);
  },
});

const revokeToken = defineRoute({
  method: 'DELETE',
  path: '/api/v1/account/tokens/:id',
  name: 'revokeOwnToken',
  tag: 'account',
  summary: 'Revokes an own token',
  auth: 'caller',
  limit: 'request',
  params: { id: ENTITY_KEY },
  answer: { description: 'The revoked token', schema: entityOf('Token') },
  errors: [403, 404],
  handle: (deps: AccountDeps) => async (req, res) => {
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
  },
});

const listOwnSessions = defineRoute({
  method: 'GET',
  path: '/api/v1/account/sessions',
  name: 'listSessions',
  tag: 'account',
  summary: 'Lists the own sessions, the newest first',
  docs: 'The own sessions: `_id`, `time`, `expiresAt`, `address`, `agent` and `current`',
  auth: 'caller',
  limit: 'list',
  answer: { description: 'The sessions', schema: z.array(SESSION) },
  errors: [403],
  handle: (deps: AccountDeps) => async (_req, res) => {
    const { userId, session } = callerOf(res);
    const found = await listSessions(deps.database, userId, deps.now());
    const items = found.map((stored) => JSON.stringify(toPublicSession(stored, session?.id ?? null)));
    const { begin, between, end, empty } = LAYOUT;
    sendJson(res, items.length === 0 ? empty : `${begin}${items.join(between)}${end}`);
  },
});

const endOthers = defineRoute({
  method: 'DELETE',
  path: '/api/v1/account/sessions',
  name: 'endOtherSessions',
  tag: 'account',
  summary: 'Ends all other own sessions',
  docs: 'Ends all own sessions except the one of the request: `{success, count}`',
  auth: 'caller',
  limit: 'request',
  answer: { description: 'The number of ended sessions', schema: every(SUCCESS, z.object({ count: COUNT })) },
  errors: [403],
  handle: (deps: AccountDeps) => async (_req, res) => {
    const caller = callerOf(res);
    const count = await endOtherSessions(deps.database, caller.userId, keptOf(caller));
    sendJson(res, JSON.stringify({ success: true, count }));
  },
});

const endOne = defineRoute({
  method: 'DELETE',
  path: '/api/v1/account/sessions/:id',
  name: 'endSession',
  tag: 'account',
  summary: 'Ends one own session',
  auth: 'caller',
  limit: 'request',
  params: { id: ENTITY_KEY },
  answer: {
    description: 'The ended session',
    schema: SESSION.extend({ success: z.literal(true) }),
    headers: ['Set-Cookie'],
  },
  errors: [403, 404],
  handle: (deps: AccountDeps) => async (req, res) => {
    const { userId, session } = callerOf(res);
    const found = await listSessions(deps.database, userId, deps.now());
    const stored = found.find(({ id }) => publicId(id) === String(req.params.id).toLowerCase());
    if (stored === undefined) throw notFound();
    await endSession(deps.database, stored.id);
    if (stored.id === session?.id) deps.sessions.removeCookie(res);
    const ended = toPublicSession(stored, session?.id ?? null);
    res.locals.entityId = ended._id;
    sendEntity(res, ended);
  },
});

export const ACCOUNT_ROUTES = [
  getAccount,
  changeAccount,
  listTokens,
  createToken,
  revokeToken,
  listOwnSessions,
  endOthers,
  endOne,
];

async function sendAccount(deps: AccountDeps, res: Response): Promise<void> {
  const { userId, credentials, scopes, session, token } = callerOf(res);
  const user = await getEntity(deps.database, USERS, scopeIn(res), userId);
  sendEntity(res, {
    ...user,
    credentials: [...credentials],
    scopes: scopes === null ? null : [...scopes],
    session: session === null ? null : { _id: publicId(session.id), expiresAt: session.expiresAtMs },
    token: token === null ? null : { _id: token.id, expiresAt: token.expiresAtMs },
    ...(await findNotificationSettings(deps, userId)),
  });
}

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

/** Identifies a session without revealing its secret id. */
const publicId = (sessionId: string): string => createHash('sha256').update(sessionId).digest('hex').slice(0, 24);

function toPublicSession({ id, openedMs, expiresAtMs, address, agent }: StoredSession, ownId: string | null) {
  return { _id: publicId(id), time: openedMs, expiresAt: expiresAtMs, address, agent, current: id === ownId };
}
