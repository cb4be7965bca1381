/** OpenAPI operations of logins and of the caller's own account. */
import type { ErrorStatus } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { allOf, listOf, type Part, schemaRef } from '../platform/http/schema.js';
import type { Operation } from './operation.js';
import { LIST_PARAMETERS } from './parameters.js';

const json = (schema: Part) => ({ 'application/json': schema });
const AUTHENTICATED_ERRORS: readonly ErrorStatus[] = [401, 403, 429];
const WRITE_ERRORS: readonly ErrorStatus[] = [...AUTHENTICATED_ERRORS, 409, 413, 415];
const LOGIN_ERRORS: readonly ErrorStatus[] = [...AUTHENTICATED_ERRORS, 413, 415];
const TEXT: Part = { type: 'string' };
const MAYBE_TEXT: Part = { type: ['string', 'null'] };
const TIME: Part = { type: 'integer', description: 'Milliseconds since the epoch' };

const CURRENT: Part = {
  anyOf: [
    { type: 'object', properties: { _id: TEXT, expiresAt: TIME }, required: ['_id', 'expiresAt'] },
    { type: 'null' },
  ],
};
const ACCOUNT: Part = allOf(schemaRef('Caller'), {
  type: 'object',
  properties: { session: CURRENT, token: CURRENT },
  required: ['session', 'token'],
});

const CHANGE: Part = {
  type: 'object',
  properties: {
    name: MAYBE_TEXT,
    email: { type: ['string', 'null'], format: 'email', description: '`null` removes it' },
    password: {
      type: 'string',
      minLength: LIMITS.passwordCharactersMin,
      maxLength: LIMITS.passwordCharactersMax,
      description: 'A new password. Ends all other sessions and tokens of the user',
    },
    oldPassword: { ...TEXT, description: 'Required with `password`' },
  },
};

const SESSION: Part = {
  type: 'object',
  properties: {
    _id: { ...TEXT, description: 'Names the session; it is not the value of the cookie' },
    time: { type: ['integer', 'null'], description: 'The time of the login, in milliseconds since the epoch' },
    expiresAt: TIME,
    address: { ...MAYBE_TEXT, description: 'The address from which the session was opened' },
    agent: { ...MAYBE_TEXT, description: 'The `User-Agent` with which it was opened' },
    current: { type: 'boolean', description: 'Whether the request came with this session' },
  },
  required: ['_id', 'time', 'expiresAt', 'address', 'agent', 'current'],
  additionalProperties: false,
};
const ONE_SESSION: Part = {
  ...SESSION,
  properties: { ...(SESSION.properties as Part), success: { const: true } },
  required: [...(SESSION.required as string[]), 'success'],
};
const ENDED: Part = allOf(schemaRef('Success'), {
  type: 'object',
  properties: { count: { type: 'integer', minimum: 0 } },
  required: ['count'],
});

const login = (schema: string) => ({
  'application/json': schemaRef(schema),
  'application/x-www-form-urlencoded': schemaRef(schema),
});

export const LOGINS: readonly Operation[] = [
  {
    method: 'post',
    path: '/api/v1/auth',
    id: 'logIn',
    tag: 'auth',
    isOpen: true,
    summary: 'Opens a session',
    body: login('Login'),
    isBodyRequired: true,
    answer: { description: 'The session is open', content: json(schemaRef('LoginAnswer')) },
    headers: ['Set-Cookie'],
    errors: LOGIN_ERRORS,
  },
  {
    method: 'post',
    path: '/api/v1/auth/token',
    id: 'issueToken',
    tag: 'auth',
    isOpen: true,
    summary: 'Issues a token',
    body: login('TokenLogin'),
    isBodyRequired: true,
    answer: { description: 'The token', content: json(schemaRef('TokenAnswer')) },
    errors: LOGIN_ERRORS,
  },
  {
    method: 'get',
    path: '/api/v1/auth',
    id: 'whoAmI',
    tag: 'auth',
    summary: 'Returns the current user',
    answer: { description: 'The user, with credentials and scopes', content: json(schemaRef('Caller')) },
    errors: [401, 404, 429],
  },
  {
    method: 'delete',
    path: '/api/v1/auth',
    id: 'logOut',
    tag: 'auth',
    summary: 'Ends the session, or revokes the token, of the request',
    answer: { description: 'The session or token has ended', content: json(schemaRef('Success')) },
    headers: ['Set-Cookie'],
    errors: AUTHENTICATED_ERRORS,
  },
];

const OWN_TOKEN = allOf(schemaRef('Token'), schemaRef('Success'));
const CREATED = allOf(OWN_TOKEN, { type: 'object', properties: { token: TEXT }, required: ['token'] });
const accountPath = (path: string) => ({ path: `/api/v1/account${path}`, tag: 'account' });

export const ACCOUNT_OPERATIONS: readonly Operation[] = [
  {
    ...accountPath(''),
    method: 'get',
    id: 'getAccount',
    summary: 'Returns the current user and how the request came in',
    answer: { description: 'The user, with credentials, scopes, session and token', content: json(ACCOUNT) },
    errors: [...AUTHENTICATED_ERRORS, 404],
  },
  {
    ...accountPath(''),
    method: 'patch',
    id: 'changeAccount',
    summary: 'Changes the own name, email or password',
    body: json(CHANGE),
    answer: { description: 'The changed user', content: json(ACCOUNT) },
    errors: [...WRITE_ERRORS, 404],
  },
  {
    ...accountPath('/tokens'),
    method: 'get',
    id: 'listOwnTokens',
    summary: 'Lists the own tokens',
    query: Object.keys(LIST_PARAMETERS),
    answer: { description: 'The tokens, sorted by `_id`', content: json(listOf('TokenFields')) },
    headers: ['Link'],
    errors: [...AUTHENTICATED_ERRORS, 413],
  },
  {
    ...accountPath('/tokens'),
    method: 'post',
    id: 'createOwnToken',
    summary: 'Creates a token with the own permissions',
    body: json(schemaRef('TokenNew')),
    isBodyRequired: true,
    answer: { description: 'The token; this answer alone contains it', content: json(CREATED) },
    errors: WRITE_ERRORS,
  },
  {
    ...accountPath('/tokens/{id}'),
    method: 'delete',
    id: 'revokeOwnToken',
    summary: 'Revokes an own token',
    answer: { description: 'The revoked token', content: json(OWN_TOKEN) },
    errors: [...AUTHENTICATED_ERRORS, 404],
  },
  {
    ...accountPath('/sessions'),
    method: 'get',
    id: 'listSessions',
    summary: 'Lists the own sessions, the newest first',
    answer: { description: 'The sessions', content: json({ type: 'array', items: SESSION }) },
    errors: AUTHENTICATED_ERRORS,
  },
  {
    ...accountPath('/sessions'),
    method: 'delete',
    id: 'endOtherSessions',
    summary: 'Ends all other own sessions',
    answer: { description: 'The number of ended sessions', content: json(ENDED) },
    errors: AUTHENTICATED_ERRORS,
  },
  {
    ...accountPath('/sessions/{id}'),
    method: 'delete',
    id: 'endSession',
    summary: 'Ends one own session',
    answer: { description: 'The ended session', content: json(ONE_SESSION) },
    headers: ['Set-Cookie'],
    errors: [...AUTHENTICATED_ERRORS, 404],
  },
];
