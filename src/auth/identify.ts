/** Who asks: headers become a Caller, or nobody. Knows neither Express nor sockets. */
import type { Account, Accounts, TokenRecord } from '../db/accounts.js';
import type { Caller } from '../model/access.js';
import type { Sessions } from './sessions.js';
import type { Claims, Tokens } from './tokens.js';

export interface Proof {
  readonly authorization?: string | undefined;
  readonly cookie?: string | undefined;
}

/** Null for nobody: no proof, or one that is not (or no longer) good. Throws 503 when that cannot be told. */
export type Identify = (proof: Proof) => Promise<Caller | null>;

export interface IdentifyParts {
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  /** Told of each use of a token. */
  readonly noteUse: (tokenId: string) => void;
}

/** A bearer token goes before a cookie: a bad one is not made good by a session. */
export function createIdentify(parts: IdentifyParts): Identify {
  const callers: Callers = new WeakMap();
  return async ({ authorization, cookie }) => {
    if (authorization !== undefined && authorization !== '') return fromToken(parts, callers, authorization);
    if (cookie !== undefined && cookie !== '') return fromCookie(parts, cookie);
    return null;
  };
}

/** Who came with a token before, and what that was made of. */
type Callers = WeakMap<Claims, { readonly record: TokenRecord; readonly account: Account; readonly caller: Caller }>;

async function fromToken(parts: IdentifyParts, callers: Callers, authorization: string): Promise<Caller | null> {
  // Some clients send the bare token.
  const claims = parts.tokens.verify(authorization.replace(/^bearer\s+/i, '').trim());
  if (claims === null) return null;
  const record = await parts.accounts.findToken(claims.tokenId);
  if (record === null || record.userId !== claims.userId) return null;
  const account = await parts.accounts.findAccount(claims.userId);
  if (account === null) return null;
  parts.noteUse(claims.tokenId);
  // The same as long as all it is made of is the same.
  const known = callers.get(claims);
  if (known?.record === record && known.account === account) return known.caller;
  const token = { id: claims.tokenId, expiresAtMs: claims.expiresAtMs };
  const caller = { ...account, scopes: record.scopes, session: null, token };
  callers.set(claims, { record, account, caller });
  return caller;
}

async function fromCookie(parts: { accounts: Accounts; sessions: Sessions }, cookie: string): Promise<Caller | null> {
  const session = await parts.sessions.find(cookie);
  if (session === null) return null;
  const account = await parts.accounts.findAccount(session.userId);
  if (account === null) return null;
  return { ...account, scopes: null, session: { id: session.id, expiresAtMs: session.expiresAtMs }, token: null };
}
