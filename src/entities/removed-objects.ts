/** Who saw objects at their removal: that decides what may still be sent about them, such as messages of webhooks that wait. */

import { type Document, type Filter, ObjectId, type WithId } from 'mongodb';
import { type AccessFields, audienceOf } from '../core/access.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';

const removedIn = ({ db }: Database) => db.collection('removedObjects');

/** Removes an object with its notes and keeps who saw it, all or nothing. Returns its last state; null where no object matches. */
export function removeObject(database: Database, filter: Filter<Document>): Promise<WithId<Document> | null> {
  const remove = () =>
    database.client.withSession((session) =>
      session.withTransaction(async () => {
        const removed = await database.db.collection('objects').findOneAndDelete(filter, { session });
        if (removed === null) return null;
        const { _id, owner, branch, access } = removed;
        await database.db.collection('notes').deleteMany({ object: _id }, { session });
        const expires = new Date(clock.now() + LIMITS.removedObjectKeptMs);
        await removedIn(database).replaceOne({ _id }, { owner, branch, access, expires }, { upsert: true, session });
        return removed;
      }),
    );
  return mapDriverErrors(remove, LIMITS.databaseOperationMs);
}

/** The addresses of all who saw the object at its removal; null where that is not known, or no longer. */
export async function findFormerAudience(database: Database, objectId: string): Promise<readonly string[] | null> {
  const found = await mapDriverErrors(() => removedIn(database).findOne({ _id: new ObjectId(objectId) }));
  return found === null ? null : audienceOf(toPlain(found) as unknown as AccessFields);
}
