/** Cookie sessions: express-session writes them at login, and everyone (HTTP and sockets) reads the same store. */
import MongoStore from 'connect-mongo';
import { parse } from 'cookie';
import cookieParser from 'cookie-parser';
import type { RequestHandler } from 'express';
import session from 'express-session';
import type { MongoClient } from 'mongodb';
import { withinTime } from '../db/documents.js';
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';

export const SESSION_COOKIE = 'sid';

declare module 'express-session' {
  interface SessionData {
    user: string;
  }
}

/** A session in force: whose it is, and when it ends (ms since the epoch). */
export interface Session {
  readonly id: string;
  readonly userId: string;
  readonly expiresAtMs: number;
}

export interface Sessions {
  /** For the routes that open and end sessions; no other route may write one. */
  readonly middleware: RequestHandler;
  /** The session that a `Cookie` header names, or null. Throws 503 when the store cannot tell. */
  find(cookieHeader: string): Promise<Session | null>;
}

export interface SessionOptions {
  readonly client: MongoClient;
  readonly secrets: readonly string[];
  readonly lifetimeMs: number;
  readonly now: () => number;
}

export function createSessions({ client, secrets, lifetimeMs, now }: SessionOptions): Sessions {
  // Its index is made with all others: a store that makes one itself never works again when it cannot, and ends the process.
  const store = MongoStore.create({ client, collectionName: 'sessions', stringify: false, autoRemove: 'disabled' });
  // Without `touch` a session ends when its cookie says so, however much it is used.
  (store as { touch?: unknown }).touch = undefined;
  // The store tells of failures here as well as where they are answered.
  store.on('error', () => undefined);
  const middleware = session({
    name: SESSION_COOKIE,
    secret: [...secrets],
    store,
    resave: false,
    saveUninitialized: false,
    rolling: false,
    // `auto`: Secure wherever the request came over TLS, also behind a proxy that is trusted.
    cookie: { path: '/', httpOnly: true, sameSite: 'lax', secure: 'auto', maxAge: lifetimeMs },
  });
  return {
    middleware,
    async find(cookieHeader) {
      const signed = parse(cookieHeader)[SESSION_COOKIE];
      const id = signed === undefined ? false : cookieParser.signedCookie(signed, [...secrets]);
      if (typeof id !== 'string' || id === signed) return null;
      const found = await load(store, id);
      if (typeof found?.user !== 'string' || found.cookie.expires == null) return null;
      const expiresAtMs = new Date(found.cookie.expires).getTime();
      return expiresAtMs > now() ? { id, userId: found.user, expiresAtMs } : null;
    },
  };
}

function load(store: session.Store, id: string): Promise<session.SessionData | null | undefined> {
  const loaded = () =>
    new Promise<session.SessionData | null | undefined>((resolve, reject) => {
      store.get(id, (error, found) =>
        error ? reject(unavailable('the session store is away', error)) : resolve(found),
      );
    });
  return withinTime(loaded, LIMITS.databaseAnswerMs);
}
