/**
 * Filters the bytes of a connection before the MQTT broker: it tracks packet boundaries, ends the connection at a packet that is too
 * large or out of order before it is buffered, and limits the messages that are being stored.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { LIMITS } from '../../core/limits.js';

const CONNECT = 1;
const PUBLISH = 3;
const DISCONNECT = 14;

export interface PacketLimiter {
  /** The stream for the broker. */
  readonly stream: Duplex;
  /** Call this when a message was stored: another one may pass. */
  readonly release: () => void;
  /** Whether the last packet was a DISCONNECT. */
  hasDisconnected(): boolean;
}

/** The position within the current packet. */
interface Progress {
  /** Type of the current packet; 0 before the first one. */
  type: number;
  /** Count of parsed bytes of the length field; null between packets and inside a body. */
  lengthBytes: number | null;
  length: number;
  /** Remaining bytes of the body. */
  body: number;
}

/** `now`: a clock in ms. */
export function limitPackets(socket: Socket, now: () => number): PacketLimiter {
  const progress: Progress = { type: 0, lengthBytes: null, length: 0, body: 0 };
  const budget = createBudget(now);
  let held: Buffer | null = null;
  let timer: NodeJS.Timeout | undefined;

  const stream = createStream(socket, () => held === null);
  const pass = (chunk: Buffer): void => {
    const result = follow(progress, chunk, budget);
    if (typeof result === 'string') {
      stream.destroy(new Error(result));
      return;
    }
    held = result < chunk.length ? chunk.subarray(result) : null;
    const isWanted = result === 0 || stream.push(chunk.subarray(0, result));
    if (held !== null || !isWanted) socket.pause();
    // If too many messages are being stored, `release` continues; if the packet rate is too high, the timer does.
    if (held !== null && !budget.isFull()) timer = setTimeout(resume, LIMITS.mqttThrottleMs);
  };
  const resume = (): void => {
    if (held === null || stream.destroyed) return;
    const rest = held;
    clearTimeout(timer);
    pass(rest);
    if (held === null) socket.resume();
  };
  socket.on('data', pass);
  socket.on('end', () => stream.push(null));
  socket.on('error', (error) => stream.destroy(error));
  socket.on('close', () => {
    clearTimeout(timer);
    stream.destroy();
  });
  return {
    stream,
    release() {
      budget.give();
      resume();
    },
    hasDisconnected: () => progress.type === DISCONNECT,
  };
}

/** Wraps the socket in a stream that reads from it only while `mayResume` returns true. */
function createStream(socket: Socket, mayResume: () => boolean): Duplex {
  const write = (bytes: Buffer, done: () => void): void =>
    void (socket.write(bytes) ? done() : socket.once('drain', done));
  return new Duplex({
    read: () => void (mayResume() && socket.resume()),
    write: (chunk, _encoding, done) => write(chunk, done),
    writev: (chunks, done) => write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
}

/**
 * Tracks a chunk. Returns the count of bytes that may pass, which is less than the chunk if the budget refuses a packet, or an error
 * text. `take` requests a packet of a type; `measure` sets the length of the last message.
 */
function follow(progress: Progress, chunk: Buffer, { take, measure }: Budget): number | string {
  for (let index = 0; index < chunk.length; ) {
    if (progress.body > 0) {
      const skipped = Math.min(progress.body, chunk.length - index);
      progress.body -= skipped;
      index += skipped;
      continue;
    }
    const byte = chunk[index] as number;
    if (progress.lengthBytes === null) {
      const type = byte >> 4;
      if ((type === CONNECT) !== (progress.type === 0)) return 'CONNECT must be the first packet, and be sent once';
      if (progress.type === DISCONNECT) return 'a packet after DISCONNECT';
      if (type !== CONNECT && !take(type === PUBLISH)) return index;
      Object.assign(progress, { type, lengthBytes: 0, length: 0 });
    } else {
      const fault = followLength(progress, byte);
      if (fault !== null) return fault;
      if (progress.type === PUBLISH && progress.lengthBytes === null) measure(progress.length);
    }
    index++;
  }
  return chunk.length;
}

// MQTT 3.1.1, section 2.2.3: seven bits per byte, the lowest first, at most four bytes.
function followLength(progress: Progress, byte: number): string | null {
  const count = progress.lengthBytes ?? 0;
  progress.length += (byte & 127) * 128 ** count;
  progress.lengthBytes = count + 1;
  if (byte >= 128) return count === 3 ? 'a length of more than four bytes' : null;
  const max = progress.type === CONNECT ? LIMITS.mqttConnectBytes : LIMITS.mqttPacketBytes;
  if (progress.length > max) return `a packet of more than ${max} bytes`;
  progress.body = progress.length;
  progress.lengthBytes = null;
  return null;
}

/** Limits packets per second, with a burst of one second, and the count and bytes of messages that are being stored. */
interface Budget {
  take(isMessage: boolean): boolean;
  measure(bytes: number): void;
  give(): void;
  isFull(): boolean;
}

function createBudget(now: () => number): Budget {
  const max = LIMITS.mqttPacketsPerSecond;
  let tokens: number = max;
  let filledMs = now();
  /** Lengths in order of arrival. Messages may finish in any order, but the sum is correct once all have finished. */
  const storing: number[] = [];
  let storingBytes = 0;
  const isFull = (): boolean =>
    storing.length >= LIMITS.mqttStoringPerDevice || storingBytes >= LIMITS.mqttStoringBytesPerDevice;
  return {
    isFull,
    take(isMessage) {
      const nowMs = now();
      tokens = Math.min(max, tokens + (Math.max(0, nowMs - filledMs) * max) / 1_000);
      filledMs = nowMs;
      if (tokens < 1 || (isMessage && isFull())) return false;
      tokens--;
      if (isMessage) storing.push(0);
      return true;
    },
    measure(bytes) {
      storing[storing.length - 1] = bytes;
      storingBytes += bytes;
    },
    give() {
      storingBytes -= storing.shift() ?? 0;
    },
  };
}
