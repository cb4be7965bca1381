/** Reports invalid messages of devices, at most once per device per minute. */
import { LRUCache } from 'lru-cache';
import type { Audit } from '../accounts/audit.js';
import { cacheSize } from '../core/cache-size.js';
import { toApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { DeviceRecord } from './devices.js';

/** Reports why a message on `topic` was rejected. */
export type ReportInvalidMessage = (record: DeviceRecord, topic: string, error: unknown) => void;

export interface ReportDeps {
  /** Counts each of them, reported or not. */
  readonly onRefused: () => void;
  readonly audit: Audit;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

/** Writes a log line and a security event, which is visible to callers who see events of the object's owner. */
export function createInvalidMessageReporter({ onRefused, audit, log, now }: ReportDeps): ReportInvalidMessage {
  const reports = new LRUCache<string, { atMs: number; since: number }>(cacheSize(LIMITS.mqttDevicesRemembered));
  return (record, topic, error) => {
    onRefused();
    const last = reports.get(record.objectId);
    if (last !== undefined && now() - last.atMs < LIMITS.mqttFaultToldMs) {
      last.since++;
      return;
    }
    reports.set(record.objectId, { atMs: now(), since: 0 });
    const shortTopic = topic.slice(0, LIMITS.nameCharacters);
    const { status, message: reason, cause } = toApiError(error);
    const details = { object: record.objectId, topic: shortTopic, reason, unreported: last?.since ?? 0 };
    if (status === 500) log.error({ ...details, err: cause }, 'message rejected: internal error');
    else log.warn(details, 'message rejected');
    audit.record({
      action: 'message refused',
      userId: record.ownerId,
      login: null,
      address: 'mqtt',
      requestId: '',
      method: 'PUBLISH',
      path: shortTopic,
      entityId: record.objectId,
      fields: [reason],
    });
  };
}
