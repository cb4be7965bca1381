/** A user as notifications reach them. */
import { type Document, ObjectId } from 'mongodb';
import type { Json } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import {
  type Channel,
  type OwnChannel,
  parseMinSeverity,
  parseQuiet,
  toChannelFields,
  toOwnChannels,
} from '../core/notification.js';
import type { Schedule } from '../core/rule/schedule.js';
import type { Severity } from '../core/rule/severity.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

export interface Person {
  readonly channels: readonly OwnChannel[];
  readonly quiet: Schedule | null;
  readonly minSeverity: Severity;
}

/** Null where there is no such user. Throws 503. */
export async function loadPerson({ db }: Database, userId: string): Promise<Person | null> {
  const options = {
    projection: { _channels: 1, _confirmed: 1, _quiet: 1, _minSeverity: 1 },
    maxTimeMS: LIMITS.databaseOperationMs,
    ...COMMITTED_READ,
  };
  const find = () => db.collection('users').findOne({ _id: new ObjectId(userId) }, options);
  const found: Document | null = await mapDriverErrors(find);
  if (found === null) return null;
  return {
    channels: toOwnChannels((found._channels ?? null) as Json, (found._confirmed ?? null) as Json),
    quiet: parseQuiet((found._quiet ?? null) as Json),
    minSeverity: parseMinSeverity((found._minSeverity ?? null) as Json),
  };
}

/** Takes a channel from its user. Throws 503. */
export async function removeChannel({ db }: Database, userId: string, channel: Channel): Promise<void> {
  const fields = toChannelFields(channel);
  const $pull: Document = { _channels: fields, _confirmed: fields };
  await mapDriverErrors(() => db.collection('users').updateOne({ _id: new ObjectId(userId) }, { $pull }));
}
