/** How callers prove who they are, put together: sessions, tokens, and what reads both. */
import { type Accounts, createUseNotes } from '../db/accounts.js';
import type { Database } from '../db/connect.js';
import { createIdentify } from './identify.js';
import { createSessions } from './sessions.js';
import { createTokens } from './tokens.js';

export type Identity = ReturnType<typeof createIdentity>;

export function createIdentity(parts: {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly secrets: readonly string[];
  readonly lifetimeMs: number;
  readonly now: () => number;
}) {
  const { database, accounts, secrets, lifetimeMs, now } = parts;
  const sessions = createSessions({ client: database.client, secrets, lifetimeMs, now });
  const tokens = createTokens(secrets, now);
  const identify = createIdentify({ accounts, sessions, tokens, noteUse: createUseNotes(database, now) });
  return { sessions, tokens, identify };
}
