/** The Node.js HTTP server of the API and the sockets: timeouts, listening and shutdown. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { LIMITS } from '../../../core/limits.js';
import { destroyHalfClosed, type HandleSocket } from '../../half-closed.js';
import { handleClientError } from '../errors.js';
import { responseOn } from './response-tracking.js';
import { cutStalledReaders, type StallLimits } from './stalled-readers.js';

const STALLS: StallLimits = {
  stallMs: LIMITS.answerStallMs,
  checkMs: LIMITS.answerCheckMs,
  progressBytes: LIMITS.answerProgressBytes,
};

/** Creates a server with limits for all waits and headers. The response class must report to `response-tracking.ts`. */
export function createHttpServer(
  app: RequestListener,
  classes: Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'>,
): Server {
  // Without this option Node answers a request without `Host` itself, with an empty body.
  const server = createServer({
    ...classes,
    maxHeaderSize: LIMITS.headerBytes,
    requireHostHeader: false,
    connectionsCheckingInterval: LIMITS.connectionCheckMs,
  });
  server.headersTimeout = LIMITS.headersTimeoutMs;
  server.requestTimeout = LIMITS.requestTimeoutMs;
  server.keepAliveTimeout = LIMITS.keepAliveTimeoutMs;
  server.maxConnections = LIMITS.connections;
  server.on('clientError', (error, socket: Socket) => handleClientError(error, socket, responseOn));
  const open = new Set<Socket>();
  connections.set(server, open);
  server.once('close', cutStalledReaders(open, STALLS));
  server.once('close', destroyHalfClosed(open));
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', app);
  // Node would refuse an `Expect` other than 100-continue; it is ignored here.
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
  return server;
}

/** Resolves with the address. Port 0 selects a free port. */
export async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening');
  const { address, family, port: bound } = server.address() as AddressInfo;
  const name = address === '::' || address === '0.0.0.0' ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${name}:${bound}`;
}

/** The open connections of each server. */
const connections = new WeakMap<Server, Set<HandleSocket>>();

/** Unlike Node's `closeAllConnections`, this includes upgraded connections. */
function endAll(server: Server): void {
  for (const socket of connections.get(server) ?? []) socket.destroy();
}

/** Browsers and Node.js open connections in advance. Node does not count a connection as idle on which nothing was ever sent. */
function endUnused(server: Server): void {
  for (const socket of connections.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy();
}

/** Adds `Connection: close` to all responses from now on, so that clients open new connections elsewhere. */
export function endKeptConnections(server: Server): void {
  for (const socket of connections.get(server) ?? []) {
    const res = responseOn(socket);
    if (res !== null) endAfter(res);
  }
  server.prependListener('request', (_req, res) => endAfter(res));
}

function endAfter(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close');
}

/**
 * Resolves when no connection has arrived for some turns of the event loop, or after a timeout. The kernel accepts connections before
 * the process does, and resets those in its queue when the server closes.
 */
export async function drainAcceptQueue(server: Server): Promise<void> {
  let quietTurns = 0;
  const onConnection = (): void => {
    quietTurns = 0;
  };
  server.on('connection', onConnection);
  const untilMs = performance.now() + LIMITS.acceptQueueDrainMs;
  while (quietTurns++ < LIMITS.stopQuietTurns && performance.now() < untilMs) await setImmediate();
  server.off('connection', onConnection);
}

/**
 * Stops accepting connections. Requests in progress are finished within a timeout; idle connections are closed, also those that become
 * idle later.
 */
export function closeServer(server: Server): void {
  if (!server.listening) return;
  const idle = setInterval(() => server.closeIdleConnections(), LIMITS.stopPollMs);
  const unused = setTimeout(() => endUnused(server), LIMITS.stopUnusedMs);
  const all = setTimeout(() => endAll(server), LIMITS.stopMs);
  server.once('close', () => {
    clearInterval(idle);
    clearTimeout(unused);
    clearTimeout(all);
  });
  server.close();
}
