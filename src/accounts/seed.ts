/** Seeds an empty database: the root group, built-in entities, and the first administrator. */
import { randomBytes } from 'node:crypto';
import {
  ADMINISTRATOR_ROLE_ID,
  BUILT_IN_MODELS,
  BUILT_IN_ROLES,
  FIRST_USER_ID,
  ROOT_GROUP_ID,
} from '../core/builtin.js';
import { toApiError, unavailable } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors, toDatabaseError } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toDocument } from '../platform/mongo/schema/mapping.js';

export interface FirstUser {
  readonly login: string;
  /** Hashes the password; called only when the user is missing. */
  readonly passwordHash: () => Promise<string>;
}

const DUPLICATE = 11_000;
const FIRST_START = { _id: 'first start' } as const;

/**
 * Seeds the installation once; returns whether this call created the first administrator. Every step is idempotent and may run on
 * several instances at a time. The mark of completion is stored last.
 */
export async function prepareInstallation(database: Database, user: FirstUser, nowMs: number): Promise<boolean> {
  const installation = database.db.collection<{ _id: string; time: number }>('installation');
  if ((await mapDriverErrors(() => installation.findOne(FIRST_START))) !== null) return false;
  const common = { owner: FIRST_USER_ID, group: ROOT_GROUP_ID, branch: [ROOT_GROUP_ID], access: [], time: nowMs };
  await insertMissing(database, 'groups', { _id: ROOT_GROUP_ID, name: 'root', parent: null, ...common });
  for (const model of BUILT_IN_MODELS) await insertMissing(database, 'models', { ...model, ...common, _builtin: true });
  for (const role of BUILT_IN_ROLES) await insertMissing(database, 'roles', { ...role, ...common, _builtin: true });
  const isCreated = await insertMissing(database, 'users', {
    _id: FIRST_USER_ID,
    login: user.login,
    name: user.login,
    role: ADMINISTRATOR_ROLE_ID,
    active: true,
    ...common,
    _password: await user.passwordHash(),
  });
  await mapDriverErrors(() => installation.updateOne(FIRST_START, { $set: { time: nowMs } }, { upsert: true }));
  return isCreated;
}

/** `device key` hashes the passwords of devices; `packet key` derives the `_id`s of packets. */
export type KeyName = 'device key' | 'packet key';

/** Returns a key of the installation, which is generated once and never shown. Throws 503. */
export async function findKey(database: Database, _id: KeyName): Promise<Buffer> {
  const installation = database.db.collection<{ _id: string; key: string }>('installation');
  const update = { $setOnInsert: { key: randomBytes(32).toString('base64url') } };
  const options = { upsert: true, returnDocument: 'after' } as const;
  const found = await mapDriverErrors(() => installation.findOneAndUpdate({ _id }, update, options)).catch((error) => {
    // Of two instances that start at once, one may get a duplicate-key error.
    if (toApiError(error).status !== 409) throw error;
    return mapDriverErrors(() => installation.findOne({ _id }));
  });
  if (found === null) throw unavailable(`the ${_id} is being stored`);
  return Buffer.from(found.key, 'base64url');
}

async function insertMissing(database: Database, storeName: string, entity: JsonObject): Promise<boolean> {
  const store = builtInStore(storeName);
  try {
    await collectionOf(database, store).insertOne(toDocument(store, entity));
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === DUPLICATE) return false;
    throw toDatabaseError(error);
  }
}
