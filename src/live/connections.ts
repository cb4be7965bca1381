/** Ends connections that would cost without end: that fell silent, that say too much, that do not read what they are told. */
import type { Server, Socket } from 'socket.io';
import { LIMITS } from '../model/limits.js';

type Connection = Socket['conn'];

/** What a connection was told and has not taken yet, and when it last took some; ms of the process' own clock. */
interface Backlog {
  /** Not handed to the network yet. */
  queued: number;
  /** Handed to the network, which may not have taken it. */
  sent: number;
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

interface Packet {
  readonly data?: unknown;
  readonly options?: { readonly wsPreEncodedFrame?: readonly Uint8Array[] };
}

function measure(connection: Connection): Backlog {
  const backlog = { queued: 0, sent: 0, takenMs: performance.now() };
  connection.on('packetCreate', ({ data, options }: Packet) => {
    backlog.queued += options?.wsPreEncodedFrame?.[0]?.length ?? (typeof data === 'string' ? data.length : 1);
  });
  // What was sent before was taken: only then more is sent.
  connection.on('flush', () => {
    backlog.sent = backlog.queued;
    backlog.queued = 0;
    backlog.takenMs = performance.now();
  });
  return backlog;
}

function endSlow(backlogs: ReadonlyMap<Connection, Backlog>): void {
  const nowMs = performance.now();
  for (const [connection, backlog] of backlogs) {
    if (connection.transport.writable) backlog.sent = 0;
    const bytes = backlog.queued + backlog.sent;
    if (bytes === 0) backlog.takenMs = nowMs;
    // Discarded: what waits would keep a graceful end waiting as well.
    if (bytes > LIMITS.waitingBytes || nowMs - backlog.takenMs > LIMITS.slowMs) connection.close(true);
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
