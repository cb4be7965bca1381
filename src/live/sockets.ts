/** Socket.IO over the feed: lets sockets in, writes them what they hear, and takes what they ask for. */
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Server, type Socket } from 'socket.io';
import type { Identify } from '../auth/identify.js';
import { isTrustedOrigin } from '../auth/origin.js';
import { toApiError } from '../errors.js';
import {
  type Batch,
  type Listen,
  type Listening,
  readNarrowing,
  readNarrowingQuery,
  type Sink,
  SOCKETS_PATH,
} from '../model/feed.js';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';
import { type Connection, guardConnections, isDrained, takesFrames, writeFrames } from './connections.js';
import { escapeText } from './encoding.js';
import { createUnproven, type Unproven } from './unproven.js';

export interface SocketOptions {
  readonly listen: Listen;
  readonly identify: Identify;
  /** The client's address, as the proxies in front tell it. */
  readonly addressOf: (req: IncomingMessage) => string;
  /** The scheme that the client used, likewise. */
  readonly schemeOf: (req: IncomingMessage) => string;
  readonly corsOrigins: readonly string[];
  readonly log: Logger;
}

type LiveSocket = Socket<
  Record<string, (...args: unknown[]) => void>,
  Record<string, (...args: unknown[]) => void>,
  object,
  { listening: Listening }
>;

export interface Sockets {
  /** Closes every socket, a few at a time, in a way after which its client comes back by itself. */
  letGo(): Promise<void>;
  stop(): Promise<void>;
}

export function createSockets(httpServer: HttpServer, options: SocketOptions): Sockets {
  const unproven = createUnproven(options);
  const io = createServer(httpServer, options, unproven);
  const unguard = guardConnections(io);
  io.engine.on('connection', unproven.begin);
  io.use((socket: LiveSocket, next) => {
    admit(options, socket).then(
      () => {
        unproven.prove(socket.conn);
        next();
      },
      (error) => refuse(options, socket, { error, next }),
    );
  });
  io.on('connection', (socket: LiveSocket) => welcome(options, socket));
  return {
    async letGo() {
      const all = [...io.of('/').sockets.values()];
      // They come back to other instances, or to this one's successor: not all in one moment.
      const pieceSize = Math.max(LIMITS.letGoAtOnce, Math.ceil(all.length / LIMITS.letGoPieces));
      for (let at = 0; at < all.length; at += pieceSize) {
        if (at > 0) await wait(LIMITS.letGoPauseMs * (0.5 + Math.random()));
        // Told that the server disconnects it, a client would stay away.
        for (const socket of all.slice(at, at + pieceSize)) socket.conn.close();
      }
    },
    async stop() {
      unguard();
      await io.close();
    },
  };
}

function createServer(
  httpServer: HttpServer,
  { corsOrigins, addressOf, schemeOf }: SocketOptions,
  unproven: Unproven,
): Server {
  const handshakes = new RateLimiterMemory({ points: LIMITS.handshakesPerMinute, duration: 60 });
  const isRare = (address: string): Promise<boolean> =>
    handshakes.consume(address).then(
      () => true,
      () => false,
    );
  type Decide = (error: string | null | undefined, allowed: boolean) => void;
  const allow = async (req: IncomingMessage, decide: Decide): Promise<void> => {
    // CORS does not hold for WebSockets: a page of a foreign origin is refused here.
    const full = io.engine.clientsCount >= LIMITS.socketsPerProcess;
    const isOurs = !full && isTrustedOrigin(req.headers, schemeOf(req), corsOrigins);
    decide(null, isOurs && (await isRare(networkOf(addressOf(req)))) && (await unproven.mayEnter(req)));
  };
  const io = new Server(httpServer, {
    path: SOCKETS_PATH,
    serveClient: false,
    // Other upgrades never come here: the HTTP server ignores them.
    destroyUpgrade: false,
    // interface, "WebSocket endpoint": EIO=3; newer clients and long polling work as well.
    allowEIO3: true,
    // interface, "Limits": 25 s between pings, 60 s for the answer.
    pingInterval: LIMITS.pingIntervalMs,
    pingTimeout: LIMITS.pingTimeoutMs,
    // For newer clients to show a token after the handshake; whoever was refused is cut then as well.
    connectTimeout: LIMITS.socketProofMs,
    maxHttpBufferSize: LIMITS.inboundFrameBytes,
    perMessageDeflate: false,
    httpCompression: false,
    cors: { origin: [...corsOrigins], credentials: true },
    allowRequest: (req, decide) => void allow(req, decide),
  });
  const encode = io.encoder.encode.bind(io.encoder);
  io.encoder.encode = (packet) => encode(packet).map((part) => (typeof part === 'string' ? escapeText(part) : part));
  return io;
}

/**
 * Who the socket is: by the headers of its handshake, or by the token that newer clients send as `auth`. What it wants to
 * hear, and from where on, stands in the query or in `auth` as well.
 */
async function admit(options: SocketOptions, socket: LiveSocket): Promise<void> {
  const { headers, query, auth } = socket.handshake;
  const token = typeof auth?.token === 'string' ? `Bearer ${auth.token}` : undefined;
  const since = query.since ?? auth?.since;
  const listening = await options.listen({
    proof: { authorization: headers.authorization ?? token, cookie: headers.cookie },
    address: options.addressOf(socket.request),
    wanted: readNarrowingQuery({ objects: query.objects ?? auth?.objects, events: query.events ?? auth?.events }),
    since: typeof since === 'string' && since !== '' ? since : null,
    sink: toSink(socket),
  });
  socket.data.listening = listening;
  socket.conn.once('close', listening.close);
  // A connection may be asked for one socket after the other.
  socket.once('disconnect', () => socket.conn.off('close', listening.close));
  if (socket.conn.readyState !== 'open') listening.close();
}

/** Told why it may not connect, a client stays away. Where that passes its connection just ends, and it comes back by itself. */
function refuse(
  { log }: SocketOptions,
  socket: LiveSocket,
  { error, next }: { error: unknown; next: (error: Error) => void },
): void {
  const { status, message, help, cause } = toApiError(error);
  if (status < 500) {
    next(new Error(status === 429 ? 'Too Many Requests' : (help ?? message)));
    return;
  }
  log.warn({ err: cause ?? error }, 'a socket could not be let in');
  socket.conn.close();
}

function toSink(socket: LiveSocket): Sink {
  const { conn } = socket;
  return {
    write: (batch) => writeBatch(conn, batch),
    isDrained: () => isDrained(conn),
    gap: (gap) => void socket.emit('gap', gap),
    joined: () => undefined,
    end(mayReturn) {
      // Told that the server disconnects it, a client stays away; not yet connected, it would be let in all the same.
      if (mayReturn || !socket.connected) conn.close(!socket.connected);
      else socket.disconnect(true);
    },
  };
}

/** All frames of a batch in one write where they are frames; a poll is made of packets. */
function writeBatch(conn: Connection, batch: Batch): void {
  if (takesFrames(conn)) writeFrames(conn, batch.bytes('frame'));
  else for (const { bytes } of batch.pieces('packet')) conn.write(bytes.toString('latin1'));
}

function welcome(options: SocketOptions, socket: LiveSocket): void {
  const { listening } = socket.data;
  const about = { socket: socket.id, user: listening.userId };
  options.log.info({ ...about, protocol: socket.conn.protocol }, 'socket connected');
  socket.on('subscribe', (...args: unknown[]) => void subscribe(listening, args));
  socket.on('disconnect', (reason: unknown) => {
    listening.close();
    options.log.info({ ...about, reason }, 'socket disconnected');
  });
  listening.start();
}

/** Narrows what a socket hears; the acknowledgement says which objects it got and from where on, or what was wrong. */
async function subscribe(listening: Listening, args: unknown[]): Promise<void> {
  const acknowledge = args.at(-1);
  const answer = typeof acknowledge === 'function' ? (acknowledge as (result: object) => void) : () => undefined;
  try {
    const { objects } = await listening.narrow(readNarrowing(args[0]));
    // What it was told before stands before the acknowledgement.
    listening.flush();
    answer({ success: true, ...(objects && { objects }), position: listening.position() });
  } catch (error) {
    const { status, message } = toApiError(error);
    answer({ success: false, code: String(status), message });
  }
}
