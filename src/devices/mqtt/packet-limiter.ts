/**
 * Reads a socket no faster than its packets may be handled: it limits packets per second, and the messages that are being stored.
 * With MQTT 5, the count of these is the Receive Maximum of the service.
 */
import type { Socket } from 'node:net';
import { LIMITS } from '../../core/limits.js';
import { clock, type Timer } from '../../platform/clock.js';
import type { RawPacket } from './codec.js';
import type { OversizedMessage } from './oversized-message.js';
import { CONNECT, PacketReader, PUBLISH } from './packet-reader.js';
import type { ProtocolError } from './reason-codes.js';

export interface PacketLimiter {
  /** Call this when the client is connected. Until then only CONNECT passes. */
  open(): void;
  /** Counts a packet as so many more: the next ones wait longer. */
  charge(packets: number): void;
  /** Call this when a message was stored: another one may pass. */
  release(): void;
  /** Stops reading while the client does not take what it is sent, and continues. */
  setBlocked(isBlocked: boolean): void;
  /** Drops everything that arrives from now on. */
  stop(): void;
  /** Whether bytes wait that were read. */
  isHolding(): boolean;
  /** Whether the last packet was a DISCONNECT. */
  hasDisconnected(): boolean;
}

export interface LimiterHandlers {
  onPacket(packet: RawPacket): void;
  /** Called for each message that is too large. */
  onOversized(message: OversizedMessage): void;
  /** The connection must end. */
  onFault(error: ProtocolError): void;
}

/** `now`: a clock in ms. */
export const limitPackets = (socket: Socket, now: () => number, handlers: LimiterHandlers): PacketLimiter =>
  new Limiter(socket, now, handlers);

/** A class, because there is one for each of very many connections. */
class Limiter implements PacketLimiter {
  readonly #socket: Socket;
  readonly #handlers: LimiterHandlers;
  readonly #budget: Budget;
  readonly #reader: PacketReader;
  #isOpen = false;
  #isBlocked = false;
  #isStopped = false;
  #droppedBytes = 0;
  #held: Buffer | null = null;
  #timer: Timer | null = null;

  constructor(socket: Socket, now: () => number, handlers: LimiterHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    this.#budget = createBudget(now);
    this.#reader = new PacketReader({
      mayBegin: (type) => type === CONNECT || (this.#mayPass() && this.#budget.take(type === PUBLISH)),
      onMessageLength: this.#budget.measure,
      onPacket: handlers.onPacket,
      onOversized: handlers.onOversized,
    });
    socket.on('data', (chunk) => this.#pass(chunk));
    socket.on('close', () => clock.clearTimer(this.#timer));
  }

  open(): void {
    this.#isOpen = true;
    this.#resume();
  }

  charge(packets: number): void {
    this.#budget.charge(packets);
  }

  release(): void {
    this.#budget.give();
    this.#resume();
  }

  setBlocked(isBlocked: boolean): void {
    this.#isBlocked = isBlocked;
    if (isBlocked) this.#socket.pause();
    else if (this.#held === null) this.#socket.resume();
    else this.#resume();
  }

  stop(): void {
    this.#isStopped = true;
    this.#held = null;
    clock.clearTimer(this.#timer);
    this.#reader.stop();
    this.#socket.resume();
  }

  isHolding(): boolean {
    return this.#held !== null;
  }

  hasDisconnected(): boolean {
    return this.#reader.hasDisconnected;
  }

  #mayPass(): boolean {
    return this.#isOpen && !this.#isBlocked;
  }

  #pass(chunk: Buffer): void {
    if (this.#isStopped) {
      this.#drop(chunk);
      return;
    }
    this.#held = null;
    let taken: number;
    try {
      taken = this.#reader.read(chunk);
    } catch (error) {
      this.#handlers.onFault(error as ProtocolError);
      return;
    }
    if (this.#isStopped || taken === chunk.length) return;
    this.#held = chunk.subarray(taken);
    this.#socket.pause();
    // If too many messages are being stored, `release` continues; if the packet rate is too high, the timer does.
    if (this.#mayPass() && !this.#budget.isFull()) {
      this.#timer = clock.setTimeout(() => this.#resume(), LIMITS.mqttThrottleMs);
    }
  }

  #resume(): void {
    if (this.#held === null || this.#isBlocked || this.#socket.destroyed) return;
    const rest = this.#held;
    clock.clearTimer(this.#timer);
    this.#pass(rest);
    if (this.#held === null && !this.#isBlocked) this.#socket.resume();
  }

  /** An end that was sent reaches the client only if its bytes are still read, for a while. */
  #drop(chunk: Buffer): void {
    this.#droppedBytes += chunk.length;
    if (this.#droppedBytes > LIMITS.mqttStoringBytesPerDevice) this.#socket.destroy();
  }
}

/** Limits packets per second, with a burst of one second, and the count and bytes of messages that are being stored. */
interface Budget {
  take(isMessage: boolean): boolean;
  charge(packets: number): void;
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
    charge(packets) {
      tokens -= packets;
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
