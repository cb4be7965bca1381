/** Commands from before expiry existed get the default: they expire a day after their creation. */

import type { Migration } from './migration.js';

const DAY_MS = 86_400_000;
const BATCH = 1_000;

export const commandExpiry: Migration = {
  name: '0001-command-expiry',
  async run({ db }, lost) {
    const commands = db.collection('commands');
    const endless = { expires: { $exists: false } };
    while (!lost.aborted) {
      const some = await commands.find(endless, { projection: { _id: 1 }, limit: BATCH }).toArray();
      if (some.length === 0) return;
      const these = { ...endless, _id: { $in: some.map(({ _id }) => _id) } };
      await commands.updateMany(these, [{ $set: { expires: { $add: ['$time', DAY_MS] } } }]);
    }
  },
};
