/** The events door: a Socket.IO server that admits callers, puts their sockets in rooms, and tells those rooms. */
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { Server, type Socket } from 'socket.io';
import type { Identify, Proof } from '../auth/identify.js';
import { isTrustedOrigin } from '../auth/origin.js';
import { toApiError } from '../errors.js';
import { addressesOf, audibleObjects, type Caller, type Scope, scopeOf } from '../model/access.js';
import type { Change } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { guardConnections } from './connections.js';
import type { LiveEvent } from './events.js';
import { EVERYTHING, type Narrowing, narrow, readNarrowing, roomsFor, roomsOf } from './rooms.js';

export interface HubOptions {
  readonly identify: Identify;
  readonly corsOrigins: readonly string[];
  /** The `_id`s of those of these objects (by `_id` or own id) that the scope sees. */
  readonly findObjects: (scope: Scope, keys: readonly string[]) => Promise<string[]>;
  readonly log: Logger;
  readonly now: () => number;
}

export interface Hub {
  /** Sends events, in order, each to the sockets of those who may hear it. */
  tell(events: readonly LiveEvent[]): void;
  /** Acts on a change of what lets sockets in: sessions, tokens, users, roles. What is told after it obeys it. */
  apply(change: Change): Promise<void>;
  /** Ends every socket, so that clients come back and read anew what they missed. */
  disconnectAll(): void;
  stop(): Promise<void>;
}

interface SocketData {
  proof: Proof;
  caller: Caller;
  narrowing: Narrowing;
  expiry: NodeJS.Timeout | undefined;
  /** The end of what is being done to the socket's rooms. */
  turn: Promise<unknown>;
}
type LiveSocket = Socket<
  Record<string, (...args: unknown[]) => void>,
  Record<string, (...args: unknown[]) => void>,
  object,
  SocketData
>;

/** The stores that say who is let in. */
const ADMITTING: ReadonlySet<string> = new Set(['sessions', 'tokens', 'users', 'roles']);

export function createHub(httpServer: HttpServer, options: HubOptions): Hub {
  const io = createServer(httpServer, options);
  const unguard = guardConnections(io);
  let news = 0;
  const admittedAt = new WeakMap<LiveSocket, number>();
  io.use((socket: LiveSocket, next) => {
    admittedAt.set(socket, news);
    admit(options, socket).then(
      () => next(),
      (error) => next(error as Error),
    );
  });
  io.on('connection', (socket: LiveSocket) => {
    welcome(options, socket);
    // What changed while it was let in did not find it yet.
    if (admittedAt.get(socket) !== news) void recheck(options, socket);
  });
  const socketsOf = (isMeant: (caller: Caller) => boolean): LiveSocket[] =>
    ([...io.of('/').sockets.values()] as LiveSocket[]).filter((socket) => isMeant(socket.data.caller));
  return {
    tell(events) {
      for (const event of events) {
        const rooms = roomsFor(event);
        // To Socket.IO, no room would mean everyone.
        if (rooms.length > 0) io.to(rooms).emit(event.name, event.payload, { position: event.position });
      }
    },
    async apply({ store, kind, id }) {
      if (kind === 'created') return;
      if (ADMITTING.has(store)) news++;
      if (store === 'sessions' && kind === 'removed') end(socketsOf(({ session }) => session?.id === id));
      if (store === 'tokens' && kind === 'removed') end(socketsOf(({ token }) => token?.id === id));
      const isTouched =
        (store === 'users' && (({ userId }: Caller) => userId === id)) ||
        (store === 'roles' && (({ roleId }: Caller) => roleId === id));
      if (isTouched) await Promise.all(socketsOf(isTouched).map((socket) => recheck(options, socket)));
    },
    disconnectAll: () => end(socketsOf(() => true)),
    async stop() {
      unguard();
      await io.close();
    },
  };
}

function createServer(httpServer: HttpServer, { corsOrigins }: HubOptions): Server {
  const allow = (req: IncomingMessage, decide: (error: string | null | undefined, allowed: boolean) => void): void => {
    // CORS does not hold for WebSockets: a page of a foreign origin is refused here.
    const full = io.engine.clientsCount >= LIMITS.socketsPerProcess;
    decide(null, !full && isTrustedOrigin(req.headers, corsOrigins));
  };
  const io = new Server(httpServer, {
    path: '/socket.io/',
    serveClient: false,
    // interface, "WebSocket endpoint": EIO=3; newer clients and long polling work as well.
    allowEIO3: true,
    // interface, "Limits": 25 s between pings, 60 s for the answer.
    pingInterval: LIMITS.pingIntervalMs,
    pingTimeout: LIMITS.pingTimeoutMs,
    maxHttpBufferSize: LIMITS.inboundFrameBytes,
    perMessageDeflate: false,
    httpCompression: false,
    cors: { origin: [...corsOrigins], credentials: true },
    allowRequest: allow,
  });
  writeAscii(io);
  return io;
}

/** Clients of the first generation cannot read other characters over long polling; as JSON escapes everyone reads them. */
function writeAscii({ encoder }: Server): void {
  const encode = encoder.encode.bind(encoder);
  const toEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  encoder.encode = (packet) =>
    encode(packet).map((part) => (typeof part === 'string' ? part.replace(/[\u0080-\uffff]/g, toEscape) : part));
}

/** Who the socket is: by the headers of its handshake, or by the token that newer clients send as `auth`. */
async function admit(options: HubOptions, socket: LiveSocket): Promise<void> {
  const { headers, auth } = socket.handshake;
  const token = typeof auth?.token === 'string' ? `Bearer ${auth.token}` : undefined;
  const proof = { authorization: headers.authorization ?? token, cookie: headers.cookie };
  const caller = await options.identify(proof).catch((error: unknown) => {
    options.log.warn({ err: error }, 'a socket could not be identified');
    throw new Error(toApiError(error).status === 503 ? 'Service Unavailable' : 'Internal Server Error');
  });
  if (caller === null) throw new Error('Unauthorized');
  socket.data = { proof, caller, narrowing: EVERYTHING, expiry: undefined, turn: Promise.resolve() };
  await enter(options, socket, EVERYTHING);
}

function welcome(options: HubOptions, socket: LiveSocket): void {
  const { userId } = socket.data.caller;
  options.log.info({ socket: socket.id, user: userId, protocol: socket.conn.protocol }, 'socket connected');
  expireIn(options, socket);
  socket.on('subscribe', (...args: unknown[]) => void subscribe(options, socket, args));
  socket.on('disconnect', (reason: unknown) => {
    clearTimeout(socket.data.expiry);
    options.log.info({ socket: socket.id, user: userId, reason }, 'socket disconnected');
  });
}

/** Narrows what a socket hears; the acknowledgement says which objects it got, or what was wrong. */
async function subscribe(options: HubOptions, socket: LiveSocket, args: unknown[]): Promise<void> {
  const acknowledge = args.at(-1);
  const answer = typeof acknowledge === 'function' ? (acknowledge as (result: object) => void) : () => undefined;
  try {
    const wanted = readNarrowing(args[0]);
    const narrowing = await inTurn(socket, () => enter(options, socket, wanted));
    answer({ success: true, ...(narrowing.objects && { objects: narrowing.objects }) });
  } catch (error) {
    const { status, message } = toApiError(error);
    answer({ success: false, code: String(status), message });
  }
}

/** Puts the socket in the rooms of what it may hear and wants to; the rooms change in one turn. */
async function enter(options: HubOptions, socket: LiveSocket, wanted: Narrowing): Promise<Narrowing> {
  const { caller } = socket.data;
  const scope = scopeOf(caller);
  const resolve = (keys: readonly string[] | null) => keys && options.findObjects(scope, keys);
  const audible = audibleObjects(caller);
  const permitted = await resolve(audible === 'all' ? null : audible);
  const narrowing = narrow({ objects: await resolve(wanted.objects), events: wanted.events }, permitted);
  const rooms = new Set([socket.id, ...roomsOf(addressesOf(scope), narrowing)]);
  for (const room of socket.rooms) if (!rooms.has(room)) void socket.leave(room);
  void socket.join([...rooms]);
  socket.data.narrowing = wanted;
  return narrowing;
}

/** One after the other: rooms of the rights of before must not come over those of now. */
function inTurn<T>(socket: LiveSocket, work: () => Promise<T>): Promise<T> {
  const done = socket.data.turn.then(work);
  socket.data.turn = done.catch(() => undefined);
  return done;
}

/** After a change of the user or the role: other rights, other rooms; or none, and the socket ends. */
async function recheck(options: HubOptions, socket: LiveSocket): Promise<void> {
  try {
    await inTurn(socket, async () => {
      const caller = await options.identify(socket.data.proof);
      if (caller === null) {
        end([socket]);
        return;
      }
      socket.data.caller = caller;
      await enter(options, socket, socket.data.narrowing);
    });
  } catch (error) {
    // What cannot be told now is asked anew when the client comes back.
    options.log.warn({ err: error, socket: socket.id }, 'a socket could not be rechecked');
    end([socket]);
  }
}

/** A socket ends with the session or the token that opened it. */
function expireIn(options: HubOptions, socket: LiveSocket): void {
  const { session, token } = socket.data.caller;
  const leftMs = (session ?? token ?? { expiresAtMs: Number.POSITIVE_INFINITY }).expiresAtMs - options.now();
  if (leftMs <= 0) {
    end([socket]);
    return;
  }
  const stepMs = Math.min(leftMs, LIMITS.timerMs);
  socket.data.expiry = setTimeout(() => expireIn(options, socket), stepMs).unref();
}

function end(sockets: readonly LiveSocket[]): void {
  for (const socket of sockets) socket.disconnect(true);
}
