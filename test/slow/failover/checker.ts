/** Compares the stored packets and the received events with the sent requests. Pure; returns a description of each problem. */
import { isAfter } from '../../../src/core/position.js';
import type { Client, ReceivedEvent } from './listeners.js';
import type { Sent } from './writers.js';

/** The contents of the database. */
export interface Stored {
  /** The keys of all packets. */
  readonly packets: readonly string[];
  /** The mark of each object. */
  readonly marks: ReadonlyMap<string, string>;
}

export interface Rules {
  /** Whether connections may break, because an instance was killed. */
  readonly cuts: boolean;
}

const FEW = 5;

/** Every acknowledged packet is stored once, and every other answer is a 503 with `Retry-After`. */
export function checkWritten(sent: readonly Sent[], stored: Stored, { cuts }: Rules): string[] {
  const keys = new Set(stored.packets);
  const packets = sent.filter(({ kind }) => kind === 'packet');
  const known = new Set(packets.map(({ key }) => key));
  return [
    ...some('stored twice', repeated(stored.packets)),
    ...some(
      'acknowledged, not stored',
      keysOf(packets, ({ status, key }) => status === 200 && !keys.has(key)),
    ),
    ...some(
      'stored, never sent',
      stored.packets.filter((key) => !known.has(key)),
    ),
    ...some(
      'answered wrongly',
      keysOf(sent, (one) => !isProper(one, cuts)),
    ),
  ];
}

function isProper({ status, retryAfter }: Sent, cuts: boolean): boolean {
  return status === 200 || (status === 503 && retryAfter >= 1) || (status === null && cuts);
}

/** A client received every stored packet and every change of an object once, and in order. */
export function checkReceived({ name, received }: Client, sent: readonly Sent[], stored: Stored): string[] {
  const packets = received.filter((one) => one.name === 'object-packet').map(({ payload }) => payload.key as string);
  const receivedKeys = new Set(packets);
  const storedKeys = new Set(stored.packets);
  const patched = new Set(updatesOf(received).map(({ after }) => after));
  return [
    ...received.filter((one) => one.name === 'gap').map(({ payload }) => `a gap: ${payload.reason}`),
    ...some('received twice', repeated(packets)),
    ...some(
      'stored, not received',
      stored.packets.filter((key) => !receivedKeys.has(key)),
    ),
    ...some(
      'received, not stored',
      packets.filter((key) => !storedKeys.has(key)),
    ),
    ...some('out of order', outOfOrder(received)),
    ...some('a change missed or repeated', brokenChains(received, stored)),
    ...some(
      'acknowledged change not received',
      keysOf(sent, ({ kind, status, key }) => kind === 'patch' && status === 200 && !patched.has(key)),
    ),
  ].map((what) => `${name}: ${what}`);
}

/** Of keys that end with a number (`object/7`): each object's numbers increase. */
export function checkCounted(keys: readonly string[]): string[] {
  const last = new Map<string, number>();
  const wrong = keys.filter((key) => {
    const [object = '', count] = key.split('/');
    const before = last.get(object) ?? 0;
    last.set(object, Number(count));
    return Number(count) <= before;
  });
  return some('out of order', wrong);
}

// The positions of one client increase, also across instances: it received the events in the order of the oplog.
function outOfOrder(received: readonly ReceivedEvent[]): string[] {
  const placed = received.filter(({ name }) => name !== 'gap');
  return placed.flatMap(({ position = '', payload }, at) => {
    const before = placed[at - 1]?.position;
    return position !== '' && (before === undefined || isAfter(position, before)) ? [] : [JSON.stringify(payload)];
  });
}

interface Update {
  readonly object: string;
  readonly before: string | undefined;
  readonly after: string;
}

function updatesOf(received: readonly ReceivedEvent[]): Update[] {
  return received
    .filter(({ name }) => name === 'object-update')
    .map(({ payload: { id, before, after } }) => ({ object: id, before: before.mark, after: after.mark }));
}

// Each update starts with the values of the one before, and the last one ends with the stored values.
function brokenChains(received: readonly ReceivedEvent[], stored: Stored): string[] {
  const marks = new Map<string, string>();
  const broken: string[] = [];
  for (const { object, before, after } of updatesOf(received)) {
    if (marks.has(object) && marks.get(object) !== before) broken.push(`${marks.get(object)}, then ${before}→${after}`);
    marks.set(object, after);
  }
  const ends = [...stored.marks].filter(([object, mark]) => marks.get(object) !== mark);
  return [...broken, ...ends.map(([object, mark]) => `${marks.get(object)} at the end, stored ${mark}`)];
}

const keysOf = (sent: readonly Sent[], isMeant: (one: Sent) => boolean): string[] =>
  sent
    .filter(isMeant)
    .map(({ key, status, startMs, endMs }) => `${key} (${status}, ${Math.round(endMs - startMs)} ms)`);

function repeated(keys: readonly string[]): string[] {
  const seen = new Set<string>();
  return keys.filter((key) => seen.size === seen.add(key).size);
}

function some(what: string, found: readonly string[]): string[] {
  return found.length === 0 ? [] : [`${found.length} ${what}: ${found.slice(0, FEW).join('; ')}`];
}
