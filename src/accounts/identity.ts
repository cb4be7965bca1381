/** Composes authentication: sessions, tokens, and `identify`, which reads both. */

import type { Database } from '../platform/mongo/driver/client.js';
import { type Accounts, createUseNotes } from './accounts.js';
import { createIdentify } from './identify.js';
import { createSessions } from './sessions.js';
import { createTokens } from './tokens.js';

export type Identity = ReturnType<typeof createIdentity>;

export function createIdentity(deps: {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly secrets: readonly string[];
  readonly lifetimeMs: number;
  /** Browsers send the cookie only below it: `/vigil`, or empty. */
  readonly basePath: string;
  readonly now: () => number;
}) {
  const { database, accounts, secrets, lifetimeMs, basePath, now } = deps;
  const sessions = createSessions({ client: database.client, secrets, lifetimeMs, cookiePath: basePath || '/', now });
  const tokens = createTokens(secrets, now);
  const identify = createIdentify({ accounts, sessions, tokens, noteUse: createUseNotes(database, 'tokens', now) });
  return { sessions, tokens, identify };
}
