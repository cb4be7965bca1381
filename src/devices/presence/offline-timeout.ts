/**
 * Marks devices offline after a silence of `config.offlineAfter`, whichever transport they use. Every instance sees all packets and
 * detects the same silence; the offline packet has the same `_id` on every instance, so it is stored once.
 */

import { backoffMs } from '../../core/backoff.js';
import { type Change, mayHaveChanged } from '../../core/change.js';
import { isObject } from '../../core/json.js';
import { LIMITS } from '../../core/limits.js';
import type { Ingest } from '../../packets/ingest.js';
import { findLastPacketTimes, type LastPacketTime } from '../../packets/last-packet-times.js';
import { clock } from '../../platform/clock.js';
import { inBatches } from '../../platform/mongo/driver/bulk-queue.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { type Digest, packetIdOf } from '../dedup-id.js';
import { type DeviceRecord, findDevices, listOfflineAfter, parseOfflineAfter } from '../devices.js';
import { findPresent } from '../presence-store.js';

export interface OfflineTimeoutDeps {
  readonly database: Database;
  readonly ingest: Ingest;
  readonly digest: Digest;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
  /** Called for each packet that reports its object offline. */
  readonly reportedOffline: (objectId: string) => void;
}

export interface OfflineTimeouts {
  /** Starts in the background. */
  start(): void;
  apply(change: Change): void;
  /** For a gap in the change stream. */
  reset(): void;
  stop(): Promise<void>;
}

interface WatchedDevice {
  readonly afterMs: number;
  /** When its last packet arrived, by the monotonic clock; null once the device was found or marked offline. */
  lastPacketAtMs: number | null;
}

interface State {
  /** By the `_id` of the object. */
  readonly watched: Map<string, WatchedDevice>;
  /** Objects that changed during the current load, which may read older values; null while no load is in progress. */
  changed: Set<string> | null;
  /** Whether the devices must be loaded (again). */
  isStale: boolean;
}

export function createOfflineTimeouts(deps: OfflineTimeoutDeps): OfflineTimeouts {
  const state: State = { watched: new Map(), changed: null, isStale: true };
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    start() {
      running = watch(deps, state, stopping.signal);
    },
    apply(change) {
      if (change.store === 'objects' && mayHaveChanged(change, ['config'])) applyObject(state, change);
      const isPacket = change.store === 'packets' && change.objectId !== null;
      if (!isPacket) return;
      const objectId = change.objectId as string;
      if (change.isOffline) deps.reportedOffline(objectId);
      const known = state.watched.get(objectId);
      if (known !== undefined) known.lastPacketAtMs = clock.steadyMs();
    },
    reset() {
      state.isStale = true;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Loads the devices with a timeout. Packets that arrive meanwhile are found before a device is marked offline. */
async function load({ database, now }: OfflineTimeoutDeps, state: State, signal: AbortSignal): Promise<void> {
  const changed = new Set<string>();
  Object.assign(state, { changed, isStale: false });
  try {
    const devices = await listOfflineAfter(database);
    for (const id of state.watched.keys()) if (!devices.has(id) && !changed.has(id)) state.watched.delete(id);
    for (const batch of inBatches([...devices], LIMITS.silentReadBatch)) {
      if (signal.aborted) return;
      const lastPackets = await findLastPacketTimes(
        database,
        batch.map(([objectId]) => objectId),
      );
      for (const [objectId, afterMs] of batch) {
        const storedAtMs = arrivalOf(lastPackets.get(objectId), now());
        // What arrived before a gap, or during this load, may have an older time than the packet that was read.
        const seenAtMs = state.watched.get(objectId)?.lastPacketAtMs ?? null;
        const lastPacketAtMs = seenAtMs === null ? storedAtMs : Math.max(seenAtMs, storedAtMs ?? seenAtMs);
        if (!changed.has(objectId)) state.watched.set(objectId, { afterMs, lastPacketAtMs });
      }
    }
  } catch (error) {
    state.isStale = true;
    throw error;
  } finally {
    state.changed = null;
  }
}

/**
 * When the last packet of a device arrived, by the monotonic clock; null if it is offline. This may be long ago: a device whose timeout has
 * passed is marked offline at the next check. After a report of presence, packets with older times may have arrived: then its
 * silence counts from now.
 */
function arrivalOf(last: LastPacketTime | undefined, nowMs: number): number | null {
  if (last === undefined || !last.isOnline) return null;
  const agoMs = last.hasData ? Math.max(0, nowMs - last.storedAtMs) : 0;
  return clock.steadyMs() - agoMs;
}

function applyObject({ watched, changed }: State, { id, after }: Change): void {
  changed?.add(id);
  const config = isObject(after?.config) ? after.config : {};
  const afterMs = parseOfflineAfter(config.offlineAfter);
  if (afterMs === null) watched.delete(id);
  else if (watched.get(id)?.afterMs !== afterMs) {
    watched.set(id, { afterMs, lastPacketAtMs: watched.get(id)?.lastPacketAtMs ?? clock.steadyMs() });
  }
}

async function watch(deps: OfflineTimeoutDeps, state: State, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const failed = await checkOnce(deps, state, signal);
    failures = failed === null ? 0 : failures + 1;
    if (failed !== null) deps.log.warn(failed, 'failed to mark silent devices offline; retrying');
    const { presenceRenewMs: firstMs, presenceRetryMaxMs: maxMs } = LIMITS;
    const pauseMs = failed === null ? firstMs : backoffMs(failures, firstMs, maxMs, clock.random());
    await clock.wait(pauseMs, { signal }).catch(() => undefined);
  }
}

async function checkOnce(deps: OfflineTimeoutDeps, state: State, signal: AbortSignal): Promise<Failed | null> {
  try {
    if (state.isStale) await load(deps, state, signal);
    return await storeOverdue(deps, state.watched, signal);
  } catch (err) {
    return { err, devices: null };
  }
}

interface Failed {
  readonly err: unknown;
  /** Null if the count is not known. */
  readonly devices: number | null;
}

/** Marks all overdue devices offline. Returns null, or the first error with the count of failed devices. */
async function storeOverdue(
  deps: OfflineTimeoutDeps,
  watched: Map<string, WatchedDevice>,
  signal: AbortSignal,
): Promise<Failed | null> {
  // The system clock may be set while devices are watched.
  const nowMs = clock.steadyMs();
  const overdue: [string, WatchedDevice][] = [];
  for (const entry of watched) {
    const { lastPacketAtMs, afterMs } = entry[1];
    if (lastPacketAtMs !== null && nowMs - lastPacketAtMs > afterMs) overdue.push(entry);
  }
  const failures: Failed[] = [];
  for (const batch of inBatches(overdue, LIMITS.presenceBatch)) {
    if (signal.aborted) break;
    const failed = await storeBatch(deps, batch).catch((err: unknown) => ({ err, devices: batch.length }));
    if (failed !== null) failures.push(failed);
  }
  const [first] = failures;
  return first === undefined
    ? null
    : { err: first.err, devices: failures.reduce((sum, { devices }) => sum + (devices ?? 0), 0) };
}

async function storeBatch(
  deps: OfflineTimeoutDeps,
  batch: readonly (readonly [string, WatchedDevice])[],
): Promise<Failed | null> {
  const previous = batch.map(([, { lastPacketAtMs }]) => lastPacketAtMs);
  const stored = await readStored(
    deps.database,
    batch.map(([objectId]) => objectId),
  );
  const outcomes = await Promise.allSettled(batch.map(([objectId]) => storeOffline(deps, stored, objectId)));
  const errors: unknown[] = [];
  for (const [index, outcome] of outcomes.entries()) {
    const known = batch[index]?.[1] as WatchedDevice;
    const lastPacketAtMs = previous[index] as number;
    if (outcome.status === 'rejected') errors.push(outcome.reason);
    // Otherwise a packet has arrived meanwhile.
    else if (known.lastPacketAtMs === lastPacketAtMs) {
      const isHeard = outcome.value === 'heard';
      known.lastPacketAtMs = isHeard ? lastPacketAtMs + Math.min(known.afterMs, LIMITS.presenceRecheckMs) : null;
    }
  }
  const marked = batch.flatMap(([objectId], index) => {
    const outcome = outcomes[index];
    return outcome?.status === 'fulfilled' && outcome.value === 'marked' ? objectId : [];
  });
  await reportConnected(deps, stored.devices, marked);
  return errors.length === 0 ? null : { err: errors[0], devices: errors.length };
}

/** Stored values: another instance may have marked the device offline, and connected devices are online. */
interface Stored {
  readonly devices: ReadonlyMap<string, DeviceRecord>;
  readonly lastPackets: ReadonlyMap<string, LastPacketTime>;
  readonly present: ReadonlySet<string>;
}

async function readStored(database: Database, ids: readonly string[]): Promise<Stored> {
  const [devices, lastPackets, present] = await Promise.all([
    findDevices(database, ids),
    findLastPacketTimes(database, ids),
    findPresent(database, ids),
  ]);
  return { devices: new Map(devices.map((device) => [device.objectId, device])), lastPackets, present };
}

/** `heard`: it is connected or has sent a packet meanwhile, so that it must be checked again. */
type Silence = 'heard' | 'marked' | 'offline before';

/** Marks a device offline that is silent. */
async function storeOffline(
  { database, ingest, digest, now }: OfflineTimeoutDeps,
  stored: Stored,
  objectId: string,
): Promise<Silence> {
  const device = stored.devices.get(objectId);
  const last = stored.lastPackets.get(objectId);
  const isWatched = device !== undefined && device.offlineAfterMs !== null;
  if (!isWatched || last === undefined || !last.isOnline) return 'offline before';
  const agoMs = now() - last.storedAtMs;
  // Of the time before the clock was set back, nothing is known.
  const isRecent = agoMs >= -database.clock.aheadMs && agoMs <= Number(device.offlineAfterMs);
  if (isRecent || stored.present.has(objectId)) return 'heard';
  const timeMs = Math.max(now(), last.timeMs + 1);
  const id = packetIdOf(last.timeMs, digest(Buffer.from(`${objectId}\n${last.packetId}\nsilent`)));
  await ingest(device, [{ id, timeMs, online: false, parameters: {} }]);
  return 'marked';
}

/** A device that connected while it was being marked has read that it was online, and stored nothing that says so. */
async function reportConnected(
  { database, ingest, digest, now }: OfflineTimeoutDeps,
  devices: ReadonlyMap<string, DeviceRecord>,
  marked: readonly string[],
): Promise<void> {
  if (marked.length === 0) return;
  const connected = [...(await findPresent(database, marked))];
  const report = async ([objectId, last]: [string, LastPacketTime]): Promise<void> => {
    const device = devices.get(objectId);
    if (device === undefined || last.isOnline) return;
    const timeMs = Math.max(now(), last.timeMs + 1);
    const id = packetIdOf(last.timeMs, digest(Buffer.from(`${objectId}\n${last.packetId}\nconnected`)));
    await ingest(device, [{ id, timeMs, online: true, parameters: {} }]);
  };
  await Promise.all([...(await findLastPacketTimes(database, connected))].map(report));
}
