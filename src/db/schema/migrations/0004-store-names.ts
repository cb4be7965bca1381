/**
 * Names of added stores are unique within their group, no longer in the installation. Collection names include the `_id` of their
 * store. Stores of the root group were visible to all, and are marked as shared.
 */
import { MongoServerError, ObjectId } from 'mongodb';
import type { Migration } from './migration.js';

const ROOT_GROUP = new ObjectId('000000000000000000000001');
const [INDEX_NOT_FOUND, NAMESPACE_NOT_FOUND] = [27, 26];

export const storeNames: Migration = {
  name: '0004-store-names',
  async run({ db }, lost) {
    const stores = db.collection('stores');
    await stores.dropIndex('name_1').catch((error: unknown) => {
      if (!(error instanceof MongoServerError && error.code === INDEX_NOT_FOUND)) throw error;
    });
    await stores.updateMany({ group: ROOT_GROUP, shared: { $exists: false } }, { $set: { shared: true } });
    for await (const { _id, name } of stores.find({}, { projection: { name: 1 } })) {
      if (lost.aborted) return;
      const former = db.collection(`custom.${name}`);
      await former.rename(`custom.${name}.${_id}`).catch((error: unknown) => {
        // Already renamed, or never created.
        if (!(error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND)) throw error;
      });
    }
  },
};
