/** The events door: a Socket.IO server that admits callers, puts their sockets in rooms, and tells those rooms. */
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import { Server } from 'socket.io';
import { isTrustedOrigin } from '../auth/origin.js';
import type { Caller } from '../model/access.js';
import type { Change } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { type CatchUpOptions, createCatchUp } from './catchup.js';
import { guardConnections } from './connections.js';
import type { LiveEvent } from './events.js';
import { roomsFor } from './rooms.js';
import { admit, end, type LiveSocket, recheck, type SocketOptions, toReturning, welcome } from './sockets.js';

export interface HubOptions extends SocketOptions {
  readonly corsOrigins: readonly string[];
  readonly openHistory: CatchUpOptions['openHistory'];
  readonly findReaders: CatchUpOptions['findReaders'];
}

export interface Hub {
  /** Where the sequence of changes begins: nothing before is told to anyone but those who come back. */
  begin(position: string): void;
  /** Sends the events of the change at this position, each to the sockets of those who may hear it. */
  tell(events: readonly LiveEvent[], position: string): void;
  /** Acts on a change of what lets sockets in: sessions, tokens, users, roles. What is told after it obeys it. */
  apply(change: Change): Promise<void>;
  /** Ends every socket, so that clients come back and read anew what they missed. */
  disconnectAll(): void;
  stop(): Promise<void>;
}

/** The stores that say who is let in. */
const ADMITTING: ReadonlySet<string> = new Set(['sessions', 'tokens', 'users', 'roles']);

export function createHub(httpServer: HttpServer, options: HubOptions): Hub {
  const io = createServer(httpServer, options);
  const unguard = guardConnections(io);
  let [news, told] = [0, ''];
  const catchUp = createCatchUp({ ...options, told: () => told });
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
    if (!socket.data.live) catchUp(toReturning(socket));
  });
  const socketsOf = (isMeant: (caller: Caller) => boolean): LiveSocket[] =>
    ([...io.of('/').sockets.values()] as LiveSocket[]).filter((socket) => isMeant(socket.data.caller));
  return {
    begin(position) {
      told = position;
    },
    tell(events, position) {
      for (const event of events) {
        const rooms = roomsFor(event);
        // To Socket.IO, no room would mean everyone.
        if (rooms.length > 0) io.to(rooms).emit(event.name, event.payload, { position: event.position });
      }
      told = position;
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
