/** Reports invalid own ids. Former versions accepted `*`, the form of an `_id`, and blanks; these name no object. */

import { LIMITS } from '../../model/limits.js';
import { isValidOwnId } from '../../model/own-id.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import type { Audit } from './audit.js';

/** A pattern for MongoDB, with the same blanks as in JavaScript. */
const INVALID_OWN_ID = '^(\\*|[0-9a-fA-F]{24}|[\\s\\x{85}\\p{Z}\\x{feff}]*)$';

interface InvalidOwnId {
  readonly objectId: string;
  readonly ownId: string;
  readonly ownerId: string;
}

/** Finds objects with an invalid own id, at most as many as the audit can queue. The query scans only index keys. */
async function findInvalidOwnIds({ db }: Database): Promise<InvalidOwnId[]> {
  const options = {
    projection: { id: 1, owner: 1 },
    limit: LIMITS.auditPending,
    maxTimeMS: LIMITS.databaseOperationMs,
  };
  const found = await mapDriverErrors(
    () =>
      db
        .collection('objects')
        .find({ id: { $regex: INVALID_OWN_ID } }, options)
        .toArray(),
    LIMITS.databaseOperationMs,
  );
  return found
    .filter(({ id }) => !isValidOwnId(id))
    .map(({ _id, id, owner }) => ({ objectId: String(_id), ownId: id, ownerId: String(owner) }));
}

export interface ReportDeps {
  readonly database: Database;
  readonly audit: Audit;
  readonly log: { warn(details: object, message: string): void };
}

/**
 * Reports objects that have to be renamed: in the log, and as security events for the administrators of their owners. The service
 * does not wait for it, because these ids name no object in any case.
 */
export async function reportInvalidOwnIds({ database, audit, log }: ReportDeps): Promise<void> {
  const objects = await findInvalidOwnIds(database).catch((error) => {
    log.warn({ err: error }, 'failed to check for objects with an invalid id; retrying at the next start');
    return [];
  });
  if (objects.length === 0) return;
  log.warn({ objects }, 'objects have an invalid id: change it by their _id');
  for (const { objectId, ownId, ownerId } of objects) {
    audit.record({
      action: 'unusable id',
      userId: ownerId,
      login: null,
      address: 'start',
      requestId: '',
      method: '',
      path: `/objects/${objectId}`,
      entityId: objectId,
      fields: [`id: ${JSON.stringify(ownId)}`],
    });
  }
}
