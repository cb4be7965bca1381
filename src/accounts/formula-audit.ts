/** Reports formulas of models that have no result: each parameter of a model once a minute, whichever instance sees it. */
import { LRUCache } from 'lru-cache';
import { cacheSize } from '../core/cache-size.js';
import { LIMITS } from '../core/limits.js';
import { MINUTE_MS } from '../core/units.js';
import type { FailedFormula } from '../packets/models.js';
import { cutReason } from '../packets/reasons.js';
import { type Audit, auditIdOf, NO_REQUEST } from './audit.js';

export interface FormulaReporterDeps {
  readonly audit: Audit;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

/** The event is visible to callers who see those of the owner of the model. */
export function createFormulaReporter({ audit, log, now }: FormulaReporterDeps): (failed: FailedFormula) => void {
  const reported = new LRUCache<string, number>(cacheSize(LIMITS.cachedModels));
  return ({ modelId, ownerId, parameter, reason }) => {
    const minute = Math.floor(now() / MINUTE_MS);
    const key = `${modelId} ${parameter}`;
    if (reported.get(key) === minute) return;
    reported.set(key, minute);
    const entry = {
      action: 'formula failed',
      userId: ownerId,
      ...NO_REQUEST,
      entityId: modelId,
      fields: [`${parameter}: ${cutReason(reason)}`],
    };
    audit.recordOnce(auditIdOf(modelId, parameter, minute), entry).catch((err) => {
      reported.delete(key);
      log.warn({ err, model: modelId }, 'failed to record a formula that has no result');
    });
  };
}
