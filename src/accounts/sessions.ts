/** Cookie sessions: express-session writes them at login; HTTP and sockets read the same store. */
import MongoStore from 'connect-mongo';
import { parse } from 'cookie';
import cookieParser from 'cookie-parser';
import type { Request, RequestHandler, Response } from 'express';
import session, { type SessionData } from 'express-session';
import type { MongoClient } from 'mongodb';
import { unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { withTimeout } from '../platform/mongo/driver/errors.js';

export const SESSION_COOKIE = 'sid';
const STORE_AWAY = 'the session store is not available';

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
  /**
   * Opens a session by a new id, and stores it. The cookie is sent with the answer, unless `isValid`, which is asked when the
   * session is stored, says no: then this resolves to false, and there is no session. Throws 503 when the store does not answer.
   */
  open(req: Request, data: Partial<SessionData>, isValid: () => Promise<boolean>): Promise<boolean>;
  removeCookie(res: Response): void;
  /** Finds the session that a `Cookie` header names. Throws 503 when the store does not answer. */
  find(cookieHeader: string): Promise<Session | null>;
}

export interface SessionOptions {
  readonly client: MongoClient;
  readonly secrets: readonly string[];
  readonly lifetimeMs: number;
  readonly cookiePath: string;
  readonly now: () => number;
}

export function createSessions({ client, secrets, lifetimeMs, cookiePath, now }: SessionOptions): Sessions {
  // The schema creates the index of this collection: a store that fails to create its own never recovers and ends the process.
  const store = MongoStore.create({ client, collectionName: 'sessions', stringify: false, autoRemove: 'disabled' });
  // Without `touch` a session ends when its cookie expires, however much it is used.
  (store as { touch?: unknown }).touch = undefined;
  // The store emits each failure here in addition to passing it to the callback.
  store.on('error', () => undefined);
  const readSession = session({
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
    middleware(req, res, next) {
      toPromise((done) => readSession(req, res, done)).then(() => next(), next);
    },
    open: (req, data, isValid) => openSession(req, { data, cookiePath }, isValid),
    removeCookie: (res) => void res.clearCookie(SESSION_COOKIE, { path: cookiePath, httpOnly: true, sameSite: 'lax' }),
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

async function openSession(
  req: Request,
  { data, cookiePath }: { data: Partial<SessionData>; cookiePath: string },
  isValid: () => Promise<boolean>,
): Promise<boolean> {
  let isOpen = false;
  try {
    await toPromise((done) => req.session.regenerate(done));
    // express-session moves the end of a session, and stores it again, when the answer ends. That would bring back a session
    // that a new password has ended meanwhile.
    Object.defineProperty(req.session, 'touch', { value: () => req.session });
    Object.assign(req.session, data);
    // Not in the options above: express-session compares them with the address of the request, which has no base path any more.
    req.session.cookie.path = cookiePath;
    // A cookie says when it ends in whole seconds.
    const endMs = req.session.cookie.expires?.getTime() ?? 0;
    req.session.cookie.expires = new Date(endMs - (endMs % 1_000));
    await toPromise((done) => req.session.save(done));
    Object.defineProperty(req.session, 'save', { value: (done?: () => void) => done?.() });
    isOpen = await isValid();
  } finally {
    if (!isOpen) req.session?.destroy(() => undefined);
  }
  return isOpen;
}

function toPromise(start: (done: (error?: unknown) => void) => void): Promise<void> {
  const run = () =>
    new Promise<void>((resolve, reject) => {
      start((error) => (error ? reject(unavailable(STORE_AWAY, error)) : resolve()));
    });
  return withTimeout(run, LIMITS.databaseAnswerMs);
}

function load(store: session.Store, id: string): Promise<session.SessionData | null | undefined> {
  const loaded = () =>
    new Promise<session.SessionData | null | undefined>((resolve, reject) => {
      store.get(id, (error, found) => (error ? reject(unavailable(STORE_AWAY, error)) : resolve(found)));
    });
  return withTimeout(loaded, LIMITS.databaseAnswerMs);
}
