/**
 * Devices that only send now and then say themselves how long they may be silent (`config.offlineAfter`), whichever way
 * they send. Every instance receives every packet and finds the same silence; the packet that tells it has one `_id`.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '../db/connect.js';
import { type DeviceRecord, findDevices, listOfflineAfter, readOfflineAfter } from '../db/devices.js';
import { inBatches } from '../db/in-groups.js';
import type { Ingest } from '../db/ingest.js';
import { findLastHeard, type LastHeard } from '../db/last-heard.js';
import { findPresent } from '../db/presence.js';
import { type Change, mayBeOther } from '../model/change.js';
import { isObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { backoffMs } from './backoff.js';
import { type Digest, packetIdOf } from './packet-id.js';

export interface IdleParts {
  readonly database: Database;
  readonly ingest: Ingest;
  readonly digest: Digest;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Idle {
  /** Begins to look for who is silent; nothing waits for that. */
  start(): void;
  apply(change: Change): void;
  /** Changes were missed. */
  applyAny(): void;
  stop(): Promise<void>;
}

/** When an object was last heard of, ms; null once its silence was told. */
interface Quiet {
  readonly afterMs: number;
  heardAtMs: number | null;
}

interface State {
  readonly quiet: Map<string, Quiet>;
  /** What changed since the load under way began, and is newer than what it reads; null while there is none. */
  changed: Set<string> | null;
  /** Whether devices are to be read (again). */
  isStale: boolean;
}

export function createIdle(parts: IdleParts): Idle {
  const state: State = { quiet: new Map(), changed: null, isStale: true };
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  return {
    start() {
      running = watch(parts, state, stopping.signal);
    },
    apply(change) {
      if (change.store === 'objects' && mayBeOther(change, ['config'])) applyObject(parts, state, change);
      const isPacket = change.store === 'packets' && change.objectId !== null;
      const known = isPacket ? state.quiet.get(change.objectId as string) : undefined;
      if (known !== undefined) known.heardAtMs = change.after?.online === false ? null : parts.now();
    },
    applyAny() {
      state.isStale = true;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Reads who may be silent for how long. A packet that comes meanwhile is found when the silence is to be told. */
async function load({ database }: IdleParts, state: State, signal: AbortSignal): Promise<void> {
  const changed = new Set<string>();
  Object.assign(state, { changed, isStale: false });
  try {
    const devices = await listOfflineAfter(database);
    for (const id of state.quiet.keys()) if (!devices.has(id) && !changed.has(id)) state.quiet.delete(id);
    for (const batch of inBatches([...devices], LIMITS.silentReadBatch)) {
      if (signal.aborted) return;
      const heard = await findLastHeard(
        database,
        batch.map(([objectId]) => objectId),
      );
      for (const [objectId, afterMs] of batch) {
        // Whoever was silent before is told so when the time is over once more, or at once if that was told already.
        const last = heard.get(objectId);
        const heardAtMs = last?.isOnline ? last.storedAtMs : null;
        if (!changed.has(objectId)) state.quiet.set(objectId, { afterMs, heardAtMs });
      }
    }
  } catch (error) {
    state.isStale = true;
    throw error;
  } finally {
    state.changed = null;
  }
}

function applyObject(parts: IdleParts, { quiet, changed }: State, { id, after }: Change): void {
  changed?.add(id);
  const config = isObject(after?.config) ? after.config : {};
  const afterMs = readOfflineAfter(config.offlineAfter);
  if (afterMs === null) quiet.delete(id);
  else if (quiet.get(id)?.afterMs !== afterMs) {
    quiet.set(id, { afterMs, heardAtMs: quiet.get(id)?.heardAtMs ?? parts.now() });
  }
}

async function watch(parts: IdleParts, state: State, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const failed = await look(parts, state, signal);
    failures = failed === null ? 0 : failures + 1;
    if (failed !== null) parts.log.warn(failed, 'the silence of devices could not be told: tried again');
    const pauseMs = failed === null ? LIMITS.presenceRenewMs : backoffMs(failures);
    await wait(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

async function look(parts: IdleParts, state: State, signal: AbortSignal): Promise<Failed | null> {
  try {
    if (state.isStale) await load(parts, state, signal);
    return await tellOverdue(parts, state.quiet, signal);
  } catch (err) {
    return { err, devices: null };
  }
}

/** Why something could not be told, and of how many devices; null where that is not known. */
interface Failed {
  readonly err: unknown;
  readonly devices: number | null;
}

/** Tells of everyone whose time is over; null where that could be done, or why it could not, and of how many. */
async function tellOverdue(parts: IdleParts, quiet: Map<string, Quiet>, signal: AbortSignal): Promise<Failed | null> {
  const nowMs = parts.now();
  const overdue: [string, Quiet][] = [];
  for (const entry of quiet) {
    const { heardAtMs, afterMs } = entry[1];
    if (heardAtMs !== null && nowMs - heardAtMs > afterMs) overdue.push(entry);
  }
  const failures: Failed[] = [];
  for (const batch of inBatches(overdue, LIMITS.presenceBatch)) {
    if (signal.aborted) break;
    const failed = await tellBatch(parts, batch).catch((err: unknown) => ({ err, devices: batch.length }));
    if (failed !== null) failures.push(failed);
  }
  const [first] = failures;
  return first === undefined
    ? null
    : { err: first.err, devices: failures.reduce((sum, { devices }) => sum + (devices ?? 0), 0) };
}

async function tellBatch(parts: IdleParts, batch: readonly (readonly [string, Quiet])[]): Promise<Failed | null> {
  const heardBefore = batch.map(([, { heardAtMs }]) => heardAtMs);
  const stored = await readStored(
    parts.database,
    batch.map(([objectId]) => objectId),
  );
  const outcomes = await Promise.allSettled(batch.map(([objectId]) => tellSilence(parts, stored, objectId)));
  const errors: unknown[] = [];
  for (const [nth, outcome] of outcomes.entries()) {
    const [known, heardAtMs] = [batch[nth]?.[1] as Quiet, heardBefore[nth] as number];
    if (outcome.status === 'rejected') errors.push(outcome.reason);
    // A packet that came meanwhile is heard of later than this.
    else if (known.heardAtMs === heardAtMs) {
      known.heardAtMs = outcome.value ? heardAtMs + Math.min(known.afterMs, LIMITS.presenceAgainMs) : null;
    }
  }
  return errors.length === 0 ? null : { err: errors[0], devices: errors.length };
}

/** As it is stored: another instance may have told it, and whoever is connected is there. */
interface Stored {
  readonly devices: ReadonlyMap<string, DeviceRecord>;
  readonly heard: ReadonlyMap<string, LastHeard>;
  readonly present: ReadonlySet<string>;
}

async function readStored(database: Database, ids: readonly string[]): Promise<Stored> {
  const [devices, heard, present] = await Promise.all([
    findDevices(database, ids),
    findLastHeard(database, ids),
    findPresent(database, ids),
  ]);
  return { devices: new Map(devices.map((device) => [device.objectId, device])), heard, present };
}

/** Tells that a device is silent; true where it is there all the same, or was heard of again. */
async function tellSilence({ ingest, digest, now }: IdleParts, stored: Stored, objectId: string): Promise<boolean> {
  const device = stored.devices.get(objectId);
  const last = stored.heard.get(objectId);
  if (device === undefined || device.offlineAfterMs === null || last === undefined || !last.isOnline) return false;
  if (now() - last.storedAtMs <= device.offlineAfterMs || stored.present.has(objectId)) return true;
  const timeMs = Math.max(now(), last.timeMs + 1);
  const id = packetIdOf(last.timeMs, digest(Buffer.from(`${objectId}\n${last.packetId}\nsilent`)));
  await ingest(device, [{ id, formerId: null, timeMs, online: false, parameters: {} }]);
  return false;
}
