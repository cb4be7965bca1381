/** Own ids that name nobody: those of former versions, which took `*`, what looks like an `_id`, and blanks. */

import { LIMITS } from '../model/limits.js';
import { namesObject } from '../model/own-id.js';
import type { Audit } from './audit.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';

/** What such an id looks like: a pattern of the database's, in which a blank is what JavaScript takes for one. */
const NAMELESS = '^(\\*|[0-9a-fA-F]{24}|[\\s\\x{85}\\p{Z}\\x{feff}]*)$';

interface Nameless {
  readonly objectId: string;
  readonly ownId: string;
  readonly ownerId: string;
}

/** Objects whose own id names nobody, as many as can be told of at once: only keys of the index are looked at. */
async function findNameless({ db }: Database): Promise<Nameless[]> {
  const options = {
    projection: { id: 1, owner: 1 },
    limit: LIMITS.auditPending,
    maxTimeMS: LIMITS.databaseOperationMs,
  };
  const found = await translated(
    () =>
      db
        .collection('objects')
        .find({ id: { $regex: NAMELESS } }, options)
        .toArray(),
    LIMITS.databaseOperationMs,
  );
  return found
    .filter(({ id }) => !namesObject(id))
    .map(({ _id, id, owner }) => ({ objectId: String(_id), ownId: id, ownerId: String(owner) }));
}

export interface TellingParts {
  readonly database: Database;
  readonly audit: Audit;
  readonly log: { warn(details: object, message: string): void };
}

/**
 * Tells of objects that have to be renamed: in the log, and to those who administer their owners. Nobody has to wait for it:
 * such an id names nobody all the same.
 */
export async function tellNameless({ database, audit, log }: TellingParts): Promise<void> {
  const objects = await findNameless(database).catch((error) => {
    log.warn(
      { err: error },
      'it is not known whether objects have an id that names nobody: asked again at the next start',
    );
    return [];
  });
  if (objects.length === 0) return;
  log.warn({ objects }, 'objects have an id that names nobody: give them another one by their _id');
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
