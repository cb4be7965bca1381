/** Identifies the caller by its headers. Independent of Express and sockets. */

import type { Caller } from '../core/access.js';
import type { Account, Accounts, TokenRecord } from './accounts.js';
import type { Sessions } from './sessions.js';
import type { Claims, Tokens } from './tokens.js';

export interface Credentials {
  readonly authorization?: string | undefined;
  readonly cookie?: string | undefined;
}

/** Null when the credentials are missing, invalid or no longer valid. Throws 503 when they cannot be checked. */
export type Identify = (credentials: Credentials) => Promise<Caller | null>;

export interface IdentifyDeps {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  /** Called at each use of a token. */
  readonly noteUse: (tokenId: string) => void;
}

/** A bearer token takes precedence over a cookie: a valid session does not make up for an invalid token. */
export function createIdentify(deps: IdentifyDeps): Identify {
  const callers: Callers = new WeakMap();
  return async ({ authorization, cookie }) => {
    if (authorization !== undefined && authorization !== '') return fromToken(deps, callers, authorization);
    if (cookie !== undefined && cookie !== '') return fromCookie(deps, cookie);
    return null;
  };
}

/** The caller of each verified token, with the records it was built from. */
type Callers = WeakMap<Claims, { readonly record: TokenRecord; readonly account: Account; readonly caller: Caller }>;

async function fromToken(deps: IdentifyDeps, callers: Callers, authorization: string): Promise<Caller | null> {
  // Some clients send the bare token.
  const claims = deps.tokens.verify(authorization.replace(/^bearer\s+/i, '').trim());
  if (claims === null) return null;
  const record = await deps.accounts.findToken(claims.tokenId);
  // A share link has routes of its own.
  if (record === null || record.userId !== claims.userId || record.link !== null) return null;
  const account = await deps.accounts.findAccount(claims.userId);
  if (account === null) return null;
  deps.noteUse(claims.tokenId);
  // The cached caller is valid while both records are unchanged.
  const known = callers.get(claims);
  if (known?.record === record && known.account === account) return known.caller;
  const token = { id: claims.tokenId, expiresAtMs: claims.expiresAtMs };
  const caller = { ...account, scopes: record.scopes, scopeObjects: record.scopeObjects, session: null, token };
  callers.set(claims, { record, account, caller });
  return caller;
}

async function fromCookie(deps: { accounts: Accounts; sessions: Sessions }, cookie: string): Promise<Caller | null> {
  const session = await deps.sessions.find(cookie);
  if (session === null) return null;
  const account = await deps.accounts.findAccount(session.userId);
  if (account === null) return null;
  return { ...account, scopes: null, session: { id: session.id, expiresAtMs: session.expiresAtMs }, token: null };
}
