/**
 * A browser with several tabs, in memory: locks, channels and connections to a service, whose deliveries happen in an order that
 * the test chooses. Each tab runs the console's own sharing of a connection.
 */
import type { EventRequest, EventSignal, LiveEvent, OpenEvents } from '../../src/client/event-source.js';
import { createEventStream, type EventState } from '../../src/client/events.js';
import { shareWithTabs } from '../../src/console/state/tabs.js';
import type { HowToLead } from '../../src/console/tabs/follow.js';

/** Of the event with this number, from 1 on; 0 is before all. */
export const positionAt = (nth: number): string => {
  const bytes = Buffer.alloc(9);
  bytes.writeUInt32BE(nth, 5);
  return bytes.toString('base64url');
};

export const numberAt = (position: string): number => Buffer.from(position, 'base64url').readUInt32BE(5);

interface Delivery {
  /** Deliveries with the same key happen in order. */
  readonly link: string;
  readonly to: SimulatedTab;
  run(): void;
}

interface Holder {
  readonly tab: SimulatedTab;
  lose(): void;
}

interface Waiting {
  readonly tab: SimulatedTab;
  take(): void;
}

export interface SimulatedTab {
  readonly name: string;
  isAlive: boolean;
  isFrozen: boolean;
  /** The numbers of the events that it has shown; null is a gap. */
  readonly seen: (number | null)[];
  state: EventState;
  /** The number of the last change when it was first live. */
  liveFrom: number | null;
  /** The status with which its stream ended. */
  endStatus: number | null;
  readonly document: EventTarget;
}

interface Connection {
  readonly tab: SimulatedTab;
  readonly link: string;
  put(signal: EventSignal | Error | null): void;
}

export interface Browser {
  readonly tabs: readonly SimulatedTab[];
  readonly connections: ReadonlySet<Connection>;
  readonly deliveries: number;
  /** How many connections were opened. */
  readonly opened: number;
  openTab(): SimulatedTab;
  /** The tab is gone at once, as after a crash. */
  closeTab(tab: SimulatedTab): void;
  /** The service has an event. */
  publish(count?: number): void;
  /** The service has a change that is no event for this user: only its position is told. */
  change(): void;
  /** Events of the past are no longer there. */
  forget(): void;
  /** The service ends all connections; with an error, it refuses new ones. */
  cut(error?: Error): void;
  /** One of the deliveries that wait, by a number from 0 to below 1. */
  deliver(choice: number): Promise<void>;
  deliverAll(): Promise<void>;
  /** The numbers of the events after this number. */
  events(after: number): number[];
}

const numbersTo = (last: number): number[] => Array.from({ length: last }, (_, nth) => nth + 1);

/** Until everything that was resolved has run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** History is kept for longer than any instance is behind. */
export const LARGEST_LAG = 2;

/** `lag` says how many changes an instance of the service is behind the others. */
export function createBrowser(lag = () => 0): Browser {
  const tabs: SimulatedTab[] = [];
  const connections = new Set<Connection>();
  const deliveries: Delivery[] = [];
  const channels = new Set<{ readonly tab: SimulatedTab; hear(data: unknown): void }>();
  let holder: Holder | null = null;
  let queue: Waiting[] = [];
  let last = 0;
  const hidden = new Set<number>();
  let kept = 0;
  let links = 0;
  let opened = 0;
  let refusal: Error | undefined;

  const send = (to: SimulatedTab, link: string, run: () => void): void => void deliveries.push({ link, to, run });

  const grantNext = (): void => queue.shift()?.take();

  const locksOf = (tab: SimulatedTab) => ({
    request: (_name: string, how: HowToLead, hold: (lock: object | null) => unknown) =>
      new Promise<unknown>((resolve, reject) => {
        const link = `lock ${links++}`;
        const take = (): void => {
          const mine: Holder = { tab, lose: () => send(tab, link, () => reject(new Error('stolen'))) };
          holder = mine;
          const release = (): void => {
            if (holder !== mine || !tab.isAlive) return;
            holder = null;
            resolve(undefined);
            grantNext();
          };
          send(tab, link, () => void Promise.resolve(hold({})).then(release));
        };
        if (how.steal) holder?.lose();
        if (how.steal || holder === null) take();
        else if (how.ifAvailable) send(tab, link, () => resolve(hold(null)));
        else queue.push({ tab, take });
      }),
  });

  const channelClassOf = (tab: SimulatedTab) =>
    class {
      readonly #listeners = new Set<(event: { data: unknown }) => void>();
      readonly #id = links++;
      readonly #entry = {
        tab,
        hear: (data: unknown): void => {
          for (const listener of [...this.#listeners]) listener({ data });
        },
      };
      constructor() {
        channels.add(this.#entry);
      }
      postMessage(message: unknown): void {
        if (!tab.isAlive) return;
        if (!channels.has(this.#entry)) throw new Error('the channel is closed');
        const data = structuredClone(message);
        for (const other of channels) {
          if (other === this.#entry) continue;
          send(other.tab, `channel ${this.#id}`, () => channels.has(other) && other.hear(data));
        }
      }
      addEventListener(_name: string, listener: (event: { data: unknown }) => void): void {
        this.#listeners.add(listener);
      }
      removeEventListener(_name: string, listener: (event: { data: unknown }) => void): void {
        this.#listeners.delete(listener);
      }
      close(): void {
        channels.delete(this.#entry);
      }
    };

  async function* open(tab: SimulatedTab, { since, signal }: EventRequest): AsyncGenerator<EventSignal> {
    if (signal.aborted) return;
    opened++;
    const inbox: (EventSignal | Error | null)[] = [];
    let wake = (): void => undefined;
    const link = `connection ${links++}`;
    const connection: Connection = {
      tab,
      link,
      put: (item) =>
        send(tab, link, () => {
          inbox.push(item);
          wake();
        }),
    };
    const close = (): void => {
      connections.delete(connection);
      inbox.push(null);
      wake();
    };
    signal.addEventListener('abort', close);
    if (refusal === undefined) connect(connection, since);
    else connection.put(refusal);
    try {
      for (;;) {
        while (inbox.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const item = inbox.shift();
        if (item instanceof Error) throw item;
        if (!item || signal.aborted) return;
        yield item;
      }
    } finally {
      connections.delete(connection);
    }
  }

  function connect(connection: Connection, since: string | null): void {
    // An instance may not have heard of the last changes yet.
    const known = Math.max(0, last - lag());
    let from = since === null ? known : numberAt(since);
    if (since !== null && (from < kept || from > last)) {
      connection.put({ kind: 'event', event: { event: 'gap', data: {}, position: null } as unknown as LiveEvent });
      from = known;
    }
    const live = Math.max(from, known);
    putEvents(connection, from, live);
    connection.put({ kind: 'live', position: positionAt(live) });
    putEvents(connection, live, last);
    connections.add(connection);
  }

  function putEvents(connection: Connection, after: number, upTo: number): void {
    for (let nth = after + 1; nth <= upTo; nth++) if (!hidden.has(nth)) connection.put(toSignal(nth));
  }

  const isReady = ({ to, link }: Delivery, index: number): boolean =>
    to.isAlive && !to.isFrozen && deliveries.findIndex((other) => other.link === link && other.to === to) === index;

  return {
    tabs,
    connections,
    get deliveries() {
      return deliveries.length;
    },
    get opened() {
      return opened;
    },
    events: (after) => numbersTo(last).filter((nth) => nth > after && !hidden.has(nth)),
    openTab() {
      const tab: SimulatedTab = {
        name: `tab ${tabs.length}`,
        isAlive: true,
        isFrozen: false,
        seen: [],
        state: 'closed',
        liveFrom: null,
        endStatus: null,
        document: new EventTarget(),
      };
      tabs.push(tab);
      const scope = {
        navigator: { locks: locksOf(tab) },
        BroadcastChannel: channelClassOf(tab),
        document: tab.document,
      };
      const shared = shareWithTabs((request) => open(tab, request), 'live', scope);
      void show(tab, shared, () => last);
      return tab;
    },
    closeTab(tab) {
      tab.isAlive = false;
      for (const connection of [...connections]) if (connection.tab === tab) connections.delete(connection);
      for (const channel of [...channels]) if (channel.tab === tab) channels.delete(channel);
      queue = queue.filter((one) => one.tab !== tab);
      if (holder?.tab !== tab) return;
      holder = null;
      grantNext();
    },
    publish(count = 1) {
      for (let nth = 0; nth < count; nth++) {
        last++;
        for (const connection of connections) connection.put(toSignal(last));
      }
    },
    change() {
      last++;
      hidden.add(last);
      for (const connection of connections) connection.put({ kind: 'position', position: positionAt(last) });
    },
    forget() {
      kept = Math.max(kept, last - LARGEST_LAG);
    },
    cut(error) {
      refusal = error;
      for (const connection of [...connections]) connection.put(null);
      connections.clear();
    },
    async deliver(choice) {
      const ready = deliveries.filter(isReady);
      const delivery = ready[Math.floor(choice * ready.length)];
      if (delivery === undefined) return;
      deliveries.splice(deliveries.indexOf(delivery), 1);
      delivery.run();
      await settle();
    },
    async deliverAll() {
      await settle();
      while (deliveries.some(isReady)) await this.deliver(0);
    },
  };
}

const toSignal = (nth: number): EventSignal => ({
  kind: 'event',
  event: { event: 'object-packet', data: { nth }, position: positionAt(nth) } as unknown as LiveEvent,
});

async function show(tab: SimulatedTab, open: OpenEvents, last: () => number): Promise<void> {
  const onState = (state: EventState): void => {
    tab.state = state;
    if (state === 'live') tab.liveFrom ??= last();
  };
  try {
    for await (const { position } of createEventStream({ open }, { onState }))
      tab.seen.push(position === null ? null : numberAt(position));
  } catch (error) {
    tab.endStatus = (error as { status?: number }).status ?? 0;
  }
}
