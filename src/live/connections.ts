/**
 * The connections below Socket.IO. Writes frames directly, and closes connections that are silent, send too much or do not read.
 * Uses private parts of Engine.IO and ws.
 */

import type { Server, Socket } from 'socket.io';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

export type LiveConnection = Socket['conn'];

/** The unsent bytes of a connection, and when some were last sent, in ms of the monotonic clock. */
interface Backlog {
  /** Bytes in the queue of Engine.IO. */
  queued: number;
  /** Bytes in the long-polling transport, which wait for the next poll. */
  sent: number;
  /** Bytes of a WebSocket that the network had accepted at the last check. */
  taken: number;
  takenMs: number;
}

/** The WebSocket of an Engine.IO transport, used in the same way as Engine.IO does. */
interface WebSocketTransport {
  readonly socket: {
    /** Bytes that the network has not accepted yet. */
    readonly bufferedAmount: number;
    readonly _socket: { readonly bytesWritten: number };
    readonly _sender: { sendFrame(frames: readonly Uint8Array[]): void };
  };
}

const webSocketOf = ({ transport }: LiveConnection): WebSocketTransport['socket'] | null =>
  transport.name === 'websocket' ? (transport as unknown as WebSocketTransport).socket : null;

// The packets that wait for the transport; with polling, for the next poll.
const writeBufferOf = (connection: LiveConnection): readonly unknown[] =>
  (connection as unknown as { writeBuffer: readonly unknown[] }).writeBuffer;

/** Whether the network has accepted all written bytes. */
export function isDrained(connection: LiveConnection): boolean {
  const webSocket = webSocketOf(connection);
  const { transport } = connection;
  return transport.writable && writeBufferOf(connection).length === 0 && (webSocket?.bufferedAmount ?? 0) === 0;
}

/** Whether `writeFrames` can be used: only with WebSockets. */
export const takesFrames = (connection: LiveConnection): boolean => webSocketOf(connection) !== null;

/**
 * Writes encoded frames in one call. If the queue of Engine.IO is empty, they bypass it: the queue waits for each write to complete
 * and emits events for it, which is too slow for many thousand writes per second.
 */
export function writeFrames(connection: LiveConnection, frames: Buffer): void {
  const isFree = connection.readyState === 'open' && connection.transport.writable;
  const webSocket = isFree && writeBufferOf(connection).length === 0 ? webSocketOf(connection) : null;
  if (webSocket !== null) webSocket._sender.sendFrame([frames]);
  else connection.write('', { compress: false, wsPreEncodedFrame: [frames] } as Parameters<LiveConnection['write']>[1]);
}

/** Applies the limits to every connection of the server. Returns a function that stops this. */
export function limitConnections(io: Server): () => void {
  const backlogs = new Map<LiveConnection, Backlog>();
  io.engine.on('connection', (connection: LiveConnection) => {
    backlogs.set(connection, measure(connection));
    connection.once('close', () => backlogs.delete(connection));
    limitInbound(connection);
    expectHeartbeats(connection);
  });
  const timer = clock.setInterval(() => endSlow(backlogs), LIMITS.slowCheckMs).unref();
  return () => clock.clearTimer(timer);
}

interface Packet {
  readonly data?: unknown;
  readonly options?: { readonly wsPreEncodedFrame?: readonly Uint8Array[] };
}

function measure(connection: LiveConnection): Backlog {
  const backlog = { queued: 0, sent: 0, taken: 0, takenMs: clock.steadyMs() };
  connection.on('packetCreate', ({ data, options }: Packet) => {
    backlog.queued += options?.wsPreEncodedFrame?.[0]?.length ?? (typeof data === 'string' ? data.length : 1);
  });
  // Engine.IO flushes only after the previous packets were sent.
  connection.on('flush', () => {
    backlog.sent = backlog.queued;
    backlog.queued = 0;
    backlog.takenMs = clock.steadyMs();
  });
  return backlog;
}

function endSlow(backlogs: ReadonlyMap<LiveConnection, Backlog>): void {
  const nowMs = clock.steadyMs();
  for (const [connection, backlog] of backlogs) {
    const bytes = backlog.queued + bytesSent(connection, backlog, nowMs);
    if (bytes === 0) backlog.takenMs = nowMs;
    // Closed with `discard`: a graceful close would wait for the backlog.
    if (bytes > LIMITS.waitingBytes || nowMs - backlog.takenMs > LIMITS.slowMs) connection.close(true);
  }
}

/** The bytes that the transport has not sent yet. Updates the time of the last progress. */
function bytesSent(connection: LiveConnection, backlog: Backlog, nowMs: number): number {
  const webSocket = webSocketOf(connection);
  if (webSocket === null) return connection.transport.writable ? 0 : backlog.sent;
  const taken = webSocket._socket.bytesWritten - webSocket.bufferedAmount;
  if (taken !== backlog.taken) backlog.takenMs = nowMs;
  backlog.taken = taken;
  return webSocket.bufferedAmount;
}

/** Engine.IO loses its heartbeat timeout when a client upgrades from polling to a WebSocket. */
function expectHeartbeats(connection: LiveConnection): void {
  connection.once('upgrade', () => {
    const timer = clock.setTimeout(() => connection.close(true), LIMITS.pingIntervalMs + LIMITS.pingTimeoutMs);
    connection.on('heartbeat', () => timer.refresh());
    connection.once('close', () => clock.clearTimer(timer));
  });
}

function limitInbound(connection: LiveConnection): void {
  let second = 0;
  let packets = 0;
  connection.on('packet', () => {
    const now = Math.floor(clock.steadyMs() / 1_000);
    packets = now === second ? packets + 1 : 1;
    second = now;
    if (packets > LIMITS.inboundPerSecond) connection.close(true);
  });
}
