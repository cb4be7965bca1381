/**
 * A device that is connected over MQTT. It sends several messages before the first one is acknowledged, and after each connection those
 * again that were not, in their order. It stays away, or comes again at another instance before the former one knows.
 */

import { type DeviceOptions, type SendingDevice, valuesOf } from './device.js';
import type { Node } from './node.js';
import type { InstanceSide } from './presence-parts.js';
import { between } from './random.js';

/** Messages that it has under way. */
const AT_ONCE = 3;
/** It gives a connection up on which nothing is acknowledged for so long. */
const ANSWER_MS = 12_000;

interface Waiting {
  readonly messageId: number;
  readonly ids: readonly string[];
  readonly payload: string;
  /** The connection on which it was sent last. */
  connection: Link | null;
  isAgain: boolean;
}

interface Link {
  readonly node: Node;
  isOpen: boolean;
  side: InstanceSide | null;
  forget: () => void;
}

export class MqttDevice implements SendingDevice {
  readonly objectId: string;
  readonly sent: string[] = [];
  readonly acknowledged = new Set<string>();
  readonly #options: DeviceOptions;
  #waiting: Waiting[] = [];
  #link: Link | null = null;
  #messages = 0;
  /** Whether it wants to be connected. */
  #isAwake = false;

  constructor(options: DeviceOptions) {
    this.#options = options;
    this.objectId = options.objectId;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0 || !this.#isAwake;
  }

  get isConnected(): boolean {
    return this.#link?.isOpen === true;
  }

  /** It comes, unless it is there. */
  wake(): void {
    this.#isAwake = true;
    this.#connect();
  }

  /** The connection breaks; the instance learns it after so long. */
  break(learnsMs: number): void {
    this.#isAwake = false;
    if (this.#link !== null) this.#lose(this.#link, learnsMs);
  }

  /** Adds packets, which are sent as one message. */
  send(count: number, timeMs: number | null): void {
    const { ownId } = this.#options;
    const packets = Array.from({ length: count }, () => {
      const nth = this.sent.length;
      const _id = `${ownId.charCodeAt(1).toString(16)}${nth.toString(16).padStart(22, '0')}`;
      this.sent.push(_id);
      return { _id, n: nth, ...valuesOf(nth), ...(timeMs !== null && { time: timeMs }) };
    });
    this.#messages = (this.#messages % 65_535) + 1;
    const ids = packets.map(({ _id }) => _id);
    const payload = JSON.stringify(packets);
    this.#waiting.push({ messageId: this.#messages, ids, payload, connection: null, isAgain: false });
    this.#sendMore();
  }

  #connect(): void {
    if (!this.#isAwake || this.#link !== null) return;
    const { time, ownId, findNode } = this.#options;
    const node = findNode();
    const presence = node?.instance?.presence ?? null;
    if (node === null || presence === null) {
      time.after(100, null, () => this.#connect());
      return;
    }
    const link: Link = { node, isOpen: false, side: null, forget: () => undefined };
    this.#link = link;
    link.forget = node.onKill(() => this.#lose(link, null));
    const arrive = (run: () => void): void =>
      void time.after(between(time.random, 0.2, 2), null, () => this.#link === link && run());
    time.after(between(time.random, 0.2, 2), node.incarnation, () => {
      if (this.#link !== link) return;
      link.side = presence.connect(ownId, {
        onOpen: () => arrive(() => this.#open(link)),
        onEnd: () => arrive(() => this.#lose(link, null)),
        onStored: (messageId) => arrive(() => this.#acknowledge(messageId)),
      });
    });
    time.after(ANSWER_MS, null, () => this.#link === link && !link.isOpen && this.#lose(link, 1));
  }

  #open(link: Link): void {
    link.isOpen = true;
    this.#sendMore();
  }

  #sendMore(): void {
    const link = this.#link;
    if (link === null || !link.isOpen) return;
    const { time } = this.#options;
    for (const one of this.#waiting.slice(0, AT_ONCE)) {
      if (one.connection === link) continue;
      const { messageId, payload, isAgain } = one;
      Object.assign(one, { connection: link, isAgain: true });
      // All take as long, so that they arrive in their order.
      time.after(1, link.node.incarnation, () => link.side?.publish({ messageId, payload, isAgain }));
      time.after(ANSWER_MS, null, () => {
        if (this.#link === link && this.#waiting.includes(one)) this.#lose(link, 1);
      });
    }
  }

  #acknowledge(messageId: number): void {
    const found = this.#waiting.find((one) => one.messageId === messageId);
    if (found === undefined) return;
    for (const id of found.ids) this.acknowledged.add(id);
    this.#waiting = this.#waiting.filter((one) => one !== found);
    this.#sendMore();
  }

  /** Null: the instance knows. */
  #lose(link: Link, learnsMs: number | null): void {
    if (this.#link !== link) return;
    const { time, note } = this.#options;
    this.#link = null;
    link.isOpen = false;
    link.forget();
    note('device: disconnected');
    if (learnsMs !== null) time.after(learnsMs, link.node.incarnation, () => link.side?.end());
    time.after(between(time.random, 1, 300), null, () => this.#connect());
  }
}
