/**
 * Whether devices are there, told as packets with `online`: when they connect, when they are gone for good, and when the
 * instance that held them is. Each end is told once, however many instances find it: its packet has an `_id` of its own.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '../db/connect.js';
import { type DeviceRecord, findDevices } from '../db/devices.js';
import { isAway } from '../db/documents.js';
import { createGrouped } from '../db/in-groups.js';
import type { Ingest } from '../db/ingest.js';
import { findLastHeard, type LastHeard, readLastHeard } from '../db/last-heard.js';
import {
  claimPresences,
  endAllPresence,
  endPresences,
  forgetPresence,
  type Held,
  holdsPresence,
  listEnded,
  removeInstance,
  renewInstance,
  takeSilentInstance,
} from '../db/presence.js';
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import type { PacketSource } from '../model/packet.js';
import { type Digest, packetIdOf } from './packet-id.js';
import { createRetryQueue, runEach } from './retry-queue.js';

export interface PresenceParts {
  readonly database: Database;
  readonly ingest: Ingest;
  readonly digest: Digest;
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Arrival {
  /** When this connection took over, ms by the database's clock. */
  readonly sinceMs: number;
  /** When the packet that was its latest then was stored, ms; null where it had none. */
  readonly storedAtMs: number | null;
}

export interface Presence {
  /** Names this process among those that share the database. */
  readonly instance: string;
  /** The device is connected here: told so, unless it was. */
  arrive(source: PacketSource, connectionId: string): Promise<Arrival>;
  /** The connection ended: told so in a while, unless the device comes back before. */
  leave(objectId: string, connectionId: string): void;
  /** Whether the device has no newer connection. */
  holds(objectId: string, connectionId: string): Promise<boolean>;
  /** Begins to give signs of life, and to tell of those who do not any more. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** How devices that come together are dealt with: in a storm few large groups, and a device that comes alone at once. */
export const DEVICE_GROUPS = {
  most: LIMITS.presenceBatch,
  atOnce: LIMITS.presenceGroupsAtOnce,
  apartMs: LIMITS.presenceGatherMs,
};

export function createPresence(parts: PresenceParts): Presence {
  const instance = randomUUID();
  const stopping = new AbortController();
  const toHeld = (objectId: string, id: string): Held => ({ objectId, instance, id });
  const tellOwn = createOneAtATime(() => tellEnds(parts, instance));
  const claim = createGrouped(DEVICE_GROUPS, (held: readonly Held[]) => claimPresences(parts.database, held));
  const endings = createRetryQueue<Held>({
    async run(held) {
      await endPresences(parts.database, held, parts.now());
      await tellOwn();
      return null;
    },
    onFailure: (details) => parts.log.warn(details, 'the end of connections could not be told: tried again'),
  });
  let running: Promise<void> = Promise.resolve();
  return {
    instance,
    async arrive(source, connectionId) {
      const claimed = (await claim(toHeld(source.objectId, connectionId))).get(connectionId);
      const last = await readLastHeard(parts.database, source.objectId);
      const endedMs = claimed?.endedMs ?? null;
      if (endedMs !== null || !claimed?.isNewest || !last?.isOnline) {
        // Later than what it outdoes, by whichever clock that was.
        const timeMs = Math.max(parts.now(), (endedMs ?? 0) + 1, (last?.timeMs ?? 0) + 1);
        await tell(parts, source, { timeMs, online: true, connectionId });
      }
      if (!claimed?.isNewest) throw unavailable('a newer connection of the device took over');
      return { sinceMs: claimed.sinceMs, storedAtMs: last?.storedAtMs ?? null };
    },
    leave: (objectId, connectionId) => endings.add(toHeld(objectId, connectionId), LIMITS.presenceGraceMs),
    holds: (objectId, connectionId) => holdsPresence(parts.database, toHeld(objectId, connectionId)),
    async start() {
      await renewInstance(parts.database, instance);
      running = watch(parts, instance, stopping.signal);
    },
    async stop() {
      stopping.abort();
      await Promise.all([running, endings.stop()]);
    },
  };
}

/** Work that is done again when it was asked for meanwhile, but never twice at a time. */
function createOneAtATime(work: () => Promise<unknown>): () => Promise<void> {
  let [running, again] = [null as Promise<void> | null, false];
  const run = async (): Promise<void> => {
    while (again) {
      again = false;
      await work();
    }
  };
  return () => {
    again = true;
    running ??= run().finally(() => {
      running = null;
    });
    return running;
  };
}

async function tell(
  { ingest, digest }: PresenceParts,
  source: PacketSource,
  { timeMs, online, connectionId }: { timeMs: number; online: boolean; connectionId: string },
): Promise<void> {
  const id = packetIdOf(timeMs, digest(Buffer.from(`${source.objectId}\n${connectionId}\n${online}`)));
  await ingest(source, [{ id, formerId: null, timeMs, online, parameters: {} }]);
}

/** Tells the ends of an instance's connections, and forgets them. What is interrupted is begun again, and told once. */
async function tellEnds(parts: PresenceParts, instance: string): Promise<number> {
  for (let told = 0; ; ) {
    const ended = await listEnded(parts.database, instance, LIMITS.presenceBatch);
    if (ended.length === 0) return told;
    const ids = ended.map(({ objectId }) => objectId);
    const [devices, heard] = await Promise.all([findDevices(parts.database, ids), findLastHeard(parts.database, ids)]);
    const byId = new Map(devices.map((device) => [device.objectId, device]));
    const tellOne = (held: Ended): Promise<void> =>
      tellEnd(parts, byId.get(held.objectId), heard.get(held.objectId), held);
    const undone = await runEach(ended, tellOne);
    if (undone !== null && isAway(undone.error)) throw undone.error;
    // What cannot be told of one device must not keep back what is told of the others.
    const details = { err: undone?.error, devices: undone?.items.length };
    if (undone !== null) parts.log.warn(details, 'the end of connections cannot be told: it is left out');
    await forgetPresence(parts.database, instance, ids);
    told += ended.length;
  }
}

type Ended = Held & { readonly endedMs: number };

async function tellEnd(
  parts: PresenceParts,
  device: DeviceRecord | undefined,
  last: LastHeard | undefined,
  { id, endedMs }: Ended,
): Promise<void> {
  // One that may be silent for a while may so be without a connection; one that was removed has no state.
  if (device === undefined || device.offlineAfterMs !== null) return;
  // A device whose clock is ahead has sent packets of a later time: of equal ones, the one that came last counts.
  const timeMs = Math.max(endedMs, last?.timeMs ?? 0);
  await tell(parts, device, { timeMs, online: false, connectionId: id });
}

/** Signs of life, and a look at who gives none. Only who could give them without a break judges others by theirs. */
async function watch(parts: PresenceParts, instance: string, signal: AbortSignal): Promise<void> {
  const sweepOthers = createOneAtATime(() => sweep(parts));
  let steadySinceMs = performance.now();
  let sweeping = Promise.resolve();
  const giveUp = (error: unknown): void => {
    steadySinceMs = performance.now();
    if (!signal.aborted) parts.log.warn({ err: error }, 'the database is away: who is there is told later');
  };
  while (!signal.aborted) {
    const askedMs = performance.now();
    await renewInstance(parts.database, instance).catch(giveUp);
    if (performance.now() - askedMs > LIMITS.presenceSilentMs / 2) steadySinceMs = performance.now();
    // Beside the signs of life, which must not wait for it.
    if (performance.now() - steadySinceMs > LIMITS.presenceSilentMs) sweeping = sweepOthers().catch(giveUp);
    await wait(LIMITS.presenceRenewMs, undefined, { signal }).catch(() => undefined);
  }
  await sweeping;
}

async function sweep(parts: PresenceParts): Promise<void> {
  for (;;) {
    const silent = await takeSilentInstance(parts.database, LIMITS.presenceSilentMs);
    if (silent === null) return;
    await endAllPresence(parts.database, silent, parts.now());
    const devices = await tellEnds(parts, silent);
    await removeInstance(parts.database, silent);
    parts.log.info({ instance: silent, devices }, 'an instance is gone: its devices are told to be offline');
  }
}
