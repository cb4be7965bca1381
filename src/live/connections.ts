/** Ends connections that would cost without end: that fell silent, that say too much, that do not read what they are told. */
import type { Server, Socket } from 'socket.io';
import { LIMITS } from '../model/limits.js';

type Connection = Socket['conn'];

/** What a connection was told and has not taken yet, and when it last took all there was; ms of the process' own clock. */
interface Backlog {
  bytes: number;
  takenMs: number;
}

/** Watches every connection of the server until the result is called. */
export function guardConnections(io: Server): () => void {
  const backlogs = new Map<Connection, Backlog>();
  io.engine.on('connection', (connection: Connection) => {
    backlogs.set(connection, measure(connection));
    connection.once('close', () => backlogs.delete(connection));
    boundInbound(connection);
    if (connection.protocol === 3) expectPings(connection);
  });
  const timer = setInterval(() => endSlow(backlogs), LIMITS.slowCheckMs).unref();
  return () => clearInterval(timer);
}

function measure(connection: Connection): Backlog {
  const backlog = { bytes: 0, takenMs: performance.now() };
  connection.on('packetCreate', ({ data }: { data?: unknown }) => {
    backlog.bytes += typeof data === 'string' ? data.length : 1;
  });
  connection.on('drain', () => {
    backlog.bytes = 0;
    backlog.takenMs = performance.now();
  });
  return backlog;
}

function endSlow(backlogs: ReadonlyMap<Connection, Backlog>): void {
  for (const [connection, { bytes, takenMs }] of backlogs) {
    const isStuck = bytes > 0 && performance.now() - takenMs > LIMITS.slowMs;
    // Discarded: what waits would keep a graceful end waiting as well.
    if (isStuck || bytes > LIMITS.waitingBytes) connection.close(true);
  }
}

/** Engine.IO no longer waits for the pings of an EIO=3 client that came by polling and then changed to a WebSocket. */
function expectPings(connection: Connection): void {
  connection.once('upgrade', () => {
    const timer = setTimeout(() => connection.close(true), LIMITS.pingIntervalMs + LIMITS.pingTimeoutMs);
    connection.on('heartbeat', () => timer.refresh());
    connection.once('close', () => clearTimeout(timer));
  });
}

function boundInbound(connection: Connection): void {
  let [second, packets] = [0, 0];
  connection.on('packet', () => {
    const now = Math.floor(performance.now() / 1_000);
    packets = now === second ? packets + 1 : 1;
    second = now;
    if (packets > LIMITS.inboundPerSecond) connection.close(true);
  });
}
