/**
 * Commands of the time before it was noted whether the one who gave a command sees it as that: not where the object is not shared
 * with them (any more), nor where the object is gone and the command is not.
 */
import { type Document, ObjectId } from 'mongodb';
import type { Migration } from './migration.js';

const BATCH = 1_000;

export const commandOwners: Migration = {
  name: '0003-command-owners',
  async run({ db }, lost) {
    const commands = db.collection('commands');
    const unnoted = { _withoutOwner: { $exists: false } };
    for (let after = new ObjectId('0'.repeat(24)); !lost.aborted; ) {
      const options = { projection: { object: 1 }, sort: { _id: 1 }, limit: BATCH } as const;
      const some = await commands.find({ ...unnoted, _id: { $gt: after } }, options).toArray();
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
        const seeing = [...((object.access as ObjectId[]) ?? []), object.owner];
        await commands.updateMany({ ...within, ...unnoted, object: object._id }, noted(seeing));
      }
      await commands.updateMany({ ...within, ...unnoted }, noted({ $ifNull: ['$access', []] }));
    }
  },
};

const noted = (seeing: unknown): Document[] => [{ $set: { _withoutOwner: { $not: [{ $in: ['$owner', seeing] }] } } }];
