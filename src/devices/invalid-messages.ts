/** Reports invalid messages of devices: all of them at their objects, and at most one per device per minute in the audit and the log. */
import { LRUCache } from 'lru-cache';
import type { Audit } from '../accounts/audit.js';
import { cacheSize } from '../core/cache-size.js';
import { type ApiError, toApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { refusalsIn } from '../packets/packet.js';
import { cutReason } from '../packets/reasons.js';
import type { RefusedPackets } from '../packets/refused-packets.js';
import type { DeviceRecord } from './devices.js';

/** Reports why a message on `topic` was rejected. */
export type ReportInvalidMessage = (record: DeviceRecord, topic: string, error: unknown) => void;

export interface ReportDeps {
  /** Counts each of them, reported or not. */
  readonly onRefused: () => void;
  readonly audit: Audit;
  readonly refusedPackets: RefusedPackets;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

/**
 * Records the message at the object, and writes a log line and a security event, which is visible to callers who see events of the
 * object's owner.
 */
export function createInvalidMessageReporter(deps: ReportDeps): ReportInvalidMessage {
  const { onRefused, audit, log, now } = deps;
  const reports = new LRUCache<string, { atMs: number; since: number }>(cacheSize(LIMITS.mqttDevicesRemembered));
  return (record, topic, thrown) => {
    const error = toApiError(thrown);
    onRefused();
    keep(deps, record, topic, error);
    const last = reports.get(record.objectId);
    if (last !== undefined && now() - last.atMs < LIMITS.mqttErrorReportPauseMs) {
      last.since++;
      return;
    }
    reports.set(record.objectId, { atMs: now(), since: 0 });
    const shortTopic = topic.slice(0, LIMITS.nameCharacters);
    const { status, message, cause } = error;
    const reason = cutReason(message);
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
      fields: reasonsOf(error),
    });
  };
}

function keep({ refusedPackets, now }: ReportDeps, { objectId }: DeviceRecord, topic: string, error: ApiError): void {
  const common = { time: now(), via: 'mqtt', topic } as const;
  const refused = refusalsIn(error) ?? [{ index: null, reason: error.message }];
  refusedPackets.record(
    objectId,
    refused.map((one) => ({ ...common, ...one })),
  );
}

/** Of the message, or of its first packets that were refused. */
function reasonsOf(error: ApiError): string[] {
  const refused = refusalsIn(error)?.slice(0, LIMITS.refusedInAudit);
  return refused?.map(({ index, reason }) => `[${index}]: ${reason}`) ?? [cutReason(error.message)];
}
