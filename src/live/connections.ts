/**
 * Connections as they are beneath Socket.IO: how frames get on them; and the end of those that would cost without end, since
 * they fell silent, say too much, or do not read what they are told.
 */
import type { Server, Socket } from 'socket.io';
import { LIMITS } from '../model/limits.js';

export type Connection = Socket['conn'];

/** What a connection was told and has not taken yet, and when it last took some; ms of the process' own clock. */
interface Backlog {
  /** Bytes that wait for Engine.IO to hand them to the transport. */
  queued: number;
  /** Handed to the transport of long polling, which may not have been asked for it yet. */
  sent: number;
  /** How much of a WebSocket the network had taken at the last look. */
  taken: number;
  takenMs: number;
}

/** A WebSocket as it is beneath Engine.IO: private there, and used just as Engine.IO itself does. */
interface WebSocketTransport {
  readonly socket: {
    /** Bytes that the network has not taken. */
    readonly bufferedAmount: number;
    readonly _socket: { readonly bytesWritten: number };
    readonly _sender: { sendFrame(frames: readonly Uint8Array[]): void };
  };
}

const webSocketOf = ({ transport }: Connection): WebSocketTransport['socket'] | null =>
  transport.name === 'websocket' ? (transport as unknown as WebSocketTransport).socket : null;

// What waits for the transport; for polling, until the client asks.
const writeBufferOf = (connection: Connection): readonly unknown[] =>
  (connection as unknown as { writeBuffer: readonly unknown[] }).writeBuffer;

/** Whether the network took everything that was written. */
export function isDrained(connection: Connection): boolean {
  const webSocket = webSocketOf(connection);
  const { transport } = connection;
  return transport.writable && writeBufferOf(connection).length === 0 && (webSocket?.bufferedAmount ?? 0) === 0;
}

/** Whether whole frames can be written, which `writeFrames` does: for polling, packets are. */
export const takesFrames = (connection: Connection): boolean => webSocketOf(connection) !== null;

/**
 * Writes frames, made already, in one go. Where nothing of Engine.IO's waits they go past its queue, which for each of
 * many thousand writes a second waits until the network took the one before, and tells of it.
 */
export function writeFrames(connection: Connection, frames: Buffer): void {
  const isFree = connection.readyState === 'open' && connection.transport.writable;
  const webSocket = isFree && writeBufferOf(connection).length === 0 ? webSocketOf(connection) : null;
  if (webSocket !== null) webSocket._sender.sendFrame([frames]);
  else connection.write('', { compress: false, wsPreEncodedFrame: [frames] } as Parameters<Connection['write']>[1]);
}

/** Watches every connection of the server until the result is called. */
export function guardConnections(io: Server): () => void {
  const backlogs = new Map<Connection, Backlog>();
  io.engine.on('connection', (connection: Connection) => {
    backlogs.set(connection, measure(connection));
    connection.once('close', () => backlogs.delete(connection));
    boundInbound(connection);
    expectHeartbeats(connection);
  });
  const timer = setInterval(() => endSlow(backlogs), LIMITS.slowCheckMs).unref();
  return () => clearInterval(timer);
}

interface Packet {
  readonly data?: unknown;
  readonly options?: { readonly wsPreEncodedFrame?: readonly Uint8Array[] };
}

function measure(connection: Connection): Backlog {
  const backlog = { queued: 0, sent: 0, taken: 0, takenMs: performance.now() };
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
    const bytes = backlog.queued + bytesSent(connection, backlog, nowMs);
    if (bytes === 0) backlog.takenMs = nowMs;
    // Discarded: what waits would keep a graceful end waiting as well.
    if (bytes > LIMITS.waitingBytes || nowMs - backlog.takenMs > LIMITS.slowMs) connection.close(true);
  }
}

/** What was handed over and not taken. Notes whether some was taken since the last look. */
function bytesSent(connection: Connection, backlog: Backlog, nowMs: number): number {
  const webSocket = webSocketOf(connection);
  if (webSocket === null) return connection.transport.writable ? 0 : backlog.sent;
  const taken = webSocket._socket.bytesWritten - webSocket.bufferedAmount;
  if (taken !== backlog.taken) backlog.takenMs = nowMs;
  backlog.taken = taken;
  return webSocket.bufferedAmount;
}

/** Engine.IO forgets the heartbeat that it waits for when a client that came by polling changes to a WebSocket. */
function expectHeartbeats(connection: Connection): void {
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
