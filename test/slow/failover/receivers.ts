/** Receivers of webhooks that record messages and whether they accepted them. Two of them fail in every way. */
import type { ServerResponse } from 'node:http';
import { type Answer, OK, type Received, type Receiver, startReceiver } from '../../support/receiver.js';
import { random } from '../../support/runs.js';

/** The last part of the address names a receiver: one that always accepts, one that often fails, and one of batches that often fails. */
export const RECEIVERS = ['steady', 'failing', 'failing-batch'] as const;
export type ReceiverName = (typeof RECEIVERS)[number];

/** One event of a message. */
export interface Arrival {
  readonly receiver: ReceiverName;
  readonly id: string;
  /** The kind of request that caused the event. */
  readonly kind: 'packet' | 'patch';
  readonly object: string;
  readonly key: string;
  readonly position: string;
}

export interface Receivers {
  url(name: ReceiverName): string;
  /** All events in the order of their arrival, with repetitions. */
  readonly arrivals: readonly Arrival[];
  /** Whether its message was answered with 200 completely. */
  isAccepted(arrival: Arrival): boolean;
  /** Makes the next request to a failing receiver wait for an answer until its time-out. */
  hangOnce(): void;
  /** Forgets all messages. */
  clear(): void;
  stop(): Promise<void>;
}

const FAILING_SHARE = 0.04;
const FAILING_AGAIN_SHARE = 0.1;
const LATE_MS = 1_500;

const FAILURES: Readonly<Record<string, (res: ServerResponse, take: () => void) => void>> = {
  'answers late': (res, take) =>
    void setTimeout(() => {
      if (!res.destroyed) take();
    }, LATE_MS * random()),
  'half an answer': (res) => void res.writeHead(200, { 'Content-Length': 99 }).write('half', () => res.destroy()),
  'a 500': (res) => void res.writeHead(500).end('sorry'),
  'a reset': (res) => void res.socket?.resetAndDestroy(),
};
const FAILURE_NAMES = Object.keys(FAILURES);

export async function startReceivers(): Promise<Receivers> {
  const arrivals: Arrival[] = [];
  const taken = new Set<string>();
  const failures = new Map<string, number>();
  let isToHang = false;
  const treat = (name: ReceiverName, id: string): string | null => {
    if (name === 'steady') return null;
    if (isToHang) {
      isToHang = false;
      return 'no answer';
    }
    const failed = failures.get(id) ?? 0;
    const share = failed === 0 ? FAILING_SHARE : failed === 1 ? FAILING_AGAIN_SHARE : 0;
    return random() < share ? (FAILURE_NAMES[Math.floor(random() * FAILURE_NAMES.length)] ?? null) : null;
  };
  const answer: Answer = (received, res, req) => {
    const name = received.path.slice(1) as ReceiverName;
    arrivals.push(...arrivalsOf(name, received));
    const take = (): void => {
      taken.add(`${name} ${received.id}`);
      OK(received, res, req);
    };
    const treatment = treat(name, received.id);
    if (treatment === null) return take();
    failures.set(received.id, (failures.get(received.id) ?? 0) + 1);
    FAILURES[treatment]?.(res, take);
  };
  const receiver: Receiver = await startReceiver();
  receiver.answer = answer;
  return {
    arrivals,
    stop: receiver.stop,
    url: (name) => receiver.url + name,
    isAccepted: ({ receiver: name, id }) => taken.has(`${name} ${id}`),
    hangOnce() {
      isToHang = true;
    },
    clear() {
      for (const list of [arrivals, receiver.received]) list.length = 0;
      taken.clear();
      failures.clear();
    },
  };
}

function arrivalsOf(receiver: ReceiverName, { id, body }: Received): Arrival[] {
  const events = body.type === 'batch' ? body.data : [body];
  return events.map(({ type, position, data }: Received['body']) => {
    const isPacket = type === 'object-packet';
    const key = String(isPacket ? data.key : data.after.mark);
    return { receiver, id, kind: isPacket ? 'packet' : 'patch', object: key.split('/')[0], key, position };
  });
}
