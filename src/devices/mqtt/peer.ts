/** A client's side of a connection: what is sent to it, and how the connection ends. */
import type { Socket } from 'node:net';
import type { Packet } from 'mqtt-packet';
import { LIMITS } from '../../core/limits.js';
import { cutReason } from '../../packets/reasons.js';
import { clock, type Timer } from '../../platform/clock.js';
import { encode, type Version } from './codec.js';
import { type LimiterHandlers, limitPackets, type PacketLimiter } from './packet-limiter.js';
import { REASON } from './reason-codes.js';
import type { Ending } from './sessions.js';

export interface PeerOptions extends LimiterHandlers {
  readonly address: string;
  /** A clock in ms. */
  readonly now: () => number;
  /** Called once, when the connection ends. */
  readonly onEnd: () => void;
}

/** What a client of MQTT 5 says of itself in CONNECT (section 3.1.2.11). */
export interface PeerLimits {
  /** How many messages may be sent to it without its acknowledgement. */
  readonly receiveMaximum: number;
  readonly maxPacketBytes: number;
  /** Whether acknowledgements may have a reason as text. */
  readonly wantsReasons: boolean;
}

/** The defaults, and what holds for earlier versions. */
export const NO_LIMITS: PeerLimits = {
  receiveMaximum: 65_535,
  maxPacketBytes: Number.POSITIVE_INFINITY,
  wantsReasons: true,
};

const NOTHING = Buffer.alloc(0);

/** A class, because there is one for each of very many connections. */
export class Peer {
  readonly address: string;
  readonly limiter: PacketLimiter;
  /** Null before CONNECT. */
  version: Version | null = null;
  limits: PeerLimits = NO_LIMITS;
  readonly #socket: Socket;
  readonly #onEnd: () => void;
  #isConnected = false;
  #isEnded = false;
  /** Whether the client closed it, before the service ended it. */
  #isClosed = false;
  #isCorked = false;
  /** The time for CONNECT, and then the keep-alive. */
  #deadline: Timer | null = null;
  #drainTimer: Timer | null = null;

  constructor(socket: Socket, options: PeerOptions) {
    this.address = options.address;
    this.#socket = socket;
    this.#onEnd = options.onEnd;
    this.limiter = limitPackets(socket, options.now, options);
    this.#deadline = clock.setTimeout(() => this.close(), LIMITS.mqttConnectMs);
    socket.once('end', () => {
      this.#isClosed = !this.#isEnded;
    });
    socket.once('close', () => this.#finish());
  }

  /** How the client ended the connection. */
  get ending(): Ending {
    if (this.limiter.hasDisconnected()) return 'disconnected';
    return this.#isClosed ? 'closed' : 'lost';
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** CONNECT arrived: its time is over. */
  stopDeadline(): void {
    clock.clearTimer(this.#deadline);
    this.#deadline = null;
  }

  /** The client is connected: lets its next packets pass, and ends the connection when it is silent. */
  open(keepAliveS: number): void {
    this.#isConnected = true;
    this.#watchSilence(keepAliveS * 1_500);
    this.limiter.open();
  }

  // [MQTT-3.1.2-22]: one and a half times the keep-alive.
  #watchSilence(silentMs: number): void {
    this.#deadline = clock.setTimeout(() => {
      // The client is not silent while its packets wait here.
      if (this.limiter.isHolding()) this.#watchSilence(silentMs);
      else this.end(REASON.keepAliveTimeout, 'no packet within one and a half times the keep-alive');
    }, silentMs);
  }

  /** A packet of the client arrived. */
  touch(): void {
    this.#deadline?.refresh();
  }

  /** Sends bytes; those of one turn of the event loop go together. `onSent` gets whether they were sent. */
  write(bytes: Buffer, onSent?: (isSent: boolean) => void): void {
    if (this.#isEnded) {
      onSent?.(false);
      return;
    }
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#socket.cork();
      process.nextTick(() => this.#uncork());
    }
    const isTaken = this.#socket.write(bytes, onSent === undefined ? undefined : (error) => onSent(!error));
    if (!isTaken && this.#drainTimer === null) this.#waitForDrain();
  }

  /** The bytes of a packet; null if it is larger than the client accepts ([MQTT-3.1.2-24]). A reason is left out if there is no room for it. */
  encode(packet: Packet): Buffer | null {
    const version = this.version ?? 4;
    const bytes = encode(packet, version);
    if (bytes.length <= this.limits.maxPacketBytes) return bytes;
    if (!('properties' in packet) || packet.cmd === 'publish') return null;
    const { properties: _, ...short } = packet;
    const shortBytes = encode(short as Packet, version);
    return shortBytes.length <= this.limits.maxPacketBytes ? shortBytes : null;
  }

  send(packet: Packet): void {
    const bytes = this.encode(packet);
    if (bytes === null) this.end(REASON.packetTooLarge, 'the answer is larger than the client accepts');
    else this.write(bytes);
  }

  /** Ends the connection. MQTT 5 says why with DISCONNECT (section 3.14.4); earlier versions have no word for it. */
  end(reasonCode: number, reason: string): void {
    if (this.#isEnded) return;
    // [MQTT-3.14.0-1]: not before CONNACK.
    const isTold = this.version === 5 && this.#isConnected;
    const properties = { reasonString: cutReason(reason) };
    this.#finish(isTold ? this.encode({ cmd: 'disconnect', reasonCode, properties }) : null);
  }

  /** Ends the connection after a last packet, or after what was sent. */
  finish(last: Buffer = NOTHING): void {
    this.#finish(last);
  }

  /** Ends the connection without a word. */
  close(): void {
    this.#finish();
  }

  #finish(last: Buffer | null = null): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.stopDeadline();
    clock.clearTimer(this.#drainTimer);
    this.limiter.stop();
    if (last === null) {
      // Acknowledgements that were written are sent first.
      this.#uncork();
      this.#socket.destroy();
    } else this.#socket.end(last);
    this.#onEnd();
  }

  #uncork(): void {
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#socket.uncork();
  }

  /** A client that does not read what it is sent is not read from, and is disconnected after a while. */
  #waitForDrain(): void {
    this.limiter.setBlocked(true);
    this.#drainTimer = clock.setTimeout(() => this.close(), LIMITS.mqttDrainMs);
    this.#socket.once('drain', () => {
      clock.clearTimer(this.#drainTimer);
      this.#drainTimer = null;
      if (!this.#isEnded) this.limiter.setBlocked(false);
    });
  }
}
