/** Where the token of a request comes from: given, asked for, or issued for a login and renewed before it expires. */

/** Who the client is. Without any of it a browser's session cookie counts. */
export interface Credentials {
  /** A token, or what gives the current one: it is asked before every request and after a 401. */
  readonly token?: string | (() => string | null | Promise<string | null>) | undefined;
  /** Tokens are issued for this login, and renewed. */
  readonly login?: { readonly login: string; readonly password: string } | undefined;
}

export interface TokenSource {
  /** The token of the next request; null for none. */
  current(): Promise<string | null>;
  /** After a 401: whether there is another token than the refused one. */
  renew(refused: string | null): Promise<boolean>;
}

export interface Issued {
  readonly token: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
}

const RENEW_AFTER_SHARE = 0.9;

/** `issue` logs in; it is called once at a time. */
export function createTokenSource({ token, login }: Credentials, issue: () => Promise<Issued>): TokenSource {
  if (login !== undefined) return createIssuedTokens(issue);
  const read = async (): Promise<string | null> => (typeof token === 'function' ? token() : (token ?? null));
  return { current: read, renew: async (refused) => typeof token === 'function' && (await read()) !== refused };
}

function createIssuedTokens(issue: () => Promise<Issued>): TokenSource {
  let current: string | null = null;
  let renewAtMs = 0;
  let issuing: Promise<string> | null = null;
  const issueOnce = (): Promise<string> => {
    issuing ??= issue()
      .then(({ token, issuedAt, expiresAt }) => {
        // By the clock of the service: ours may be wrong.
        renewAtMs = Date.now() + (expiresAt - issuedAt) * RENEW_AFTER_SHARE;
        current = token;
        return token;
      })
      .finally(() => {
        issuing = null;
      });
    return issuing;
  };
  return {
    async current() {
      if (current === null) return issueOnce();
      // The old token is still good for a while.
      return Date.now() < renewAtMs ? current : issueOnce().catch(() => current);
    },
    async renew(refused) {
      return current !== refused || (await issueOnce()) !== refused;
    },
  };
}
