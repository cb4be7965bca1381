/** The HTTP server under the API and the sockets: its time-outs, where it listens, how it ends. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LIMITS } from '../model/limits.js';
import { answerClientError } from './failure.js';

/** A server that bounds every wait and every header. */
export function createHttpServer(app: RequestListener): Server {
  // Node would answer a request without a host by itself, with an empty body; the app refuses it as it refuses others.
  const server = createServer({ maxHeaderSize: LIMITS.headerBytes, requireHostHeader: false }, app);
  server.headersTimeout = LIMITS.headersTimeoutMs;
  server.requestTimeout = LIMITS.requestTimeoutMs;
  server.keepAliveTimeout = LIMITS.keepAliveTimeoutMs;
  server.maxConnections = LIMITS.connections;
  server.on('clientError', answerClientError);
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

/**
 * For a server that is closing: whoever is being answered gets the answer, within a bound; connections that only wait
 * for another request are closed, also those that begin to wait now.
 */
export function endConnections(server: Server): void {
  const idle = setInterval(() => server.closeIdleConnections(), LIMITS.stopPollMs);
  const all = setTimeout(() => server.closeAllConnections(), LIMITS.stopMs);
  server.once('close', () => {
    clearInterval(idle);
    clearTimeout(all);
  });
}
