/** The codes that confirm addresses: one for each user and address, of which the database has a hash. */
import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { Binary, ObjectId } from 'mongodb';
import { badRequest, conflict } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { type Channel, toChannelFields } from '../core/notification.js';
import { MINUTE_MS } from '../core/units.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import type { Message } from './message.js';

/** Without letters that are read as others, as Crockford's base 32. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** 50 bits: while a code is valid, nobody finds it from its hash. */
const CODE_LETTERS = 10;

interface CodeRow {
  readonly _id: string;
  readonly user: ObjectId;
  readonly hash: Binary;
  readonly attempts: number;
  readonly expires: Date;
}

const codesOf = ({ db }: Database) => db.collection<CodeRow>('channelCodes');
const hashOf = (...parts: readonly string[]): Buffer => createHash('sha256').update(parts.join('|')).digest();
const rowId = (userId: string, { kind, address }: Channel): string =>
  `${userId}|${hashOf(kind, address).toString('hex')}`;

/** Replaces the code that was sent before. Throws 503. */
export async function createCode(database: Database, userId: string, channel: Channel, nowMs: number): Promise<string> {
  const code = [...randomBytes(CODE_LETTERS)].map((byte) => LETTERS[byte % LETTERS.length]).join('');
  const _id = rowId(userId, channel);
  const $set = {
    user: new ObjectId(userId),
    hash: new Binary(hashOf(_id, code)),
    attempts: 0,
    expires: new Date(nowMs + LIMITS.channelCodeMs),
  };
  await mapDriverErrors(() => codesOf(database).updateOne({ _id }, { $set }, { upsert: true }));
  return code;
}

/** Throws 400 for a wrong code, 409 where none is valid, 503. */
export async function checkCode(
  database: Database,
  userId: string,
  channel: Channel,
  { code, nowMs }: { code: string; nowMs: number },
): Promise<void> {
  const _id = rowId(userId, channel);
  const isValid = { _id, attempts: { $lt: LIMITS.channelCodeAttempts }, expires: { $gt: new Date(nowMs) } };
  // Counted before it is compared: attempts at the same time are not more.
  const counted = { $inc: { attempts: 1 } };
  const found = await mapDriverErrors(() =>
    codesOf(database).findOneAndUpdate(isValid, counted, { returnDocument: 'after' }),
  );
  if (found === null) {
    throw conflict('no code is valid for this channel: POST /account/channels/test {"channel": …} sends one');
  }
  if (timingSafeEqual(found.hash.buffer, hashOf(_id, normalize(code)))) return;
  const left = LIMITS.channelCodeAttempts - found.attempts;
  throw badRequest(`code: not the one that was sent to this channel; ${left} more may be tried`);
}

/** The channel is confirmed, and the code of no use any more. Returns false where the user has removed it meanwhile. Throws 503. */
export async function storeConfirmed(database: Database, userId: string, channel: Channel): Promise<boolean> {
  const fields = toChannelFields(channel);
  const users = database.db.collection('users');
  const isThere = { _id: new ObjectId(userId), _channels: fields };
  const { matchedCount } = await mapDriverErrors(() =>
    users.updateOne(isThere, { $addToSet: { _confirmed: fields } as never }),
  );
  await mapDriverErrors(() => codesOf(database).deleteOne({ _id: rowId(userId, channel) }));
  return matchedCount > 0;
}

/** As somebody types what was sent. */
const normalize = (code: string): string =>
  code.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1');

/** Its text is the same for everyone but for the code: nobody can use it to write to strangers. */
export const toCodeMessage = (code: string, publicUrl: string | null): Message => ({
  id: randomUUID(),
  title: 'Your code for Vigil',
  text: [
    `${code.slice(0, CODE_LETTERS / 2)}-${code.slice(CODE_LETTERS / 2)}`,
    `Enter this code in your account within ${LIMITS.channelCodeMs / MINUTE_MS} minutes to be notified of alarms here.`,
    'If you did not ask for it, ignore this message: without the code, nothing else is sent here.',
  ].join('\n\n'),
  link: publicUrl === null ? null : `${publicUrl}/account/channels`,
  severity: 'info',
});
