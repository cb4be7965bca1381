/** Socket.IO as a transport of the feed: authenticates sockets, sends them events, and handles their subscriptions. */

import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Server, type Socket } from 'socket.io';
import type { Identify } from '../accounts/identify.js';
import { hasOnlyCookie, isTrustedOrigin } from '../accounts/origin.js';
import { toApiError } from '../core/errors.js';
import {
  type EventBatch,
  type Listen,
  type Listening,
  parseEventFilter,
  parseEventFilterQuery,
  type Sink,
  SOCKETS_PATH,
} from '../core/feed.js';
import { LIMITS } from '../core/limits.js';
import { networkOf } from '../core/network.js';
import { clock } from '../platform/clock.js';
import { isDrained, type LiveConnection, limitConnections, takesFrames, writeFrames } from './connections.js';
import { escapeText } from './encoding.js';
import { createUnauthenticatedLimit, type UnauthenticatedLimit } from './unauthenticated.js';

export interface SocketOptions {
  readonly listen: Listen;
  readonly identify: Identify;
  /** The client's address, according to trusted proxies. */
  readonly addressOf: (req: IncomingMessage) => string;
  /** The scheme of the client's request, according to trusted proxies. */
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

export interface SocketServer {
  /** Closes all sockets in small groups, in a way after which clients reconnect automatically. */
  disconnectAll(): Promise<void>;
  stop(): Promise<void>;
}

export function createSocketServer(httpServer: HttpServer, options: SocketOptions): SocketServer {
  const unauthenticated = createUnauthenticatedLimit(options);
  const io = createServer(httpServer, options, unauthenticated);
  const stopLimits = limitConnections(io);
  io.engine.on('connection', unauthenticated.begin);
  io.use((socket: LiveSocket, next) => {
    authenticate(options, unauthenticated, socket).then(
      () => {
        unauthenticated.release(socket.conn);
        next();
      },
      (error) => refuse(options, socket, { error, next }),
    );
  });
  io.on('connection', (socket: LiveSocket) => startSocket(options, socket));
  return {
    async disconnectAll() {
      const all = [...io.of('/').sockets.values()];
      // In groups, so that the clients do not all reconnect to the other instances at the same time.
      const groupSize = Math.max(LIMITS.disconnectGroupMin, Math.ceil(all.length / LIMITS.disconnectGroups));
      for (let start = 0; start < all.length; start += groupSize) {
        if (start > 0) await clock.wait(LIMITS.disconnectPauseMs * (0.5 + clock.random()));
        // Closes the connection without a disconnect packet, after which clients do not reconnect.
        for (const socket of all.slice(start, start + groupSize)) socket.conn.close();
      }
    },
    async stop() {
      stopLimits();
      await io.close();
    },
  };
}

function createServer(
  httpServer: HttpServer,
  { corsOrigins, addressOf, schemeOf }: SocketOptions,
  unauthenticated: UnauthenticatedLimit,
): Server {
  const handshakes = new RateLimiterMemory({ points: LIMITS.handshakesPerMinute, duration: 60 });
  const isWithinRate = (address: string): Promise<boolean> =>
    handshakes.consume(address).then(
      () => true,
      () => false,
    );
  // CORS does not apply to WebSockets and to scripts, so foreign pages are refused here, unless they send a token instead of the cookie.
  const isForeign = (req: IncomingMessage): boolean =>
    hasOnlyCookie(req.headers) && (isJsonp(req) || !isTrustedOrigin(req.headers, schemeOf(req), corsOrigins));
  type Decide = (error: string | null | undefined, allowed: boolean) => void;
  const allow = async (req: IncomingMessage, decide: Decide): Promise<void> => {
    const isFull = io.engine.clientsCount >= LIMITS.socketsPerProcess;
    decide(
      null,
      !isFull &&
        !isForeign(req) &&
        (await isWithinRate(networkOf(addressOf(req)))) &&
        (await unauthenticated.mayConnect(req)),
    );
  };
  const io = new Server(httpServer, {
    path: SOCKETS_PATH,
    serveClient: false,
    // The HTTP server ignores other upgrades already (platform/http/server/upgrades.ts).
    destroyUpgrade: false,
    // Clients of the first generations use EIO=3 (docs/reference/live-events.md).
    allowEIO3: true,
    pingInterval: LIMITS.pingIntervalMs,
    pingTimeout: LIMITS.pingTimeoutMs,
    // The time for newer clients to send a token after the handshake. Refused clients are closed after it as well.
    connectTimeout: LIMITS.socketAuthMs,
    maxHttpBufferSize: LIMITS.inboundFrameBytes,
    perMessageDeflate: false,
    httpCompression: false,
    cors: { origin: [...corsOrigins], credentials: true },
    allowRequest: (req, decide) => void allow(req, decide),
  });
  // `allowRequest` sees only handshakes; this sees every request of long polling.
  io.engine.use((req: IncomingMessage, res: ServerResponse, next: () => void) => {
    if (!hasSessionId(req) || !isForeign(req)) return next();
    res.writeHead(403, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ code: 4, message: 'Forbidden' }));
  });
  const encode = io.encoder.encode.bind(io.encoder);
  io.encoder.encode = (packet) => encode(packet).map((part) => (typeof part === 'string' ? escapeText(part) : part));
  return io;
}

const queryOf = ({ url = '' }: IncomingMessage): URLSearchParams => new URL(url, 'http://vigil').searchParams;

/** Whether the answer is to be a script, which any page can load with its visitor's cookie, and read. */
const isJsonp = (req: IncomingMessage): boolean => queryOf(req).has('j');

const hasSessionId = (req: IncomingMessage): boolean => queryOf(req).has('sid');

/**
 * Authenticates a socket by the headers of its handshake, or by the token that newer clients send in `auth`. The filter and the
 * position are taken from the query or from `auth`.
 */
async function authenticate(
  options: SocketOptions,
  unauthenticated: UnauthenticatedLimit,
  socket: LiveSocket,
): Promise<void> {
  unauthenticated.throwFailure(socket.conn);
  const { headers, query, auth } = socket.handshake;
  const token = typeof auth?.token === 'string' ? `Bearer ${auth.token}` : undefined;
  const since = query.since ?? auth?.since;
  const listening = await options.listen({
    credentials: { authorization: headers.authorization ?? token, cookie: headers.cookie },
    address: options.addressOf(socket.request),
    filter: parseEventFilterQuery({
      objects: query.objects ?? auth?.objects,
      groups: query.groups ?? auth?.groups,
      events: query.events ?? auth?.events,
    }),
    since: typeof since === 'string' && since !== '' ? since : null,
    sink: toSink(socket),
  });
  socket.data.listening = listening;
  socket.conn.once('close', listening.close);
  // A connection can carry several sockets one after the other.
  socket.once('disconnect', () => socket.conn.off('close', listening.close));
  if (socket.conn.readyState !== 'open') listening.close();
}

/** Sends permanent errors to the client, which then does not reconnect. For temporary errors it only closes the connection. */
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
  log.warn({ err: cause ?? error }, 'failed to authenticate a socket');
  socket.conn.close();
}

function toSink(socket: LiveSocket): Sink {
  const { conn } = socket;
  return {
    write: (batch) => writeBatch(conn, batch),
    isDrained: () => isDrained(conn),
    gap: (gap) => void socket.emit('gap', gap),
    joined(position) {
      if (socket.handshake.auth?.live === true) socket.emit('live', { position });
    },
    end(mayReturn) {
      // After a disconnect packet the client does not reconnect. A socket that is not connected yet would ignore the packet.
      if (mayReturn || !socket.connected) conn.close(!socket.connected);
      else socket.disconnect(true);
    },
  };
}

/** Writes a batch as frames in one call; long polling needs separate packets. */
function writeBatch(conn: LiveConnection, batch: EventBatch): void {
  if (takesFrames(conn)) writeFrames(conn, batch.bytes('frame'));
  else for (const { bytes } of batch.pieces('packet')) conn.write(bytes.toString('latin1'));
}

function startSocket(options: SocketOptions, socket: LiveSocket): void {
  const { listening } = socket.data;
  const details = { socket: socket.id, user: listening.userId };
  options.log.info({ ...details, protocol: socket.conn.protocol }, 'socket connected');
  socket.on('subscribe', (...args: unknown[]) => void subscribe(listening, args));
  socket.on('disconnect', (reason: unknown) => {
    listening.close();
    options.log.info({ ...details, reason }, 'socket disconnected');
  });
  listening.start();
}

/** Sets the filter of a socket. The acknowledgement contains the accepted objects or groups and the position, or the error. */
async function subscribe(listening: Listening, args: unknown[]): Promise<void> {
  const acknowledge = args.at(-1);
  const reply = typeof acknowledge === 'function' ? (acknowledge as (result: object) => void) : () => undefined;
  try {
    const { objects, groups } = await listening.setFilter(parseEventFilter(args[0]));
    // Events that were published before the change of the filter are sent before the acknowledgement.
    listening.flush();
    reply({ success: true, ...(groups && { groups }), ...(objects && { objects }), position: listening.position() });
  } catch (error) {
    const { status, message } = toApiError(error);
    reply({ success: false, code: String(status), message });
  }
}
