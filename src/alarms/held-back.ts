/** Reports rules whose commands are held back: each with an object once an hour, whichever instance sees it. */
import { hash } from 'node:crypto';
import { ObjectId } from 'mongodb';
import type { Audit } from '../accounts/audit.js';
import { LIMITS } from '../core/limits.js';
import type { AlarmParts } from './alarm-writes.js';

export interface ReporterDeps {
  readonly audit: Audit;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export function createHeldBackReporter({ audit, log, now }: ReporterDeps): AlarmParts['onHeldBack'] {
  return ({ ruleId, ownerId, objectId, command }) => {
    const hour = Math.floor(now() / LIMITS.ruleCommandsMs);
    const id = hash('sha256', JSON.stringify(['held back', ruleId, objectId, hour])).slice(0, 24);
    const entry = {
      action: 'commands held back',
      userId: ownerId,
      login: null,
      address: '',
      requestId: '',
      method: '',
      path: '',
      entityId: ruleId,
      fields: [`object=${objectId}`, `command=${command}`],
    };
    audit.recordOnce(new ObjectId(id), entry).catch((err) => {
      log.warn({ err, rule: ruleId }, 'failed to record that commands of a rule are held back');
    });
  };
}
