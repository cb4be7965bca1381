/**
 * Sets `_withoutOwner` on older commands: the sender of a command does not see it if the object is no longer shared with them, or
 * if the object was removed without its commands.
 */
import { type Document, ObjectId } from 'mongodb';
import type { Migration } from './migration.js';

const BATCH = 1_000;

export const commandOwners: Migration = {
  name: '0003-command-owners',
  async run({ db }, lost) {
    const commands = db.collection('commands');
    const unmarked = { _withoutOwner: { $exists: false } };
    for (let after = new ObjectId('0'.repeat(24)); !lost.aborted; ) {
      const options = { projection: { object: 1 }, sort: { _id: 1 }, limit: BATCH } as const;
      const some = await commands.find({ ...unmarked, _id: { $gt: after } }, options).toArray();
      const last = some.at(-1);
      if (last === undefined) return;
      after = last._id;
      const within = { _id: { $in: some.map(({ _id }) => _id) } };
      const ids = [...new Map(some.map(({ object }) => [String(object), object])).values()];
      const fields = { projection: { owner: 1, access: 1 } };
      for (const object of await db
        .collection('objects')
        .find({ _id: { $in: ids } }, fields)
        .toArray()) {
        const viewers = [...((object.access as ObjectId[]) ?? []), object.owner];
        await commands.updateMany({ ...within, ...unmarked, object: object._id }, mark(viewers));
      }
      await commands.updateMany({ ...within, ...unmarked }, mark({ $ifNull: ['$access', []] }));
    }
  },
};

const mark = (viewers: unknown): Document[] => [{ $set: { _withoutOwner: { $not: [{ $in: ['$owner', viewers] }] } } }];
