/**
 * Filters the bytes of a connection before the MQTT broker: it tracks packet boundaries, drops messages that are too large, ends the
 * connection at another packet that is too large or out of order before it is buffered, and limits the messages that are being
 * stored.
 */

import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { LIMITS } from '../../core/limits.js';
import { clock, type Timer } from '../../platform/clock.js';
import { type OversizedMessage, OversizedReader } from './oversized-message.js';

const CONNECT = 1;
const PUBLISH = 3;
const DISCONNECT = 14;

export interface PacketLimiter {
  /** The stream for the broker. */
  readonly stream: Duplex;
  /** Call this when the client is connected. Until then only CONNECT passes: the broker would treat others as errors. */
  readonly open: () => void;
  /** Call this when a message was stored: another one may pass. */
  readonly release: () => void;
  /** Whether the last packet was a DISCONNECT. */
  hasDisconnected(): boolean;
}

/** The position within the current packet. */
interface Progress {
  /** Type of the current packet; 0 before the first one. */
  type: number;
  /** The first byte of the current packet. */
  first: number;
  /** Count of parsed bytes of the length field; null between packets and inside a body. */
  lengthBytes: number | null;
  length: number;
  /** Remaining bytes of the body. */
  body: number;
  /** The bytes before the body that arrived in earlier chunks. They pass when the length is known. */
  head: Buffer | null;
  /** The message whose body is dropped; null if the body passes. */
  oversized: OversizedReader | null;
}

/** `now`: a clock in ms. `onOversized` is called for each message that is too large, which does not pass. */
export function limitPackets(
  socket: Socket,
  now: () => number,
  onOversized: (message: OversizedMessage) => void,
): PacketLimiter {
  const progress: Progress = { type: 0, first: 0, lengthBytes: null, length: 0, body: 0, head: null, oversized: null };
  const budget = createBudget(now);
  let isOpen = false;
  let held: Buffer | null = null;
  let timer: Timer | undefined;

  const stream = createStream(socket, () => held === null);
  const pass = (chunk: Buffer): void => {
    const result = follow(progress, chunk, isOpen ? budget : CLOSED);
    if (typeof result === 'string') {
      stream.destroy(new Error(result));
      return;
    }
    held = result.taken < chunk.length ? chunk.subarray(result.taken) : null;
    let isWanted = true;
    for (const bytes of result.passing) if (bytes.length > 0) isWanted = stream.push(bytes);
    for (const message of result.oversized) onOversized(message);
    if (held !== null || !isWanted) socket.pause();
    // If too many messages are being stored, `release` continues; if the packet rate is too high, the timer does.
    if (held !== null && isOpen && !budget.isFull()) timer = clock.setTimeout(resume, LIMITS.mqttThrottleMs);
  };
  const resume = (): void => {
    if (held === null || stream.destroyed) return;
    const rest = held;
    clock.clearTimer(timer);
    pass(rest);
    if (held === null) socket.resume();
  };
  socket.on('data', pass);
  socket.on('end', () => stream.push(null));
  socket.on('error', (error) => stream.destroy(error));
  socket.on('close', () => {
    clock.clearTimer(timer);
    stream.destroy();
  });
  return {
    stream,
    open() {
      isOpen = true;
      resume();
    },
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

/** What becomes of a chunk. */
interface Followed {
  /** The count of bytes that were used: less than the chunk if the budget refuses a packet. */
  readonly taken: number;
  readonly passing: readonly Buffer[];
  readonly oversized: readonly OversizedMessage[];
}

const NONE: readonly OversizedMessage[] = [];

/** Tracks a chunk. Returns an error text for a packet that ends the connection. */
function follow(progress: Progress, chunk: Buffer, budget: Pick<Budget, 'take' | 'measure'>): Followed | string {
  const passing: Buffer[] = [];
  let oversized = NONE;
  // What passes begins here.
  let from = 0;
  let headBegin = 0;
  let index = 0;
  while (index < chunk.length) {
    if (progress.body > 0) {
      const end = Math.min(index + progress.body, chunk.length);
      progress.body -= end - index;
      if (progress.oversized !== null) {
        const dropped = progress.oversized.take(chunk.subarray(index, end));
        if (typeof dropped === 'string') return dropped;
        if (dropped !== null) oversized = [...oversized, dropped];
        if (progress.body === 0) progress.oversized = null;
        from = end;
      }
      index = end;
      continue;
    }
    const byte = chunk[index] as number;
    if (progress.lengthBytes === null) {
      headBegin = index;
      const begun = begin(progress, byte, budget);
      if (typeof begun === 'string') return begun;
      if (!begun) break;
    } else {
      const fault = followLength(progress, byte);
      if (fault !== null) return fault;
      if (progress.lengthBytes === null) {
        if (progress.oversized !== null) {
          passing.push(chunk.subarray(from, headBegin));
          from = index + 1;
        } else {
          if (progress.head !== null) passing.push(progress.head);
          if (progress.type === PUBLISH) budget.measure(progress.length);
        }
        progress.head = null;
      }
    }
    index++;
  }
  const isInHead = progress.lengthBytes !== null;
  passing.push(chunk.subarray(from, isInHead ? headBegin : index));
  if (isInHead) progress.head = Buffer.concat([progress.head ?? EMPTY, chunk.subarray(headBegin, index)]);
  return { taken: index, passing, oversized };
}

const EMPTY = Buffer.alloc(0);
const CLOSED: Pick<Budget, 'take' | 'measure'> = { take: () => false, measure: () => undefined };

/** Begins a packet with its first byte. Returns false if the budget refuses it for now, or an error text. */
function begin(progress: Progress, first: number, { take }: Pick<Budget, 'take'>): boolean | string {
  const type = first >> 4;
  if ((type === CONNECT) !== (progress.type === 0)) return 'CONNECT must be the first packet, and be sent once';
  if (progress.type === DISCONNECT) return 'a packet after DISCONNECT';
  if (type !== CONNECT && !take(type === PUBLISH)) return false;
  Object.assign(progress, { type, first, lengthBytes: 0, length: 0 });
  return true;
}

// MQTT 3.1.1, section 2.2.3: seven bits per byte, the lowest first, at most four bytes.
function followLength(progress: Progress, byte: number): string | null {
  const count = progress.lengthBytes ?? 0;
  progress.length += (byte & 127) * 128 ** count;
  progress.lengthBytes = count + 1;
  if (byte >= 128) return count === 3 ? 'a length of more than four bytes' : null;
  const max = progress.type === CONNECT ? LIMITS.mqttConnectBytes : LIMITS.mqttPacketBytes;
  if (progress.length > max) {
    if (progress.type !== PUBLISH) return `a packet of more than ${max} bytes`;
    progress.oversized = new OversizedReader(progress.first, progress.length);
  }
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
