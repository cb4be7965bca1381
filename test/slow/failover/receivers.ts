/** Receivers of webhooks: what came to them, when, and whether they took it. Some of them fail in every way there is. */
import type { ServerResponse } from 'node:http';
import { type Answer, OK, type Received, type Receiver, startReceiver } from '../../support/receiver.js';

/** The path tells a receiver: one that always answers, one that often fails, and one that gets batches and often fails. */
export const RECEIVERS = ['steady', 'failing', 'failing-batch'] as const;
export type ReceiverName = (typeof RECEIVERS)[number];

/** One event as it arrived; those of a batch arrive together. */
export interface Arrival {
  readonly receiver: ReceiverName;
  readonly id: string;
  /** `packet` or `patch`, as what was written. */
  readonly kind: 'packet' | 'patch';
  readonly object: string;
  readonly key: string;
  readonly position: string;
  /** Of the process' own clock. */
  readonly atMs: number;
}

export interface Receivers {
  url(name: ReceiverName): string;
  /** Everything that arrived, in order, repetitions too. */
  readonly arrivals: readonly Arrival[];
  /** What was answered with 200 as a whole. */
  isTaken(arrival: Arrival): boolean;
  /** The next request of those that fail is never answered. */
  hangOnce(): void;
  /** Forgets everything. */
  clear(): void;
  /** How requests were treated, by the name of that. */
  readonly counts: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

const FAILING_SHARE = 0.04;
const FAILING_AGAIN_SHARE = 0.1;
const LATE_MS = 1_500;

const HARMS: Readonly<Record<string, (res: ServerResponse, take: () => void) => void>> = {
  'answers late': (res, take) =>
    void setTimeout(() => {
      if (!res.destroyed) take();
    }, LATE_MS * Math.random()),
  'half an answer': (res) => void res.writeHead(200, { 'Content-Length': 99 }).write('half', () => res.destroy()),
  'a 500': (res) => void res.writeHead(500).end('sorry'),
  'a reset': (res) => void res.socket?.resetAndDestroy(),
};
const HARM_NAMES = Object.keys(HARMS);

export async function startReceivers(): Promise<Receivers> {
  const arrivals: Arrival[] = [];
  const taken = new Set<string>();
  const failures = new Map<string, number>();
  const counts = new Map<string, number>();
  let isToHang = false;
  const treat = (name: ReceiverName, id: string): string | null => {
    if (name === 'steady') return null;
    if (isToHang) {
      isToHang = false;
      return 'no answer';
    }
    const failed = failures.get(id) ?? 0;
    const share = failed === 0 ? FAILING_SHARE : failed === 1 ? FAILING_AGAIN_SHARE : 0;
    return Math.random() < share ? (HARM_NAMES[Math.floor(Math.random() * HARM_NAMES.length)] ?? null) : null;
  };
  const answer: Answer = (received, res, req) => {
    const name = received.path.slice(1) as ReceiverName;
    arrivals.push(...arrivalsOf(name, received));
    const take = (): void => {
      taken.add(`${name} ${received.id}`);
      OK(received, res, req);
    };
    const treatment = treat(name, received.id);
    counts.set(treatment ?? 'ok', (counts.get(treatment ?? 'ok') ?? 0) + 1);
    if (treatment === null) return take();
    failures.set(received.id, (failures.get(received.id) ?? 0) + 1);
    HARMS[treatment]?.(res, take);
  };
  const receiver: Receiver = await startReceiver();
  receiver.answer = answer;
  return {
    ...{ arrivals, counts, stop: receiver.stop },
    url: (name) => receiver.url + name,
    isTaken: ({ receiver: name, id }) => taken.has(`${name} ${id}`),
    hangOnce() {
      isToHang = true;
    },
    clear() {
      for (const list of [arrivals, receiver.received]) list.length = 0;
      for (const known of [taken, failures, counts]) known.clear();
    },
  };
}

function arrivalsOf(receiver: ReceiverName, { id, body }: Received): Arrival[] {
  const atMs = performance.now();
  const events = body.type === 'batch' ? body.data : [body];
  return events.map(({ type, position, data }: Received['body']) => {
    const isPacket = type === 'object-packet';
    const key = String(isPacket ? data.key : data.after.mark);
    return { receiver, id, kind: isPacket ? 'packet' : 'patch', object: key.split('/')[0], key, position, atMs };
  });
}
