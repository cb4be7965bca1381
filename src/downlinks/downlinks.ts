/**
 * Sends commands to devices behind sources, through the systems that these devices belong to. One instance at a time has the commands
 * of an object, so that they keep their order. A command may be sent twice if that instance ends between the answer and its record.
 */
import { LRUCache } from 'lru-cache';
import { findWaiting, hasWaiting, type StoredCommand } from '../commands/command-store.js';
import { claimForSource, noteNetwork, releaseFromSource } from '../commands/network-store.js';
import { cacheSize } from '../core/cache-size.js';
import type { Change } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { findSource, type SourceRecord } from '../devices/sources/source-store.js';
import { clock, type Timer } from '../platform/clock.js';
import { createFairQueue, type FairQueue } from '../platform/fair-queue.js';
import { createMinuteCount, type MinuteCount } from '../platform/minute-count.js';
import { holdsObjectId } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findStored } from '../platform/mongo/schema/lookup.js';
import type { Sender } from '../webhooks/request.js';
import { downlinkIdOf, isFinal, isTaken, networkStateOf, toCommandRequest } from './request.js';
import {
  type CommandRoute,
  keepRoute,
  leaveRoute,
  listDue,
  listRoutes,
  recordRoute,
  removeRoute,
  takeRoute,
} from './route-store.js';

export interface DownlinkDeps {
  readonly database: Database;
  readonly sender: Sender;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Downlinks {
  /** Notes under which address a device takes commands. */
  note(source: SourceRecord, objectId: string, address: string): void;
  apply(change: Change): void;
  /** Changes were missed. */
  reset(): void;
  start(): void;
  stop(): Promise<void>;
}

const OBJECTS = builtInStore('objects');

export function createDownlinks(deps: DownlinkDeps): Downlinks {
  const { database, log, now } = deps;
  // For a while: another instance may have noted another address since.
  const remembered = { ...cacheSize(LIMITS.mqttDevicesRemembered), ttl: LIMITS.downlinkNotedMs };
  const noted = new LRUCache<string, string>(remembered);
  const ending = new AbortController();
  const queue = createSendingQueue();
  const failures = new LRUCache<string, MinuteCount>(cacheSize(LIMITS.cachedSources));
  const running = new Set<Promise<void>>();
  let timer: Timer | null = null;
  const run = (work: () => Promise<void>): void => {
    if (ending.signal.aborted) return;
    const done = work()
      .catch((error) => log.warn({ err: error }, 'failed to send commands to a source; they wait'))
      .finally(() => running.delete(done));
    running.add(done);
  };
  const drain = (objectId: string) => run(() => sendAll({ ...deps, queue, failures, signal: ending.signal }, objectId));
  const check = async (): Promise<void> => {
    for (const objectId of await listDue(database, now())) drain(objectId);
  };
  const checkLater = (): void => {
    timer = clock.setTimeout(() => run(() => check().finally(checkLater)), LIMITS.downlinkCheckMs);
    timer.unref();
  };
  const sendWaiting = () => findAllWaiting(deps, ending.signal, drain);
  return {
    note({ _id: sourceId }, objectId, address) {
      const key = `${sourceId} ${address}`;
      if (noted.get(objectId) === key) return;
      noted.set(objectId, key);
      run(() =>
        recordRoute(database, { objectId, sourceId, address }, now()).catch((error) => {
          noted.delete(objectId);
          throw error;
        }),
      );
    },
    apply(change) {
      // Packets, of which there are many, would be decoded for it.
      if (change.store !== 'commands') return;
      const { after, objectId } = change;
      if (after?.status === 'queued' && objectId !== null) drain(objectId);
    },
    reset: () => run(sendWaiting),
    start() {
      run(sendWaiting);
      checkLater();
    },
    async stop() {
      ending.abort();
      clock.clearTimer(timer);
      await Promise.all(running);
      deps.sender.close();
    },
  };
}

const createSendingQueue = (): FairQueue =>
  createFairQueue('commands to a source', {
    atOnce: LIMITS.downlinksAtOnce,
    perCaller: LIMITS.downlinksPerSource,
    waiting: LIMITS.downlinksWaiting,
    waitingPerCaller: LIMITS.downlinksWaitingPerSource,
    waitMs: LIMITS.downlinkLeaseMs / 2,
  });

/** Finds the objects whose commands nobody has seen. */
async function findAllWaiting(
  { database, now }: DownlinkDeps,
  signal: AbortSignal,
  drain: (objectId: string) => void,
): Promise<void> {
  for (let after: string | null = null; !signal.aborted; ) {
    const ids: string[] = await listRoutes(database, after);
    const waiting = await Promise.all(ids.map((id) => hasWaiting(database, id, now())));
    for (const id of ids.filter((_, index) => waiting[index])) drain(id);
    after = ids.at(-1) ?? null;
    if (after === null) return;
  }
}

interface Sending extends DownlinkDeps {
  readonly queue: FairQueue;
  readonly signal: AbortSignal;
  /** Of each source. */
  readonly failures: LRUCache<string, MinuteCount>;
}

/** Sends the commands that wait for an object, unless another instance does. */
async function sendAll(deps: Sending, objectId: string): Promise<void> {
  const { database, now } = deps;
  do {
    const route = await takeRoute(database, objectId, now());
    if (route === null) return;
    const isDone = await deps.queue
      .run(route.sourceId, () => sendThrough(deps, route), deps.signal)
      .catch(async (error) => {
        await leaveRoute(database, route, { atMs: now() + LIMITS.downlinkRetryMs, failures: route.failures });
        throw error;
      });
    if (!isDone) return;
    // One that came after the last look, and before the commands were left.
  } while (!deps.signal.aborted && (await findWaiting(database, objectId, now())) !== null);
}

/** Returns whether nothing waits any more. */
async function sendThrough(deps: Sending, route: CommandRoute): Promise<boolean> {
  const { database, now } = deps;
  const { objectId } = route;
  const source = await findSource(database, route.sourceId);
  if (source === null) {
    await removeRoute(database, objectId);
    await releaseFromSource(database, objectId);
    return false;
  }
  const isReachable = source.commandUrl !== null && (await isInGroup(database, objectId, source));
  for (let failures = route.failures; isReachable; failures = 0) {
    const command = await claimForSource(database, route, now());
    if (command === null) break;
    // Another instance has them, if this one stood still for longer than its lease.
    if (!(await keepRoute(database, route, now()))) return false;
    const retryMs = await sendOne(deps, source, route, command);
    if (retryMs !== null) {
      const waitMs = Math.max(retryMs, Math.min(LIMITS.downlinkRetryMs * 2 ** failures, LIMITS.downlinkRetryMaxMs));
      await leaveRoute(database, route, { atMs: now() + waitMs, failures: Math.min(failures + 1, MOST_FAILURES) });
      return false;
    }
  }
  if (!isReachable) await releaseFromSource(database, objectId);
  await leaveRoute(database, route, null);
  return isReachable;
}

/** Enough for the longest pause. */
const MOST_FAILURES = 16;

/** Whether the source may still write into the object, and so command its device. */
async function isInGroup(database: Database, objectId: string, { groupId }: SourceRecord): Promise<boolean> {
  const document = await findStored(database, OBJECTS, '_id', objectId);
  return document !== null && holdsObjectId(document, 'branch', groupId);
}

/** Returns null when the command has ended or was taken; otherwise how long to wait at least, in ms. */
async function sendOne(
  { database, sender, now, signal, log, failures }: Sending,
  source: SourceRecord,
  { objectId, address }: CommandRoute,
  command: StoredCommand,
): Promise<number | null> {
  const given = { url: source.commandUrl ?? '', key: source.commandKey, address };
  const request = toCommandRequest(source.kind, given, command);
  if (typeof request === 'string') {
    await noteNetwork(database, command._id, { status: 'failed', result: { message: request } }, now());
    return null;
  }
  const headers = { 'content-type': 'application/json', accept: 'application/json', ...request.headers };
  const body = Buffer.from(JSON.stringify(request.body));
  const { status, error, answer, retryAfterMs } = await sender.send({
    url: new URL(request.url),
    headers,
    body,
    signal,
  });
  if (isTaken(status)) {
    const network = networkStateOf(source.kind, status);
    const outcome = { status: 'sent', network, downlinkId: downlinkIdOf(source.kind, answer) } as const;
    await noteNetwork(database, command._id, outcome, now());
    return null;
  }
  if (isFinal(status)) {
    const message = error ?? 'the network refused the command';
    await noteNetwork(database, command._id, { status: 'failed', result: { status, message } }, now());
    return null;
  }
  const count = failures.get(source._id) ?? createMinuteCount();
  failures.set(source._id, count);
  const failed = count();
  const details = { source: source._id, command: command._id, status, reason: error, failed };
  if (failed !== null) log.warn(details, 'failed to send a command; it waits');
  // Without an answer, the system may have it: no connection gets it as well.
  if (status !== null) await releaseFromSource(database, objectId);
  return retryAfterMs ?? 0;
}
