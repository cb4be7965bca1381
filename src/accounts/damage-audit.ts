/** Reports damaged documents that reads have met: each once an hour, whichever instance meets it, and only so many of them. */
import { LIMITS } from '../core/limits.js';
import { cutReason } from '../packets/reasons.js';
import type { StoredDamage } from '../platform/mongo/driver/client.js';
import { type Audit, auditIdOf, NO_REQUEST } from './audit.js';

export interface DamageReporterDeps {
  readonly audit: Pick<Audit, 'recordOnce'>;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
  /** Called for every read, also of a document that is reported already. */
  readonly onRead: () => void;
}

/** The event is visible to callers who see those of the root group: disks are theirs. */
export function createDamageReporter({ audit, log, now, onRead }: DamageReporterDeps): (damage: StoredDamage) => void {
  const reported = new Set<string>();
  let hour = 0;
  return ({ documentId, objectId, reason }) => {
    onRead();
    const thisHour = Math.floor(now() / LIMITS.damagedInAuditMs);
    if (thisHour !== hour) reported.clear();
    hour = thisHour;
    if (reported.has(documentId) || reported.size >= LIMITS.damagedInAudit) return;
    reported.add(documentId);
    const entry = {
      action: 'history damaged',
      userId: null,
      ...NO_REQUEST,
      entityId: objectId,
      fields: [cutReason(reason)],
    };
    audit.recordOnce(auditIdOf(documentId, hour), entry).catch((err) => {
      reported.delete(documentId);
      log.warn({ err, object: objectId }, 'failed to record that packed history is damaged');
    });
  };
}
