/** Reports rules whose commands are held back: each with an object once an hour, whichever instance sees it. */
import { LRUCache } from 'lru-cache';
import { type Audit, auditIdOf, NO_REQUEST } from '../accounts/audit.js';
import { cacheSize } from '../core/cache-size.js';
import { LIMITS } from '../core/limits.js';
import type { AlarmParts } from './alarm-actions.js';

export interface ReporterDeps {
  readonly audit: Audit;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export function createHeldBackReporter({ audit, log, now }: ReporterDeps): AlarmParts['onHeldBack'] {
  const reported = new LRUCache<string, number>(cacheSize(LIMITS.heldBackRemembered));
  return ({ ruleId, ownerId, objectId, command }) => {
    const hour = Math.floor(now() / LIMITS.ruleCommandsMs);
    const key = `${ruleId} ${objectId}`;
    if (reported.get(key) === hour) return;
    reported.set(key, hour);
    const entry = {
      action: 'commands held back',
      userId: ownerId,
      ...NO_REQUEST,
      entityId: ruleId,
      fields: [`object=${objectId}`, `command=${command}`],
    };
    audit.recordOnce(auditIdOf('held back', ruleId, objectId, hour), entry).catch((err) => {
      reported.delete(key);
      log.warn({ err, rule: ruleId }, 'failed to record that commands of a rule are held back');
    });
  };
}
