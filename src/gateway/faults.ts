/** Messages of devices that make no sense: counted, and told once per device and minute. */
import { LRUCache } from 'lru-cache';
import type { Audit } from '../db/audit.js';
import type { DeviceRecord } from '../db/devices.js';
import { toApiError } from '../errors.js';
import { atMost } from '../model/cache-size.js';
import { LIMITS } from '../model/limits.js';

/** Says what was wrong with a message on `topic`: what it was refused with. */
export type TellFault = (record: DeviceRecord, topic: string, error: unknown) => void;

export interface FaultParts {
  readonly audit: Audit;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

/** A line in the log, and an event that whoever sees what the object's owner does can read. */
export function createFaults({ audit, log, now }: FaultParts): TellFault {
  const told = new LRUCache<string, { atMs: number; since: number }>(atMost(LIMITS.mqttDevicesRemembered));
  return (record, topic, error) => {
    const last = told.get(record.objectId);
    if (last !== undefined && now() - last.atMs < LIMITS.mqttFaultToldMs) {
      last.since++;
      return;
    }
    told.set(record.objectId, { atMs: now(), since: 0 });
    const shown = topic.slice(0, LIMITS.nameCharacters);
    const { status, message: why, cause } = toApiError(error);
    const about = { object: record.objectId, topic: shown, why, untold: last?.since ?? 0 };
    if (status === 500) log.error({ ...about, err: cause }, 'a message was refused: a fault of ours');
    else log.warn(about, 'a message was refused');
    audit.record({
      action: 'message refused',
      userId: record.ownerId,
      login: null,
      address: 'mqtt',
      requestId: '',
      method: 'PUBLISH',
      path: shown,
      entityId: record.objectId,
      fields: [why],
    });
  };
}
