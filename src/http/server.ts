/** The HTTP server under the API and the sockets: its time-outs, where it listens, how it ends. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { LIMITS } from '../model/limits.js';
import { answerClientError } from './failure.js';

/** A server that bounds every wait and every header. */
export function createHttpServer(app: RequestListener): Server {
  // Node would answer a request without a host by itself, with an empty body; the app refuses it as it refuses others.
  const server = createServer({ maxHeaderSize: LIMITS.headerBytes, requireHostHeader: false });
  server.headersTimeout = LIMITS.headersTimeoutMs;
  server.requestTimeout = LIMITS.requestTimeoutMs;
  server.keepAliveTimeout = LIMITS.keepAliveTimeoutMs;
  server.maxConnections = LIMITS.connections;
  server.on('clientError', answerClientError);
  const open = new Set<ServerResponse>();
  underWay.set(server, open);
  function forget(this: ServerResponse): void {
    open.delete(this);
  }
  server.on('request', (_req, res) => {
    open.add(res);
    res.on('close', forget);
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

/** Answers that are not over, of each server. */
const underWay = new WeakMap<Server, Set<ServerResponse>>();

/**
 * Ends the server: for `delayMs` everybody is served and told that the connection ends with the answer, so that whoever
 * keeps connections has found others when the service takes no more. Whoever is being answered then gets the answer,
 * within a bound; connections that only wait for another request are closed, also those that begin to wait later.
 */
export async function drain(server: Server, delayMs: number): Promise<void> {
  if (!server.listening) return;
  const open = underWay.get(server) ?? new Set();
  for (const res of open) endAfter(res);
  server.prependListener('request', (_req, res) => endAfter(res));
  await wait(delayMs);
  const idle = setInterval(() => server.closeIdleConnections(), LIMITS.stopPollMs);
  const all = setTimeout(() => server.closeAllConnections(), LIMITS.stopMs);
  server.once('close', () => {
    clearInterval(idle);
    clearTimeout(all);
  });
  server.close();
}

function endAfter(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close');
}
