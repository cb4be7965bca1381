/** The keys by which push services know this installation. RFC 8292. */
import webPush from 'web-push';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { isDuplicate, mapDriverErrors } from '../platform/mongo/driver/errors.js';

/** Both in base64url. Browsers subscribe with the public one. */
export interface PushKeyPair {
  readonly publicKey: string;
  readonly privateKey: string;
}

/** Throws 503. */
export type PushKeys = () => Promise<PushKeyPair>;

const KEYS = { _id: 'push' } as const;

/** All instances have the same pair, which the first of them makes that needs it: with another one, no browser would be reached any more. */
export function createPushKeys(database: Database): PushKeys {
  const stored = database.db.collection<{ _id: 'push'; value: PushKeyPair }>('settings');
  const find = async (): Promise<PushKeyPair | null> => (await stored.findOne(KEYS, COMMITTED_READ))?.value ?? null;
  const findOrMake = async (): Promise<PushKeyPair> => {
    const known = await find();
    if (known !== null) return known;
    const value = webPush.generateVAPIDKeys();
    try {
      await stored.insertOne({ ...KEYS, value });
      return value;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      return findOrMake();
    }
  };
  let keys: PushKeyPair | null = null;
  return async () => {
    keys ??= await mapDriverErrors(findOrMake);
    return keys;
  };
}
