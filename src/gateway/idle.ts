/**
 * Devices that only send now and then say themselves how long they may be silent (`config.offlineAfter`), whichever way
 * they send. Every instance hears every packet and finds the same silence; the packet that tells it has one `_id`.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '../db/connect.js';
import { type DeviceRecord, findDevice, findQuietDevices, readOfflineAfter } from '../db/devices.js';
import { isAway } from '../db/documents.js';
import type { Ingest } from '../db/ingest.js';
import { isPresent } from '../db/presence.js';
import { readLatest } from '../db/states.js';
import { type Change, mayBeOther } from '../model/change.js';
import { isObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { type Digest, packetIdOf } from './packet-id.js';

export interface IdleParts {
  readonly database: Database;
  readonly ingest: Ingest;
  readonly digest: Digest;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Idle {
  start(): Promise<void>;
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

export function createIdle(parts: IdleParts): Idle {
  const quiet = new Map<string, Quiet>();
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const load = async (): Promise<void> => {
    const devices = await findQuietDevices(parts.database);
    quiet.clear();
    // Whoever was silent before is told so when the time is over once more, or at once if that was told already.
    for (const { objectId, offlineAfterMs } of devices) {
      const state = await readLatest(parts.database, objectId).catch((error: unknown) => {
        if (isAway(error)) throw error;
        parts.log.warn({ err: error, object: objectId }, 'the state of a device cannot be read');
        return null;
      });
      const heardAtMs = state?.online === true ? Math.floor(state._ts / 1_000) : null;
      quiet.set(objectId, { afterMs: offlineAfterMs ?? 0, heardAtMs });
    }
  };
  const loadLater = (): void => {
    load().catch((error) => parts.log.warn({ err: error }, 'silent devices are not known: told as changes come'));
  };
  return {
    async start() {
      await load();
      running = watch(parts, quiet, stopping.signal);
    },
    apply(change) {
      if (change.store === 'objects' && mayBeOther(change, ['config'])) applyObject(parts, quiet, change);
      const known = change.store === 'packets' && change.objectId !== null ? quiet.get(change.objectId) : undefined;
      if (known !== undefined) known.heardAtMs = change.after?.online === false ? null : parts.now();
    },
    applyAny: loadLater,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function applyObject(parts: IdleParts, quiet: Map<string, Quiet>, { id, after }: Change): void {
  const config = isObject(after?.config) ? after.config : {};
  const afterMs = readOfflineAfter(config.offlineAfter);
  if (afterMs === null) quiet.delete(id);
  else if (quiet.get(id)?.afterMs !== afterMs) {
    quiet.set(id, { afterMs, heardAtMs: quiet.get(id)?.heardAtMs ?? parts.now() });
  }
}

async function watch(parts: IdleParts, quiet: Map<string, Quiet>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const [objectId, known] of quiet) {
      const { heardAtMs, afterMs } = known;
      if (heardAtMs === null || parts.now() - heardAtMs <= afterMs || signal.aborted) continue;
      await tellSilence(parts, objectId).then(
        (isThere) => {
          // A packet that came meanwhile is heard of later than this.
          if (known.heardAtMs !== heardAtMs) return;
          known.heardAtMs = isThere ? heardAtMs + Math.min(afterMs, LIMITS.presenceAgainMs) : null;
        },
        (error) => parts.log.warn({ err: error }, 'the silence of a device could not be told: tried again'),
      );
    }
    await wait(LIMITS.presenceRenewMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Tells that a device is silent; true where it is there all the same, or was heard of again. */
async function tellSilence({ database, ingest, digest, now }: IdleParts, objectId: string): Promise<boolean> {
  const device: DeviceRecord | null = await findDevice(database, objectId);
  const state = await readLatest(database, objectId);
  const { offlineAfterMs } = device ?? {};
  // As it is stored: another instance may have told it, and whoever is connected is there.
  if (device === null || offlineAfterMs == null || state === null || state.online === false) return false;
  if (now() - state._ts / 1_000 <= offlineAfterMs || (await isPresent(database, objectId))) return true;
  const timeMs = Math.max(now(), state.time + 1);
  const id = packetIdOf(state.time, digest(Buffer.from(`${objectId}\n${state._id}\nsilent`)));
  await ingest(device, [{ id, formerId: null, timeMs, online: false, parameters: {} }]);
  return false;
}
