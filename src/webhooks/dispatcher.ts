/** All queues of this instance: of each partition that it owns one for each webhook that has something to send. */

import { setMaxListeners } from 'node:events';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { OwnedPartition } from '../processing/processor.js';
import { type Delivery, loadBacklog, takePoked } from './deliveries.js';
import { type DeliveryParts, deliver, UNTRIED_WAIT_MS } from './delivery.js';
import { block, closeQueue, createQueue, offer, pump, type Queue, recheck, startNext, unblock } from './queue.js';
import { createReceivers, type Receivers } from './receivers.js';
import type { Registry } from './registry.js';
import type { Sender } from './request.js';
import { createTurns, type Turns } from './turns.js';
import { tenantOf } from './webhook.js';

export interface DispatcherOptions extends DeliveryParts {
  readonly registry: Registry;
  readonly createSender: () => Sender;
}

export interface Dispatcher {
  acquire(owned: OwnedPartition): void;
  leave(owned: OwnedPartition): Promise<void>;
  offer(owned: OwnedPartition, deliveries: readonly Delivery[]): void;
  /** There may be messages of these handlers that memory does not have. */
  recheck(owned: OwnedPartition, deliveries: readonly Pick<Delivery, 'handlerId'>[]): void;
  /** The webhook is another than it was. */
  refresh(handlerId: string): void;
  /** Ends a pause after failures. */
  resume(handlerId: string): void;
  stats(): { readonly running: number; readonly open: number; readonly bufferedBytes: number };
  stop(): void;
}

interface Outlet {
  readonly owned: OwnedPartition;
  readonly ending: AbortController;
  readonly queues: Map<string, Queue>;
  /** Whether it is known what waited when the partition became ours. */
  isLoaded: boolean;
  running: Set<Promise<void>>;
}

interface State extends DispatcherOptions {
  readonly outlets: Map<number, Outlet>;
  readonly receivers: Receivers;
  readonly turns: Turns<Queue>;
  bufferedBytes: number;
}

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const outlets = new Map<number, Outlet>();
  const receivers = createReceivers(options.createSender, (handlerId) => pumpAll(outlets, handlerId));
  const turns = createTurns(startNext);
  const state: State = { ...options, outlets, receivers, turns, bufferedBytes: 0 };
  const timer = clock.setInterval(() => tick(state), LIMITS.partitionTickMs).unref();
  return {
    acquire: (owned) => acquire(state, owned),
    leave: (owned) => leave(state, owned),
    offer(owned, deliveries) {
      const outlet = state.outlets.get(owned.index);
      if (outlet?.owned !== owned) return;
      for (const [handlerId, own] of groupByHandler(deliveries)) offer(queueOf(state, outlet, handlerId), own);
    },
    recheck(owned, deliveries) {
      const outlet = state.outlets.get(owned.index);
      if (outlet?.owned !== owned) return;
      for (const handlerId of new Set(deliveries.map((one) => one.handlerId)))
        recheck(queueOf(state, outlet, handlerId));
    },
    refresh: (handlerId) => refresh(state, handlerId),
    resume: receivers.resume,
    stats: () => ({ ...receivers.stats(), bufferedBytes: state.bufferedBytes }),
    stop() {
      clock.clearTimer(timer);
      turns.stop();
      receivers.drop(() => false);
    },
  };
}

function groupByHandler(deliveries: readonly Delivery[]): Map<string, Delivery[]> {
  const groups = new Map<string, Delivery[]>();
  for (const delivery of deliveries) {
    const same = groups.get(delivery.handlerId);
    if (same === undefined) groups.set(delivery.handlerId, [delivery]);
    else same.push(delivery);
  }
  return groups;
}

function acquire(state: State, owned: OwnedPartition): void {
  const ending = new AbortController();
  // Every request under way listens.
  setMaxListeners(0, ending.signal);
  const outlet: Outlet = {
    owned,
    ending,
    queues: new Map(),
    isLoaded: false,
    running: new Set(),
  };
  state.outlets.set(owned.index, outlet);
  owned.lost.addEventListener('abort', () => close(state, outlet), { once: true });
  void loadOutlet(state, outlet);
}

/** What waited before; until that is known nothing is sent, or it would be sent too late. */
async function loadOutlet(state: State, outlet: Outlet): Promise<void> {
  try {
    const { handlerIds, retries } = await loadBacklog(state.database, outlet.owned.index);
    for (const handlerId of handlerIds) queueOf(state, outlet, handlerId);
    for (const { handlerId, objectId, nextMs } of retries) {
      const isBatch = state.registry.find(handlerId)?.settings.mode === 'batch';
      const queue = queueOf(state, outlet, handlerId);
      if (nextMs > state.now()) block(queue, isBatch ? '*' : objectId, nextMs - state.now());
    }
    outlet.isLoaded = true;
    for (const queue of outlet.queues.values()) recheck(queue);
  } catch (error) {
    state.log.warn({ err: error }, 'failed to read waiting webhook messages; retrying');
    if (!outlet.ending.signal.aborted) clock.setTimeout(() => void loadOutlet(state, outlet), UNTRIED_WAIT_MS).unref();
  }
}

function queueOf(state: State, outlet: Outlet, handlerId: string): Queue {
  const present = outlet.queues.get(handlerId);
  if (present !== undefined) return present;
  const settings = () => state.registry.find(handlerId)?.settings;
  const isBatch = (): boolean => settings()?.mode === 'batch';
  let ownBytes = 0;
  const queue = createQueue(
    {
      database: state.database,
      owned: outlet.owned,
      handlerId,
      log: state.log,
      isBatch,
      atOnce: () => (isBatch() ? 1 : LIMITS.webhookRequestsPerPartition),
      mayStart: () =>
        outlet.isLoaded &&
        !outlet.ending.signal.aborted &&
        settings()?.isActive === true &&
        state.receivers.mayBegin(handlerId),
      askTurn(one) {
        const webhook = state.registry.find(handlerId);
        if (webhook !== undefined) state.turns.ask(tenantOf(webhook), one);
      },
      takeBytes(bytes, isForced = false) {
        if (bytes > 0 && !isForced && state.bufferedBytes + bytes > findBufferBound(ownBytes + bytes)) return false;
        state.bufferedBytes += bytes;
        ownBytes += bytes;
        return true;
      },
      send: (group, onEnd) => send(state, outlet, { handlerId, group, isBatch: isBatch() }, onEnd),
    },
    !outlet.isLoaded,
  );
  outlet.queues.set(handlerId, queue);
  return queue;
}

/** Queues whose receivers hang must not use all memory. */
const findBufferBound = (ownBytes: number): number =>
  ownBytes > LIMITS.webhookBufferUnderLoadBytes ? LIMITS.webhookBufferBytes / 2 : LIMITS.webhookBufferBytes;

interface Sending {
  readonly handlerId: string;
  readonly group: readonly Delivery[];
  readonly isBatch: boolean;
}

async function send(
  state: State,
  outlet: Outlet,
  { handlerId, group, isBatch }: Sending,
  onEnd: (waitMs: number | null) => void,
): Promise<void> {
  const webhook = state.registry.find(handlerId);
  const receiver = state.receivers.of(handlerId);
  if (webhook === undefined) return onEnd(UNTRIED_WAIT_MS);
  let isEnded = false;
  const end = (waitMs: number | null): void => {
    isEnded = true;
    state.receivers.ended(receiver);
    onEnd(waitMs);
  };
  const inBreaker = state.receivers.began(receiver);
  const { signal } = outlet.ending;
  const running = deliver(state, { webhook, receiver, inBreaker, group, isBatch, signal }, end).catch(
    (error: unknown) => {
      state.log.warn({ err: error }, 'failed to send a webhook message; retrying');
      if (isEnded) return;
      inBreaker.gaveUp();
      end(UNTRIED_WAIT_MS);
    },
  );
  outlet.running.add(running);
  await running;
  outlet.running.delete(running);
}

function pumpAll(outlets: ReadonlyMap<number, Outlet>, handlerId: string): void {
  for (const { queues } of outlets.values()) {
    const queue = queues.get(handlerId);
    if (queue !== undefined) pump(queue);
  }
}

/** What could not be begun may be by now; and what others have asked for is looked for. */
function tick(state: State): void {
  for (const { queues } of state.outlets.values()) {
    for (const [handlerId, queue] of queues) {
      queue.isStarved = false;
      pump(queue);
      const isIdle = !queue.hasMore && queue.known.size === 0 && queue.blocked.size === 0 && !queue.isLoading;
      if (isIdle) queues.delete(handlerId);
    }
  }
  state.receivers.drop((handlerId) => state.registry.find(handlerId) !== undefined);
  void serveAskedFor(state);
}

async function serveAskedFor(state: State): Promise<void> {
  const held = [...state.outlets.values()].filter(({ isLoaded, owned }) => isLoaded && owned.isOwned());
  if (held.length === 0) return;
  try {
    const poked = await takePoked(
      state.database,
      held.map(({ owned }) => owned.index),
    );
    const resumed = new Set(poked.filter(({ isReplayed }) => !isReplayed).map(({ handlerId }) => handlerId));
    for (const { partition, handlerId, objectId, isReplayed } of poked) {
      const outlet = state.outlets.get(partition);
      if (outlet === undefined) continue;
      const queue = queueOf(state, outlet, handlerId);
      if (isReplayed) recheck(queue);
      else unblock(queue, objectId);
    }
    // The change of the handler, which says the same to every instance, may have been missed.
    for (const handlerId of resumed) state.receivers.resume(handlerId);
  } catch (error) {
    state.log.warn({ err: error }, 'failed to read requested webhook messages');
  }
}

function refresh(state: State, handlerId: string): void {
  const webhook = state.registry.find(handlerId);
  for (const { queues } of state.outlets.values()) {
    const queue = queues.get(handlerId);
    if (queue === undefined) continue;
    if (webhook === undefined) {
      closeQueue(queue);
      queues.delete(handlerId);
    } else recheck(queue);
  }
}

/** Begins nothing more, and waits a little for what is under way. */
async function leave(state: State, owned: OwnedPartition): Promise<void> {
  const outlet = state.outlets.get(owned.index);
  if (outlet?.owned !== owned) return;
  outlet.isLoaded = false;
  const timer = clock.setTimeout(() => outlet.ending.abort(), LIMITS.webhookStopMs);
  await Promise.all(outlet.running);
  clock.clearTimer(timer);
  close(state, outlet);
}

function close(state: State, outlet: Outlet): void {
  outlet.ending.abort();
  for (const queue of outlet.queues.values()) closeQueue(queue);
  if (state.outlets.get(outlet.owned.index) === outlet) state.outlets.delete(outlet.owned.index);
}
