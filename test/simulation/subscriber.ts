/** A client of the live feed: it receives events over a network that takes time, and resumes with the position of the last one. */
import { ApiError, toApiError } from '../../src/core/errors.js';
import { type EventBatch, type Gap, type Listening, NO_FILTER } from '../../src/core/feed.js';
import type { Node } from './node.js';
import { between } from './random.js';
import type { VirtualTime } from './virtual-time.js';

export interface Received {
  readonly position: string;
  readonly name: string;
  /** The `_id` in its data. */
  readonly id: string;
  /** How long the oplog that a majority had was when it arrived. */
  readonly seen: number;
}

export interface SubscriberOptions {
  readonly time: VirtualTime;
  readonly name: string;
  readonly credential: string;
  readonly findNode: () => Node | null;
  readonly committed: () => number;
  readonly note: (name: string, details?: string) => void;
  /** Tells that an honest gap came for this position. */
  readonly onGap: (gap: Gap) => void;
}

interface Connection {
  readonly node: Node;
  isOpen: boolean;
  listening: Listening | null;
  /** What is on its way. */
  pending: number;
  latestMs: number;
}

export class SubscribedClient {
  readonly name: string;
  readonly received: Received[] = [];
  /** From where on it must have received everything: where it joined first, or after its last gap. */
  from: string | null = null;
  position: string | null = null;
  isLive = false;
  /** Its credential is gone. */
  isRefused = false;
  readonly #options: SubscriberOptions;
  #connection: Connection | null = null;
  #isStalled = false;
  #held: (() => void)[] = [];
  #gapIsOpen = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.name = options.name;
  }

  connect(): void {
    const { time, findNode, note } = this.#options;
    if (this.#connection !== null || this.isRefused) return;
    const node = findNode();
    if (node === null) {
      time.after(100, null, () => this.connect());
      return;
    }
    const connection: Connection = { node, isOpen: true, listening: null, pending: 0, latestMs: 0 };
    this.#connection = connection;
    const forget = node.onKill(() => this.#lost(connection, between(time.random, 1, 300)));
    time.after(between(time.random, 0.2, 2), node.incarnation, () => {
      if (!connection.isOpen) return;
      this.#listen(connection).catch((error: unknown) => {
        forget();
        this.#refused(connection, error);
      });
    });
    if (this.position !== null) note('client: resumes');
  }

  async #listen(connection: Connection): Promise<void> {
    const { instance } = connection.node;
    if (instance === null) throw new ApiError(503, 'the instance does not accept requests yet');
    const listening = await instance.feed.listen({
      credentials: { authorization: this.#options.credential },
      address: '10.0.0.1',
      filter: NO_FILTER,
      since: this.position,
      sink: {
        write: (batch) => this.#write(connection, batch),
        isDrained: () => connection.pending === 0,
        gap: (gap) => this.#deliver(connection, () => this.#gap(gap)),
        joined: (position) => this.#deliver(connection, () => this.#joined(position)),
        end: (mayReturn) => this.#deliver(connection, () => this.#lost(connection, mayReturn ? 1 : 50)),
      },
    });
    if (connection.isOpen) {
      connection.listening = listening;
      listening.start();
    } else listening.close();
  }

  #refused(connection: Connection, error: unknown): void {
    const { status } = toApiError(error);
    this.#options.note(`client: ${status}`);
    this.#deliver(connection, () => {
      if (status === 401) this.isRefused = true;
      else if (status !== 503 && status !== 429) this.#options.time.onError(error);
      this.#lost(connection, 100);
    });
  }

  #write(connection: Connection, batch: EventBatch): void {
    const pieces = batch.pieces('item').map(({ position, bytes }) => ({ position, text: bytes.toString() }));
    for (const { position, text } of pieces) {
      this.#deliver(connection, () => {
        this.position = position;
        const { event: name, data } = JSON.parse(text) as { event: string; data: { _id: string } };
        this.received.push({ position, name, id: data._id, seen: this.#options.committed() });
      });
    }
  }

  /** After everything that was sent before. */
  #deliver(connection: Connection, run: () => void): void {
    const { time } = this.#options;
    connection.pending++;
    connection.latestMs = Math.max(connection.latestMs, time.nowMs + between(time.random, 0.2, 3));
    const arrive = (): void => {
      if (!connection.isOpen) return;
      if (this.#isStalled) {
        this.#held.push(arrive);
        return;
      }
      connection.pending--;
      run();
    };
    time.after(connection.latestMs - time.nowMs, null, arrive);
  }

  #gap(gap: Gap): void {
    this.#gapIsOpen = true;
    this.#options.note(`client: gap, ${gap.reason}`);
    this.#options.onGap(gap);
  }

  #joined(position: string): void {
    this.isLive = true;
    if (this.from === null || this.#gapIsOpen) this.from = position;
    this.#gapIsOpen = false;
    this.position = position;
  }

  /** The connection is broken, from whichever side; it comes again. */
  #lost(connection: Connection, afterMs: number): void {
    if (!connection.isOpen) return;
    connection.isOpen = false;
    this.isLive = false;
    this.#held = [];
    this.#connection = null;
    const { time } = this.#options;
    const { listening, node } = connection;
    // The instance learns it a little later.
    if (listening !== null) time.after(between(time.random, 0.2, 20), node.incarnation, () => listening.close());
    time.after(afterMs, null, () => this.connect());
  }

  /** It comes again after so long. */
  disconnect(awayMs = between(this.#options.time.random, 1, 2_000)): void {
    if (this.#connection !== null) this.#lost(this.#connection, awayMs);
  }

  /** It takes nothing any more. */
  stall(): void {
    this.#isStalled = true;
  }

  resume(): void {
    this.#isStalled = false;
    for (const arrive of this.#held.splice(0)) arrive();
  }
}
