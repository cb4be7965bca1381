/**
 * A device: it sends its packets one request after the other, each until it is acknowledged, to whichever instance it finds. All
 * its packets carry an `_id` of their own, so that it may send them again.
 */

import { toApiError } from '../../src/core/errors.js';
import { declarationsOf } from '../../src/core/model.js';
import { parseBatch } from '../../src/packets/packet.js';
import { clock } from '../../src/platform/clock.js';
import type { Node } from './node.js';
import { between } from './random.js';
import type { VirtualTime } from './virtual-time.js';

const ANSWER_MS = 12_000;

export interface DeviceOptions {
  readonly time: VirtualTime;
  readonly objectId: string;
  readonly ownId: string;
  readonly groupId: string;
  /** An instance that accepts requests; null while there is none. */
  readonly findNode: () => Node | null;
  readonly note: (name: string, details?: string) => void;
}

/** What it measures: mixed, and the same in each run. */
export function valuesOf(nth: number): { t?: number; u?: number } {
  const mixed = Math.imul(nth + 1, 2_654_435_761) >>> 8;
  return { ...(mixed % 5 > 0 && { t: mixed % 11 }), ...(mixed % 3 > 0 && { u: mixed % 7 }) };
}

/** A device, however it sends. */
export interface SendingDevice {
  readonly objectId: string;
  /** The `_id`s of all its packets, in order. */
  readonly sent: readonly string[];
  readonly acknowledged: ReadonlySet<string>;
  /** When packets were stored, as answers say, by their `_id`s. */
  readonly stamps?: ReadonlyMap<string, number>;
  /** Whether nothing waits that it can send now. */
  readonly isIdle: boolean;
  /** Adds packets, which are sent as one request, or message. */
  send(count: number, timeMs: number | null): void;
}

export class Device implements SendingDevice {
  readonly objectId: string;
  /** The `_id`s of all its packets, in order. */
  readonly sent: string[] = [];
  readonly acknowledged = new Set<string>();
  readonly stamps = new Map<string, number>();
  readonly #options: DeviceOptions;
  readonly #packets: { readonly _id: string }[] = [];
  #waiting: { readonly _id: string }[][] = [];
  #isSending = false;

  constructor(options: DeviceOptions) {
    this.#options = options;
    this.objectId = options.objectId;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0;
  }

  /** Adds packets, which are sent as one request; the times of them are so far apart. */
  send(count: number, timeMs: number | null, apartMs = 0): void {
    const { ownId } = this.#options;
    const packets = Array.from({ length: count }, (_, place) => {
      const nth = this.sent.length;
      const _id = `${ownId.charCodeAt(1).toString(16)}${nth.toString(16).padStart(22, '0')}`;
      this.sent.push(_id);
      return { _id, n: nth, ...valuesOf(nth), ...(timeMs !== null && { time: timeMs + place * apartMs }) };
    });
    this.#packets.push(...packets);
    this.#waiting.push(packets);
    this.#sendNext();
  }

  /** Sends some again, as one request, that it has sent before. */
  repeat(count: number): void {
    const { random } = this.#options.time;
    const first = Math.floor(random() * this.#packets.length);
    const packets = this.#packets.slice(first, first + count);
    if (packets.length > 0) this.#waiting.push(packets);
    this.#sendNext();
  }

  #sendNext(): void {
    const [packets] = this.#waiting;
    if (packets === undefined || this.#isSending) return;
    this.#isSending = true;
    const { time, findNode, note } = this.#options;
    const again = (afterMs: number): void => {
      this.#isSending = false;
      time.after(afterMs, null, () => this.#sendNext());
    };
    const node = findNode();
    if (node === null) {
      again(100);
      return;
    }
    let isOver = false;
    const end = (run: () => void): void => {
      if (isOver) return;
      isOver = true;
      forget();
      run();
    };
    const forget = node.onKill(() => end(() => again(between(time.random, 1, 200))));
    time.after(ANSWER_MS, null, () => end(() => again(1)));
    const answer = (run: () => void): void => void time.after(between(time.random, 0.2, 2), null, () => end(run));
    time.after(between(time.random, 0.2, 2), node.incarnation, () => {
      this.#ingest(node, packets).then(
        () => answer(() => this.#acknowledge(packets)),
        (error: unknown) => {
          const { status } = toApiError(error);
          note(`device: ${status}`);
          if (status !== 503) time.onError(error);
          answer(() => again(between(time.random, 5, 500)));
        },
      );
    });
  }

  async #ingest(node: Node, packets: readonly { readonly _id: string }[]): Promise<void> {
    const { objectId, ownId, groupId, note } = this.#options;
    const { instance } = node;
    if (instance === null) throw new Error('the instance does not accept requests yet');
    const { messages, refused } = parseBatch(packets, declarationsOf(null), clock.now());
    if (refused.length > 0) throw new Error(refused[0]?.reason);
    const result = await instance.ingest({ objectId, ownId, groupId }, messages);
    for (const { _id, _ts } of result.packets) this.stamps.set(_id, Number(_ts));
    if (result.repeated.size > 0) note('device: packets that were stored before');
  }

  #acknowledge(packets: readonly { readonly _id: string }[]): void {
    for (const { _id } of packets) this.acknowledged.add(_id);
    this.#waiting = this.#waiting.filter((one) => one !== packets);
    this.#isSending = false;
    this.#sendNext();
  }
}
