/** The journal of commands, beside what every store has: it is shared with those its object is shared with. */
import { ObjectId } from 'mongodb';
import type { Database } from './connect.js';
import { translated } from './documents.js';

/** Shares the commands of an object with a user, or takes them back. */
export async function shareCommands(
  database: Database,
  objectId: string,
  userId: string,
  shared: boolean,
): Promise<void> {
  const change = { access: new ObjectId(userId) };
  await translated(() =>
    database.db
      .collection('commands')
      .updateMany({ object: new ObjectId(objectId) }, shared ? { $addToSet: change } : { $pull: change as never }),
  );
}
