/** The HTTP server under the API and the sockets: its time-outs, where it listens, how it ends. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { LIMITS } from '../model/limits.js';
import { answerClientError } from './failure.js';
import { cutStalled, type HttpSocket, type StallLimits } from './stalled.js';

const STALLS: StallLimits = {
  stallMs: LIMITS.answerStallMs,
  checkMs: LIMITS.answerCheckMs,
  progressBytes: LIMITS.answerProgressBytes,
};

/** A server that bounds every wait and every header. `kinds`: its classes of requests and answers, where they are not Node's. */
export function createHttpServer(app: RequestListener, kinds: ServerOptions = {}): Server {
  // Node would answer a request without a host by itself, with an empty body; the app refuses it as it refuses others.
  const server = createServer({ ...kinds, maxHeaderSize: LIMITS.headerBytes, requireHostHeader: false });
  server.headersTimeout = LIMITS.headersTimeoutMs;
  server.requestTimeout = LIMITS.requestTimeoutMs;
  server.keepAliveTimeout = LIMITS.keepAliveTimeoutMs;
  server.maxConnections = LIMITS.connections;
  server.on('clientError', answerClientError);
  const open = new Set<Socket>();
  connections.set(server, open);
  server.once('close', cutStalled(open, STALLS));
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', app);
  // Likewise an `Expect` other than 100-continue: it is no reason not to answer.
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
  return server;
}

/** Listens, and gives the address. Port 0 is any free one. */
export async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening');
  const { address, family, port: bound } = server.address() as AddressInfo;
  const name = address === '::' || address === '0.0.0.0' ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  return `http://${name}:${bound}`;
}

/** The open connections of each server; Node notes on each the answer that is under way there. */
const connections = new WeakMap<Server, Set<HttpSocket>>();

/** Node's own `closeAllConnections` leaves out those that became another protocol's. */
function endAll(server: Server): void {
  for (const socket of connections.get(server) ?? []) socket.destroy();
}

/** From now on every answer says that its connection ends with it: whoever keeps connections finds others. */
export function endKeptConnections(server: Server): void {
  for (const { _httpMessage: res } of connections.get(server) ?? []) if (res) endAfter(res);
  server.prependListener('request', (_req, res) => endAfter(res));
}

function endAfter(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close');
}

/**
 * Resolves when nobody was let in for some turns of the event loop, or after a bound: the system lets people in before the
 * process sees them, and cuts those off who are in its queue when the server closes.
 */
export async function letIn(server: Server): Promise<void> {
  let quietTurns = 0;
  const onConnection = (): void => {
    quietTurns = 0;
  };
  server.on('connection', onConnection);
  const untilMs = performance.now() + LIMITS.stopLetInMs;
  while (quietTurns++ < LIMITS.stopQuietTurns && performance.now() < untilMs) await setImmediate();
  server.off('connection', onConnection);
}

/**
 * Takes no more connections. Whoever is being answered gets the answer, within a bound; connections that only wait for
 * another request are closed, also those that begin to wait now.
 */
export function closeServer(server: Server): void {
  if (!server.listening) return;
  const idle = setInterval(() => server.closeIdleConnections(), LIMITS.stopPollMs);
  const all = setTimeout(() => endAll(server), LIMITS.stopMs);
  server.once('close', () => {
    clearInterval(idle);
    clearTimeout(all);
  });
  server.close();
}
