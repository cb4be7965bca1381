/**
 * Stores the presence of devices as packets with `online`: when they connect, when they have disconnected for longer than a grace
 * period, and when their instance has failed. The packet of an end has a fixed `_id`, so several instances store it once.
 */

import { unavailable } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { Ingest } from '../../packets/ingest.js';
import { findLastPacketTimes, type LastPacketTime, readLastPacketTimes } from '../../packets/last-packet-times.js';
import type { PacketSource } from '../../packets/packet.js';
import { clock } from '../../platform/clock.js';
import { createBulkQueue } from '../../platform/mongo/driver/bulk-queue.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { isTransientError } from '../../platform/mongo/driver/errors.js';
import { type Digest, packetIdOf } from '../dedup-id.js';
import { type DeviceRecord, findDevices } from '../devices.js';
import {
  claimPresences,
  type EndedDevice,
  endAllPresence,
  endPresences,
  findConnection,
  findStillEnded,
  type HeldDevice,
  type KnownConnection,
  listEnded,
  removeEndedPresences,
  removeInstance,
  renewInstance,
  takeSilentInstance,
} from '../presence-store.js';
import { createRetryQueue, runEach } from './retry-queue.js';
import { createSerialRunner } from './serial-runner.js';

export interface PresenceDeps {
  readonly database: Database;
  readonly ingest: Ingest;
  readonly digest: Digest;
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Arrival {
  /** When this connection took over, ms by the database's clock. */
  readonly sinceMs: number;
  /** Whether the previous connection had not ended, as far as the database knows: its instance may have failed. */
  readonly hasTakenOver: boolean;
  /** When the latest packet was stored, ms; null if the object has none. */
  readonly storedAtMs: number | null;
}

export interface Presence {
  /** Identifies this process among the instances that share the database. */
  readonly instance: string;
  /** Marks a connected device online, unless it is already. */
  arrive(source: PacketSource, connectionId: string): Promise<Arrival>;
  /** Marks the device offline after a grace period, unless it reconnects. */
  leave(objectId: string, connectionId: string): void;
  /** The newest connection of the device, as far as the database knows; null for none. Throws 503. */
  find(objectId: string): Promise<KnownConnection | null>;
  /** Starts the heartbeat of this instance, and the check for failed instances. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Groups devices that connect together: few large groups in a storm, no delay for a single device. */
export const DEVICE_GROUPS = {
  maxItems: LIMITS.presenceBatch,
  atOnce: LIMITS.presenceGroupsAtOnce,
  apartMs: LIMITS.presenceGatherMs,
};

export function createPresence(deps: PresenceDeps): Presence {
  const instance = clock.randomId();
  const stopping = new AbortController();
  const toHeld = (objectId: string, id: string): HeldDevice => ({ objectId, instance, id });
  const storeOwnEnds = createSerialRunner(() => storeEnds(deps, instance));
  const claim = createBulkQueue(DEVICE_GROUPS, (held: readonly HeldDevice[]) => claimPresences(deps.database, held));
  const endings = createRetryQueue<HeldDevice>({
    async run(held) {
      await endPresences(deps.database, held, deps.now());
      await storeOwnEnds();
      return null;
    },
    onFailure: (details) => deps.log.warn(details, 'failed to mark disconnected devices offline; retrying'),
  });
  let running: Promise<void> = Promise.resolve();
  return {
    instance,
    async arrive(source, connectionId) {
      const claimed = (await claim(toHeld(source.objectId, connectionId))).get(connectionId);
      const last = await readLastPacketTimes(deps.database, source.objectId);
      const { sinceMs = 0, endedMs = null, hasTakenOver = false } = claimed ?? {};
      if (endedMs !== null || !claimed?.isNewest || !last?.isOnline) {
        // Must be later than the packets it replaces, even if another clock is ahead.
        const timeMs = Math.max(deps.now(), (endedMs ?? 0) + 1, (last?.timeMs ?? 0) + 1);
        await storePresence(deps, source, { timeMs, online: true, connectionId, atMs: sinceMs });
      }
      if (!claimed?.isNewest) throw unavailable('a newer connection of the device took over');
      return { sinceMs, hasTakenOver, storedAtMs: last?.storedAtMs ?? null };
    },
    leave: (objectId, connectionId) => endings.add(toHeld(objectId, connectionId), LIMITS.presenceGraceMs),
    find: (objectId) => findConnection(deps.database, objectId),
    async start() {
      await renewInstance(deps.database, instance);
      running = watch(deps, instance, stopping.signal);
    },
    async stop() {
      stopping.abort();
      await Promise.all([running, endings.stop()]);
    },
  };
}

interface Report {
  readonly timeMs: number;
  readonly online: boolean;
  readonly connectionId: string;
  /** When the connection took over, or ended: the same one may do so again within a second, of which each `_id` is. */
  readonly atMs: number;
}

async function storePresence(
  { ingest, digest }: PresenceDeps,
  source: PacketSource,
  { timeMs, online, connectionId, atMs }: Report,
): Promise<void> {
  const id = packetIdOf(timeMs, digest(Buffer.from(`${source.objectId}\n${connectionId}\n${online}\n${atMs}`)));
  await ingest(source, [{ id, timeMs, online, parameters: {} }]);
}

/** Stores the offline packets of an instance's ended connections and removes these connections. Safe to repeat after an interruption. */
async function storeEnds(deps: PresenceDeps, instance: string): Promise<number> {
  for (let count = 0; ; ) {
    const ended = await listEnded(deps.database, instance, LIMITS.presenceBatch);
    if (ended.length === 0) return count;
    const ids = ended.map(({ objectId }) => objectId);
    const [devices, lastPackets] = await Promise.all([
      findDevices(deps.database, ids),
      findLastPacketTimes(deps.database, ids),
    ]);
    // A device that has connected again by now is online from that packet on, which `lastPackets` may have: its end would come after
    // it. One that connects later reads what is read here, and is online after its end.
    const toStore = await findStillEnded(deps.database, ended);
    const byId = new Map(devices.map((device) => [device.objectId, device]));
    const storeOne = (held: EndedDevice): Promise<void> =>
      storeEnd(deps, byId.get(held.objectId), lastPackets.get(held.objectId), held);
    const failed = await runEach(toStore, storeOne);
    if (failed !== null && isTransientError(failed.error)) throw failed.error;
    // A permanent error of one device must not block the others.
    const details = { err: failed?.error, devices: failed?.items.length };
    if (failed !== null) deps.log.warn(details, 'failed to mark disconnected devices offline; skipping them');
    if (toStore.length > 0) await removeEndedPresences(deps.database, toStore);
    count += toStore.length;
  }
}

async function storeEnd(
  deps: PresenceDeps,
  device: DeviceRecord | undefined,
  last: LastPacketTime | undefined,
  { id, endedMs }: EndedDevice,
): Promise<void> {
  // A device with `offlineAfter` stays online until its timeout; a removed device has no state.
  if (device === undefined || device.offlineAfterMs !== null) return;
  // A device whose clock is ahead has sent packets with a later time. Of equal times, the packet stored last counts.
  const timeMs = Math.max(endedMs, last?.timeMs ?? 0);
  await storePresence(deps, device, { timeMs, online: false, connectionId: id, atMs: endedMs });
}

/** Renews the heartbeat and looks for failed instances, but only if this instance's own heartbeat was not interrupted. */
async function watch(deps: PresenceDeps, instance: string, signal: AbortSignal): Promise<void> {
  const sweepOthers = createSerialRunner(() => sweep(deps));
  let steadySinceMs = clock.steadyMs();
  let sweeping = Promise.resolve();
  const onFailure = (error: unknown): void => {
    steadySinceMs = clock.steadyMs();
    if (!signal.aborted) deps.log.warn({ err: error }, 'failed to update presence: the database is not available');
  };
  while (!signal.aborted) {
    const startMs = clock.steadyMs();
    await renewInstance(deps.database, instance).catch(onFailure);
    if (clock.steadyMs() - startMs > LIMITS.presenceSilentMs / 2) steadySinceMs = clock.steadyMs();
    // Not awaited: the heartbeat must not wait for it.
    if (clock.steadyMs() - steadySinceMs > LIMITS.presenceSilentMs) sweeping = sweepOthers().catch(onFailure);
    await clock.wait(LIMITS.presenceRenewMs, { signal }).catch(() => undefined);
  }
  await sweeping;
}

async function sweep(deps: PresenceDeps): Promise<void> {
  for (;;) {
    const silent = await takeSilentInstance(deps.database, LIMITS.presenceSilentMs);
    if (silent === null) return;
    await endAllPresence(deps.database, silent, deps.now());
    const devices = await storeEnds(deps, silent);
    await removeInstance(deps.database, silent);
    deps.log.info({ instance: silent, devices }, 'marked the devices of an ended instance offline');
  }
}
