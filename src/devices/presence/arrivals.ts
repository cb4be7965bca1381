/**
 * A device that sends is online. Values count by the time of the device, so a packet that is older than the report that the object
 * is offline would leave it offline: after such a packet, another one reports that the object is online.
 */
import { LIMITS } from '../../core/limits.js';
import type { Ingest } from '../../packets/ingest.js';
import { type LastPacketTime, readLastPacketTimes } from '../../packets/last-packet-times.js';
import { createReadThroughCache } from '../../platform/cache.js';
import { createMinuteCount } from '../../platform/minute-count.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { type Digest, packetIdOf } from '../dedup-id.js';

export interface ArrivalDeps {
  readonly database: Database;
  /** Stores packets as they are. */
  readonly ingest: Ingest;
  readonly digest: Digest;
  /** Whether the change stream delivers. */
  readonly isLive: () => boolean;
  readonly log: { warn(details: object, message: string): void };
}

export interface Arrivals {
  /** Stores packets, and that their object is online. */
  readonly ingest: Ingest;
  /** Stores packets as they are: reports of presence by the service. */
  readonly storePresence: Ingest;
  /** Called for each packet that reports its object offline. */
  reportedOffline(objectId: string): void;
  /** For a gap in the change stream, and for a step of the clock. */
  invalidateAll(): void;
}

/** The latest packet of an object if it reports the object offline; else null. */
interface Known {
  readonly offline: LastPacketTime | null;
}

export function createArrivals({ database, ingest, digest, isLive, log }: ArrivalDeps): Arrivals {
  const known = createReadThroughCache<Known>(LIMITS.cachedArrivals, isLive, async (objectId) => {
    const last = await readLastPacketTimes(database, objectId);
    return { offline: last === null || last.isOnline ? null : last };
  });
  const lookups = createMinuteCount();
  const reports = createMinuteCount();
  // The packets are stored whether or not this is known.
  const findOffline = async (objectId: string): Promise<LastPacketTime | null> => {
    try {
      return (await known.find(objectId))?.offline ?? null;
    } catch (err) {
      const failed = lookups();
      const details = { err, object: objectId, failed };
      if (failed !== null) log.warn(details, 'failed to find out whether a device that sends was offline');
      return null;
    }
  };
  const storePresence: Ingest = async (source, messages, options) => {
    const stored = await ingest(source, messages, options);
    known.invalidate(source.objectId);
    return stored;
  };
  return {
    storePresence,
    async ingest(source, messages, options) {
      const { objectId } = source;
      if (messages.at(-1)?.online !== true) return storePresence(source, messages, options);
      const [stored, offline] = await Promise.all([ingest(source, messages, options), findOffline(objectId)]);
      if (offline === null) return stored;
      if (stored.packets.some(({ online, time }) => online && time > offline.timeMs)) {
        known.invalidate(objectId);
        return stored;
      }
      // Of packets of one time, the one with the greater `_ts` counts, and the clocks of instances differ.
      const timeMs = Math.max(database.clock.now(), offline.timeMs + 1);
      // Equal for all who find the object offline at the same time.
      const id = packetIdOf(offline.timeMs, digest(Buffer.from(`${objectId}\n${offline.packetId}\nsends`)));
      try {
        await ingest(source, [{ id, timeMs, online: true, parameters: {} }]);
      } catch (err) {
        // The packets are stored. The next one of the device reports it online again.
        const failed = reports();
        const details = { err, object: objectId, failed };
        if (failed !== null) log.warn(details, 'failed to report that a device that sends is online');
      } finally {
        known.invalidate(objectId);
      }
      return stored;
    },
    reportedOffline: known.invalidate,
    invalidateAll: known.invalidateAll,
  };
}
