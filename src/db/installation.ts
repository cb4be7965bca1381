/** The first start on an empty database: the root group, what is built in, and the first administrator. */
import { randomBytes } from 'node:crypto';
import { ADMINISTRATOR_ROLE_ID, BUILT_IN_MODELS, BUILT_IN_ROLES, ROOT_GROUP_ID } from '../model/builtin.js';
import type { JsonObject } from '../model/json.js';
import { builtInStore } from '../model/stores.js';
import { collectionOf, type Database } from './connect.js';
import { toDatabaseError, toDocument, translated } from './documents.js';

export interface FirstUser {
  readonly login: string;
  /** Hashes the password; asked for only when the user has to be made. */
  readonly passwordHash: () => Promise<string>;
}

const DUPLICATE = 11_000;
const FIRST_USER_ID = '000000000000000000000002';
const MARK = { _id: 'first start' } as const;

/**
 * Makes what an installation needs, once in its life; true when this call made the first administrator. Every step can
 * be repeated and taken by several instances at a time; the mark that it is done comes last.
 */
export async function prepareInstallation(database: Database, user: FirstUser, nowMs: number): Promise<boolean> {
  const marks = database.db.collection<{ _id: string; time: number }>('installation');
  if ((await translated(() => marks.findOne(MARK))) !== null) return false;
  const common = { owner: FIRST_USER_ID, group: ROOT_GROUP_ID, branch: [ROOT_GROUP_ID], access: [], time: nowMs };
  await insertMissing(database, 'groups', { _id: ROOT_GROUP_ID, name: 'root', parent: null, ...common });
  for (const model of BUILT_IN_MODELS) await insertMissing(database, 'models', { ...model, ...common, _builtin: true });
  for (const role of BUILT_IN_ROLES) await insertMissing(database, 'roles', { ...role, ...common, _builtin: true });
  const made = await insertMissing(database, 'users', {
    _id: FIRST_USER_ID,
    login: user.login,
    name: user.login,
    role: ADMINISTRATOR_ROLE_ID,
    active: true,
    ...common,
    _password: await user.passwordHash(),
  });
  await translated(() => marks.updateOne(MARK, { $set: { time: nowMs } }, { upsert: true }));
  return made;
}

/** What seals the passwords of devices; what the `_id`s of packets are made with. */
export type KeyName = 'device key' | 'packet key';

/** A key of the installation: made once in its life, and never shown. */
export async function findKey(database: Database, _id: KeyName): Promise<Buffer> {
  const marks = database.db.collection<{ _id: string; key: string }>('installation');
  const made = { $setOnInsert: { key: randomBytes(32).toString('base64url') } };
  const options = { upsert: true, returnDocument: 'after' } as const;
  // Of two that start at once, one may be told that the other was first.
  const found = await translated(() => marks.findOneAndUpdate({ _id }, made, options)).catch(() =>
    translated(() => marks.findOne({ _id })),
  );
  return Buffer.from(found?.key ?? '', 'base64url');
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
