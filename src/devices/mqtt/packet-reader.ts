/**
 * Splits the bytes of a connection into packets. It drops messages that are too large, and refuses any other packet that is too
 * large or out of order before it is buffered.
 */
import { LIMITS } from '../../core/limits.js';
import type { RawPacket } from './codec.js';
import { type OversizedMessage, OversizedReader } from './oversized-message.js';
import { malformed, ProtocolError, REASON } from './reason-codes.js';

export const CONNECT = 1;
export const PUBLISH = 3;
const DISCONNECT = 14;

export interface PacketHandlers {
  /** Whether the next packet may begin. If not, the rest of the bytes is given again later. */
  mayBegin(type: number): boolean;
  /** The length of a message that begins. */
  onMessageLength(bytes: number): void;
  onPacket(packet: RawPacket): void;
  /** A message that is too large: it is dropped. */
  onOversized(message: OversizedMessage): void;
}

const EMPTY = Buffer.alloc(0);
const FIRST_PIECE_BYTES = 256;
/** Bytes of the fixed header of the largest packet: its type, and three bytes of length (section 2.1.4). */
const HEADER_BYTES = 4;

/** The largest packet that is accepted, with its fixed header. */
export const MAX_PACKET_BYTES = LIMITS.mqttPacketBytes + HEADER_BYTES;

/** A class, because there is one for each of very many connections. */
export class PacketReader {
  /** Type of the current packet; 0 before the first one. */
  #type = 0;
  /** The first byte of the current packet. */
  #first = 0;
  /** Count of parsed bytes of the length field; null between packets and inside a body. */
  #lengthBytes: number | null = null;
  #length = 0;
  /** Remaining bytes of the body. */
  #body = 0;
  /** The bytes of the current packet that arrived in earlier chunks. */
  #collected = EMPTY;
  #collectedBytes = 0;
  /** The message whose body is dropped; null if the body is kept. */
  #oversized: OversizedReader | null = null;
  #isStopped = false;
  readonly #on: PacketHandlers;

  constructor(handlers: PacketHandlers) {
    this.#on = handlers;
  }

  /** Whether the last packet was a DISCONNECT. */
  get hasDisconnected(): boolean {
    return this.#type === DISCONNECT;
  }

  /** Nothing more is read, not even the rest of the current bytes. */
  stop(): void {
    this.#isStopped = true;
    this.#collected = EMPTY;
  }

  /** Reads bytes. Returns how many were used: less than all if the next packet may not begin. Throws ProtocolError. */
  read(chunk: Buffer): number {
    let index = 0;
    // Where the current packet begins in the chunk.
    let beginAt = 0;
    while (index < chunk.length) {
      if (this.#isStopped) return chunk.length;
      if (this.#body > 0) {
        const end = Math.min(index + this.#body, chunk.length);
        this.#body -= end - index;
        if (this.#oversized !== null) this.#skip(this.#oversized, chunk.subarray(index, end));
        else if (this.#body === 0) this.#finish(chunk.subarray(beginAt, end));
        index = end;
      } else if (this.#lengthBytes === null) {
        beginAt = index;
        if (!this.#begin(chunk[index] as number)) return index;
        index++;
      } else {
        this.#readLength(chunk[index] as number);
        index++;
        if (this.#lengthBytes === null && this.#length === 0) this.#finish(chunk.subarray(beginAt, index));
      }
    }
    const isInside = this.#lengthBytes !== null || this.#body > 0;
    if (isInside && this.#oversized === null) this.#collect(chunk.subarray(beginAt));
    return chunk.length;
  }

  #begin(first: number): boolean {
    const type = first >> 4;
    // [MQTT-3.1.0-1], [MQTT-3.1.0-2]
    if ((type === CONNECT) !== (this.#type === 0)) {
      throw new ProtocolError('CONNECT must be the first packet, and be sent once');
    }
    if (!this.#on.mayBegin(type)) return false;
    this.#type = type;
    this.#first = first;
    this.#lengthBytes = 0;
    this.#length = 0;
    return true;
  }

  // Section 2.1.4: seven bits per byte, the lowest first, at most four bytes.
  #readLength(byte: number): void {
    const count = this.#lengthBytes ?? 0;
    this.#length += (byte & 127) * 128 ** count;
    this.#lengthBytes = count + 1;
    if (byte >= 128) {
      if (count === 3) throw malformed('a length of more than four bytes');
      return;
    }
    const max = this.#type === CONNECT ? LIMITS.mqttConnectBytes : LIMITS.mqttPacketBytes;
    if (this.#length > max) {
      if (this.#type !== PUBLISH) throw new ProtocolError(`a packet of more than ${max} bytes`, REASON.packetTooLarge);
      this.#oversized = new OversizedReader(this.#first, this.#length);
      this.#collectedBytes = 0;
    } else if (this.#type === PUBLISH) this.#on.onMessageLength(this.#length);
    this.#body = this.#length;
    this.#lengthBytes = null;
  }

  #skip(oversized: OversizedReader, bytes: Buffer): void {
    const message = oversized.take(bytes);
    if (this.#body === 0) this.#oversized = null;
    if (message !== null) this.#on.onOversized(message);
  }

  #finish(last: Buffer): void {
    let bytes = last;
    if (this.#collectedBytes > 0) {
      this.#collect(last);
      bytes = this.#collected.subarray(0, this.#collectedBytes);
      this.#collected = EMPTY;
      this.#collectedBytes = 0;
    }
    this.#on.onPacket({ bytes, bodyAt: bytes.length - this.#length });
  }

  // Grows with what arrived, not with the length that a client promised.
  #collect(bytes: Buffer): void {
    const size = this.#collectedBytes + bytes.length;
    if (size > this.#collected.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(size, FIRST_PIECE_BYTES, 2 * this.#collected.length));
      this.#collected.copy(grown, 0, 0, this.#collectedBytes);
      this.#collected = grown;
    }
    bytes.copy(this.#collected, this.#collectedBytes);
    this.#collectedBytes = size;
  }
}
