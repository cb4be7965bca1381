/**
 * The messages of one webhook and partition, in order per object. Memory holds the oldest messages that can be sent; the rest are
 * read when memory is available. Only the object whose message failed waits.
 */

import { LIMITS } from '../core/limits.js';
import { clock, type Timer } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { OwnedPartition } from '../processing/processor.js';
import { type Delivery, FIRST_REPLAYED_NUMBER, loadPending } from './deliveries.js';

export interface QueueParts {
  readonly database: Database;
  readonly owned: OwnedPartition;
  readonly handlerId: string;
  /** How many messages are sent at the same time: of one object each, or one batch of any objects. */
  readonly atOnce: () => number;
  readonly isBatch: () => boolean;
  readonly mayStart: () => boolean;
  /** Has `startNext` called when it is the turn of this queue. */
  readonly askTurn: (queue: Queue) => void;
  /** Reserves bytes of memory; returns whether they are available, or forced. Negative: releases them. */
  readonly takeBytes: (bytes: number, isForced?: boolean) => boolean;
  /** Sends them. Resolves when the result is stored, with the pause before the next message of their object. */
  readonly send: (group: readonly Delivery[], onEnd: (waitMs: number | null) => void) => Promise<void>;
  readonly log: { warn(details: object, message: string): void };
}

export interface Queue extends QueueParts {
  readonly window: Delivery[];
  /** Messages in the window, being sent, or whose result is not stored yet. */
  readonly known: Set<string>;
  /** Objects that wait after a failure; without a timer until the failure is stored. */
  readonly blocked: Map<string, Timer | undefined>;
  readonly inFlight: Set<string>;
  /** Whether there are messages that are not in memory, beside those of blocked objects. */
  hasMore: boolean;
  isLoading: boolean;
  /** No message that can be read now can be sent now. */
  isStarved: boolean;
  /** Messages that ended while others were being read. */
  readonly endedWhileLoading: Set<string>;
  /** Objects whose message failed meanwhile: what was read of them may lack it. */
  readonly closedWhileLoading: Set<string>;
}

/** In batch mode all objects wait together. */
const EVERYTHING = '*';

export const createQueue = (parts: QueueParts, hasMore: boolean): Queue => ({
  ...parts,
  window: [],
  known: new Set(),
  blocked: new Map(),
  inFlight: new Set(),
  hasMore,
  isLoading: false,
  isStarved: false,
  endedWhileLoading: new Set(),
  closedWhileLoading: new Set(),
});

/** Adds messages that were just stored. */
export function offer(queue: Queue, deliveries: readonly Delivery[]): void {
  for (const delivery of deliveries) {
    if (queue.hasMore || queue.isLoading) break;
    if (!queue.blocked.has(delivery.objectId) && !keep(queue, delivery)) break;
  }
  if (queue.isLoading) queue.hasMore = true;
  queue.isStarved = false;
  pump(queue);
}

function keep(queue: Queue, delivery: Delivery): boolean {
  if (queue.window.length < 2 * LIMITS.webhookWindow && takeIn(queue, delivery)) return true;
  queue.hasMore = true;
  return false;
}

/** Even if all memory is in use, a queue has one message. */
function takeIn({ window, known, takeBytes }: Queue, delivery: Delivery): boolean {
  if (!takeBytes(delivery.body.length, window.length === 0)) return false;
  window.push(delivery);
  known.add(delivery.id);
  return true;
}

/** Reads the database again: it may contain messages that are not in memory. */
export function recheck(queue: Queue): void {
  queue.hasMore = true;
  queue.isStarved = false;
  pump(queue);
}

/** Begins to send what can be sent now, in turns with other queues. */
export function pump(queue: Queue): void {
  if (canStart(queue)) queue.askTurn(queue);
}

/** Starts one send, if one is possible now; returns whether another one may be. */
export function startNext(queue: Queue): boolean {
  if (!canStart(queue)) return false;
  const group = takeNext(queue);
  if (group === null) void load(queue);
  else void run(queue, group);
  return group !== null;
}

const canStart = ({ owned, inFlight, blocked, atOnce, mayStart }: Queue): boolean =>
  owned.isOwned() && inFlight.size < atOnce() && !blocked.has(EVERYTHING) && mayStart();

function takeNext(queue: Queue): readonly Delivery[] | null {
  if (queue.isBatch()) return takeBatch(queue);
  for (let index = 0; index < queue.window.length; index++) {
    const { objectId } = queue.window[index] as Delivery;
    if (queue.inFlight.has(objectId)) continue;
    const [taken] = queue.window.splice(index, 1) as [Delivery];
    if (!queue.blocked.has(objectId)) return [taken];
    dropFromMemory(queue, taken);
    index--;
  }
  return null;
}

/** The next messages in order. Messages that were sent as a batch before are the same batch again. */
function takeBatch({ window }: Queue): readonly Delivery[] | null {
  const [head] = window;
  if (head === undefined) return null;
  let count = 0;
  let bytes = 0;
  for (const { batch, body } of window) {
    if (batch?.id !== head.batch?.id || count >= LIMITS.webhookBatch || (count > 0 && bytes > LIMITS.webhookBatchBytes))
      break;
    count++;
    bytes += body.length;
  }
  return window.splice(0, count);
}

/** Drops the message from memory; it stays in the database. */
function dropFromMemory(queue: Queue, { id, body }: Delivery): void {
  queue.takeBytes(-body.length);
  queue.known.delete(id);
  if (queue.isLoading) queue.endedWhileLoading.add(id);
}

async function run(queue: Queue, group: readonly Delivery[]): Promise<void> {
  const key = queue.isBatch() ? EVERYTHING : (group[0] as Delivery).objectId;
  let waitMs: number | null = null;
  queue.inFlight.add(key);
  await queue.send(group, (ms) => {
    waitMs = ms;
    queue.inFlight.delete(key);
    if (ms !== null) close(queue, key);
    if (queue.window.length === 0) queue.isStarved = false;
    pump(queue);
  });
  for (const delivery of group) dropFromMemory(queue, delivery);
  // Only after the result is stored: otherwise later messages could be read without this one.
  if (waitMs !== null) block(queue, key, waitMs);
  else if (queue.hasMore && queue.window.length === 0) recheck(queue);
}

/** Reads the messages of the object again when its pause is over. */
export function block(queue: Queue, key: string, waitMs: number): void {
  close(queue, key);
  const free = (): void => unblock(queue, key);
  queue.blocked.set(key, clock.setTimeout(free, Math.min(waitMs, LIMITS.timerMs)).unref());
}

function close(queue: Queue, key: string): void {
  clock.clearTimer(queue.blocked.get(key));
  queue.blocked.set(key, undefined);
  if (queue.isLoading) queue.closedWhileLoading.add(key);
  // They are read again after the one that failed, which is not in memory any more.
  for (const delivery of queue.window.splice(0)) {
    if (key === EVERYTHING || delivery.objectId === key) dropFromMemory(queue, delivery);
    else queue.window.push(delivery);
  }
  if (key === EVERYTHING) queue.hasMore = true;
}

/** Ends the pause of the object. One that has just failed stays blocked until the failure is stored: later messages could overtake it. */
export function unblock(queue: Queue, objectId: string): void {
  for (const key of [objectId, EVERYTHING]) {
    const timer = queue.blocked.get(key);
    if (timer === undefined) continue;
    clock.clearTimer(timer);
    queue.blocked.delete(key);
  }
  recheck(queue);
}

async function load(queue: Queue): Promise<void> {
  if (!queue.hasMore || queue.isLoading || queue.isStarved) return;
  queue.isLoading = true;
  queue.hasMore = false;
  // Until something is found. Whoever has news meanwhile says that a read may find more, and this one may lack it.
  queue.isStarved = true;
  // If every message in memory waits for its object, look for messages of other objects.
  const busy = queue.window.length === 0 ? [] : [...queue.inFlight].filter((key) => key !== EVERYTHING);
  const limit = Math.max(LIMITS.webhookWindow, LIMITS.webhookBatch) + queue.known.size;
  const exceptObjects = [...queue.blocked.keys(), ...busy].filter((key) => key !== EVERYTHING);
  try {
    const named = { handlerId: queue.handlerId, partition: queue.owned.index };
    const found = await loadPending(queue.database, named, { exceptObjects, limit });
    if (found.length >= limit || busy.length > 0) queue.hasMore = true;
    addFound(queue, found);
  } catch (error) {
    queue.hasMore = true;
    queue.log.warn({ err: error }, 'failed to read webhook messages');
  } finally {
    queue.isLoading = false;
    queue.endedWhileLoading.clear();
    queue.closedWhileLoading.clear();
  }
  pump(queue);
}

function addFound(queue: Queue, found: readonly Delivery[]): void {
  let count = 0;
  for (const delivery of found) {
    const isKnown = queue.known.has(delivery.id) || queue.endedWhileLoading.has(delivery.id);
    if (isKnown || queue.blocked.has(delivery.objectId) || isUncommitted(queue, delivery)) continue;
    if (queue.closedWhileLoading.has(delivery.objectId)) {
      queue.hasMore = true;
      continue;
    }
    if (!takeIn(queue, delivery)) {
      queue.hasMore = true;
      break;
    }
    count++;
  }
  if (count > 0) queue.isStarved = false;
}

/** Its commit has no answer yet: it is offered once that has come, and would be sent twice. */
const isUncommitted = ({ owned }: Queue, { number }: Delivery): boolean =>
  number > owned.committedNumber() && number < FIRST_REPLAYED_NUMBER;

/** Stops the queue. */
export function closeQueue(queue: Queue): void {
  for (const timer of queue.blocked.values()) clock.clearTimer(timer);
  queue.blocked.clear();
  for (const delivery of queue.window.splice(0)) dropFromMemory(queue, delivery);
}
