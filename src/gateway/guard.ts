/**
 * What stands before the MQTT broker: it follows the bytes of a connection from packet to packet, ends it where one is
 * too large or out of place before anything is buffered, and lets no more messages pass than are being stored.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { LIMITS } from '../model/limits.js';

const CONNECT = 1;
const PUBLISH = 3;
const DISCONNECT = 14;

export interface Guard {
  /** What the broker reads from and writes to. */
  readonly stream: Duplex;
  /** A message that passed was dealt with: another one may pass. */
  readonly release: () => void;
  /** Whether the client took its leave: the last packet that passed was a DISCONNECT. */
  hasLeft(): boolean;
}

/** How far a connection's bytes were followed. */
interface Progress {
  /** Type of the packet under way; 0 before the first one. */
  type: number;
  /** Bytes of the length that were read: null between packets and inside a body. */
  lengthBytes: number | null;
  length: number;
  /** Bytes of the body still to come. */
  body: number;
}

/** Puts a guard on a socket. `now`: a clock in ms. */
export function guardSocket(socket: Socket, now: () => number): Guard {
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
    // Too many are being stored: one that is stored calls `release`. Too many in a second: time does.
    if (held !== null && !budget.isFull()) timer = setTimeout(goOn, LIMITS.mqttThrottleMs);
  };
  const goOn = (): void => {
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
      goOn();
    },
    hasLeft: () => progress.type === DISCONNECT,
  };
}

/** The socket as a stream of its own, read from as long as `mayResume` says so. */
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
 * Follows a chunk; gives how much of it may pass, all of it unless the budget refuses a message, or what is wrong with
 * it. `take` asks for a packet of a type, `measure` tells how long the last message is.
 */
function follow(progress: Progress, chunk: Buffer, { take, measure }: Budget): number | string {
  for (let at = 0; at < chunk.length; ) {
    if (progress.body > 0) {
      const some = Math.min(progress.body, chunk.length - at);
      progress.body -= some;
      at += some;
      continue;
    }
    const byte = chunk[at] as number;
    if (progress.lengthBytes === null) {
      const type = byte >> 4;
      if ((type === CONNECT) !== (progress.type === 0)) return 'a connection begins with CONNECT, and has one';
      if (progress.type === DISCONNECT) return 'a packet after DISCONNECT';
      if (type !== CONNECT && !take(type === PUBLISH)) return at;
      Object.assign(progress, { type, lengthBytes: 0, length: 0 });
    } else {
      const fault = followLength(progress, byte);
      if (fault !== null) return fault;
      if (progress.type === PUBLISH && progress.lengthBytes === null) measure(progress.length);
    }
    at++;
  }
  return chunk.length;
}

// [MQTT-2.2.3]: seven bits a byte, the lowest first, at most four bytes.
function followLength(progress: Progress, byte: number): string | null {
  const count = progress.lengthBytes ?? 0;
  progress.length += (byte & 127) * 128 ** count;
  progress.lengthBytes = count + 1;
  if (byte >= 128) return count === 3 ? 'a length of more than four bytes' : null;
  const most = progress.type === CONNECT ? LIMITS.mqttConnectBytes : LIMITS.mqttPacketBytes;
  if (progress.length > most) return `a packet of more than ${most} bytes`;
  progress.body = progress.length;
  progress.lengthBytes = null;
  return null;
}

/** Packets per second, with a second's worth at once; and messages that are being stored, and their bytes. */
interface Budget {
  take(isMessage: boolean): boolean;
  measure(bytes: number): void;
  give(): void;
  isFull(): boolean;
}

function createBudget(now: () => number): Budget {
  const most = LIMITS.mqttPacketsPerSecond;
  let tokens: number = most;
  let filledMs = now();
  /** How long each is, in the order that they came in. Any one ends first: in the end the sum is right. */
  const storing: number[] = [];
  let storingBytes = 0;
  const isFull = (): boolean =>
    storing.length >= LIMITS.mqttStoringPerDevice || storingBytes >= LIMITS.mqttStoringBytesPerDevice;
  return {
    isFull,
    take(isMessage) {
      const nowMs = now();
      tokens = Math.min(most, tokens + (Math.max(0, nowMs - filledMs) * most) / 1_000);
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
