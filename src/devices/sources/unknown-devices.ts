/** Records in the audit which devices of sources no object has, so that somebody can add them, and why samples are refused. */
import { LRUCache } from 'lru-cache';
import { type Audit, auditIdOf } from '../../accounts/audit.js';
import { cacheSize } from '../../core/cache-size.js';
import { LIMITS } from '../../core/limits.js';
import { cutReason } from '../../packets/reasons.js';
import type { SourceRecord } from './source-store.js';

/** Where a request came from. */
export interface Origin {
  readonly address: string;
  readonly requestId: string;
  readonly method: string;
}

export interface UnknownDeviceDeps {
  readonly audit: Pick<Audit, 'recordOnce'>;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

/** Reports samples that are not stored, for the administrators of the source's owner. */
export type ReportRefused = (source: SourceRecord, reasons: readonly string[], origin: Origin) => void;

/** At most once per source within `mqttErrorReportPauseMs`, as for devices over MQTT: all are at the source. */
export function createRefusedReporter({
  audit,
  now,
}: Pick<UnknownDeviceDeps, 'now'> & { readonly audit: Pick<Audit, 'record'> }): ReportRefused {
  const lastMs = new LRUCache<string, number>(cacheSize(LIMITS.cachedSources));
  return (source, reasons, origin) => {
    const nowMs = now();
    if (nowMs - (lastMs.get(source._id) ?? Number.NEGATIVE_INFINITY) < LIMITS.mqttErrorReportPauseMs) return;
    lastMs.set(source._id, nowMs);
    const fields = reasons.slice(0, LIMITS.refusedInAudit).map(cutReason);
    const path = `/in/${source.id}`;
    audit.record({
      action: 'message refused',
      userId: source.ownerId,
      login: null,
      ...origin,
      path,
      entityId: source._id,
      fields,
    });
  };
}

export type ReportUnknownDevice = (source: SourceRecord, device: string, origin: Origin) => void;

export function createUnknownDeviceReporter({ audit, log, now }: UnknownDeviceDeps): ReportUnknownDevice {
  const named = new LRUCache<string, { readonly hour: number; readonly devices: Set<string> }>(
    cacheSize(LIMITS.cachedSources),
  );
  return (source, given, origin) => {
    const hour = Math.floor(now() / LIMITS.sourceUnknownMs);
    const device = given.slice(0, LIMITS.idCharacters).toWellFormed();
    const last = named.get(source._id);
    const { devices } = last?.hour === hour ? last : { devices: new Set<string>() };
    if (devices.has(device) || devices.size >= LIMITS.sourceUnknownDevices) return;
    devices.add(device);
    named.set(source._id, { hour, devices });
    const entry = {
      action: 'unknown device',
      userId: source.ownerId,
      login: null,
      ...origin,
      path: `/in/${source.id}`,
      entityId: source._id,
      fields: [device],
    };
    audit.recordOnce(auditIdOf(source._id, device, hour), entry).catch((error) => {
      log.warn({ err: error, source: source._id }, 'failed to record an unknown device');
    });
  };
}
