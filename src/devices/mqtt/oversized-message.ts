/** Reads the head of a message that is too large to be stored, and drops its payload: it can still be acknowledged. */
import { LIMITS } from '../../core/limits.js';
import { malformed, ProtocolError, REASON } from './reason-codes.js';

/** A message that is too large to be stored. */
export interface OversizedMessage {
  readonly topic: string;
  readonly qos: number;
  /** Null for QoS 0. */
  readonly messageId: number | null;
  readonly bytes: number;
}

const LENGTH_BYTES = 2;
const ID_BYTES = 2;
/** Both bits of the QoS. */
const NO_QOS = 3;

/** Collects the topic and the identifier of a PUBLISH while its bytes arrive (section 3.3). */
export class OversizedReader {
  readonly #bytes: number;
  readonly #qos: number;
  #head = Buffer.alloc(LENGTH_BYTES);
  #collected = 0;
  #skipped = 0;

  /** `first` is the first byte of the packet, `bytes` its remaining length. */
  constructor(first: number, bytes: number) {
    this.#bytes = bytes;
    this.#qos = (first >> 1) & 3;
  }

  /**
   * Takes the next bytes of the packet. Returns the message once: when all of it has arrived, or, if it is so large that the
   * connection ends, as soon as its head has arrived. Throws ProtocolError if the packet is malformed or has no end.
   */
  take(chunk: Buffer): OversizedMessage | null {
    const wasRead = this.#isHeadRead();
    for (let rest = chunk; !this.#isHeadRead() && rest.length > 0; ) rest = rest.subarray(this.#collect(rest));
    this.#skipped += chunk.length;
    if (this.#qos === NO_QOS) throw malformed('a QoS that is none');
    const isEndless = this.#bytes > LIMITS.mqttSkippedBytes;
    if (this.#skipped > LIMITS.mqttSkippedBytes) {
      throw new ProtocolError(`a packet of more than ${LIMITS.mqttSkippedBytes} bytes`, REASON.packetTooLarge);
    }
    if (isEndless) return this.#isHeadRead() && !wasRead ? this.#message() : null;
    if (this.#skipped < this.#bytes) return null;
    if (!this.#isHeadRead()) throw malformed('a topic longer than its packet');
    return this.#message();
  }

  #isHeadRead(): boolean {
    return this.#head.length > LENGTH_BYTES && this.#collected === this.#head.length;
  }

  #collect(chunk: Buffer): number {
    const taken = chunk.copy(this.#head, this.#collected);
    this.#collected += taken;
    if (this.#collected === LENGTH_BYTES && this.#head.length === LENGTH_BYTES) {
      const more = this.#head.readUInt16BE(0) + (this.#qos === 0 ? 0 : ID_BYTES);
      this.#head = Buffer.concat([this.#head, Buffer.alloc(more)]);
    }
    return taken;
  }

  #message(): OversizedMessage {
    const topicEnd = LENGTH_BYTES + this.#head.readUInt16BE(0);
    return {
      topic: this.#head.toString('utf8', LENGTH_BYTES, topicEnd),
      qos: this.#qos,
      messageId: this.#qos === 0 ? null : this.#head.readUInt16BE(topicEnd),
      bytes: this.#bytes,
    };
  }
}
