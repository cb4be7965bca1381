/** Cookie sessions: express-session writes them at login; HTTP and sockets read the same store. */
import MongoStore from 'connect-mongo';
import { parse } from 'cookie';
import cookieParser from 'cookie-parser';
import type { RequestHandler } from 'express';
import session from 'express-session';
import type { MongoClient } from 'mongodb';
import { withTimeout } from '../db/driver/errors.js';
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';

export const SESSION_COOKIE = 'sid';

declare module 'express-session' {
  interface SessionData {
    user: string;
    /** These three help users recognize their own sessions. */
    openedMs: number;
    address: string;
    agent: string;
  }
}

/** A session that has not expired. */
export interface Session {
  readonly id: string;
  readonly userId: string;
  readonly expiresAtMs: number;
}

export interface Sessions {
  /** Only for the routes that open and end sessions; no other route may write one. */
  readonly middleware: RequestHandler;
  /** Finds the session that a `Cookie` header names. Throws 503 when the store does not answer. */
  find(cookieHeader: string): Promise<Session | null>;
}

export interface SessionOptions {
  readonly client: MongoClient;
  readonly secrets: readonly string[];
  readonly lifetimeMs: number;
  readonly now: () => number;
}

export function createSessions({ client, secrets, lifetimeMs, now }: SessionOptions): Sessions {
  // The schema creates the index of this collection: a store that fails to create its own never recovers and ends the process.
  const store = MongoStore.create({ client, collectionName: 'sessions', stringify: false, autoRemove: 'disabled' });
  // Without `touch` a session ends when its cookie expires, however much it is used.
  (store as { touch?: unknown }).touch = undefined;
  // The store emits each failure here in addition to passing it to the callback.
  store.on('error', () => undefined);
  const middleware = session({
    name: SESSION_COOKIE,
    secret: [...secrets],
    store,
    resave: false,
    saveUninitialized: false,
    rolling: false,
    // `auto`: Secure when the request came over TLS, directly or through a trusted proxy.
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
        error ? reject(unavailable('the session store is unavailable', error)) : resolve(found),
      );
    });
  return withTimeout(loaded, LIMITS.databaseAnswerMs);
}
