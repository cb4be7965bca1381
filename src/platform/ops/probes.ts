/** A separate HTTP server for operators: liveness, readiness, metrics. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { LIMITS } from '../../core/limits.js';
import { destroyHalfClosed } from '../half-closed.js';

export interface Probes {
  /** Reasons why this instance should not get requests; empty when it is ready. */
  findObstacles(): Promise<string[]>;
  /** All metrics, in the text format of Prometheus. */
  metrics(): Promise<string>;
}

/** Serves /health, /ready and /metrics. No answer holds versions, names or addresses. */
export async function startProbes(
  address: { port: number; host: string },
  probes: Probes,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer({ connectionsCheckingInterval: LIMITS.connectionCheckMs }, answer(probes));
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.once('close', destroyHalfClosed(open));
  server.headersTimeout = LIMITS.headersTimeoutMs;
  server.requestTimeout = LIMITS.headersTimeoutMs;
  server.maxConnections = LIMITS.probeConnections;
  server.listen(address.port, address.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return { url: `http://${host}:${port}`, stop: () => stop(server) };
}

async function stop(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

const answer = (probes: Probes): RequestListener => {
  const answers = new Map<string, (res: ServerResponse) => unknown>([
    // Independent of the database: its failure is no reason to restart this process.
    ['/health', (res) => sendJson(res, 200, { status: 'up' })],
    ['/ready', async (res) => sendReadiness(res, await probes.findObstacles())],
    ['/metrics', async (res) => send(res, 200, await probes.metrics(), 'text/plain; version=0.0.4; charset=utf-8')],
  ]);
  return async (req, res) => {
    const respond = answers.get(req.url?.split('?', 1)[0] ?? '');
    if (respond === undefined) sendJson(res, 404, { status: 'not found' });
    else if (req.method !== 'GET' && req.method !== 'HEAD') sendJson(res, 405, { status: 'GET only' });
    else await Promise.resolve(respond(res)).catch(() => sendJson(res, 500, { status: 'failed' }));
  };
};

const sendReadiness = (res: ServerResponse, reasons: string[]): void =>
  reasons.length === 0 ? sendJson(res, 200, { status: 'ready' }) : sendJson(res, 503, { status: 'not ready', reasons });

const sendJson = (res: ServerResponse, status: number, body: object): void =>
  send(res, status, JSON.stringify(body), 'application/json; charset=utf-8');

function send(res: ServerResponse, status: number, text: string, type: string): void {
  res.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  res.end(text);
}
