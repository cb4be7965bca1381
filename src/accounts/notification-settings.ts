/** How a user is notified: fields of the own account that nobody else reads. */
import { ObjectId } from 'mongodb';
import type { Caller } from '../core/access.js';
import type { Json, JsonObject } from '../core/json.js';
import {
  assertHasChannels,
  type Channel,
  type ChannelKind,
  isOfOperator,
  parseChannels,
  parseMinSeverity,
  parseQuiet,
  toChannelFields,
  toOwnChannels,
  toOwnFields,
} from '../core/notification.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

export interface OwnChannels {
  /** What the operator has set up. */
  readonly kinds: readonly ChannelKind[];
  /** Throws a 400 that names the channel where nothing would be sent to its address. */
  check(channels: readonly Channel[], name: string): Promise<void>;
  pushKey(): Promise<string>;
}

interface SettingsDeps {
  readonly database: Database;
  readonly channels: OwnChannels;
}

/** How the user is notified, as it is stored: in fields that nobody else reads. Throws a 400 that names the field. */
export async function readNotificationSettings(
  { channels }: SettingsDeps,
  caller: Caller,
  body: JsonObject,
): Promise<JsonObject> {
  const settings: JsonObject = {};
  if (body.channels !== undefined) {
    const parsed = parseChannels(body.channels);
    if (parsed.length > 0) assertHasChannels(caller);
    await channels.check(parsed, 'channels');
    settings._channels = parsed.map(toChannelFields);
    if (isOfOperator(caller)) settings._confirmed = settings._channels;
  }
  if (body.quiet !== undefined) {
    parseQuiet(body.quiet);
    settings._quiet = body.quiet;
  }
  if (body.minSeverity !== undefined) settings._minSeverity = parseMinSeverity(body.minSeverity);
  return settings;
}

/** An address that is removed and set again is confirmed anew: it may have passed to somebody else. Throws 503. */
export async function endConfirmations({ database }: SettingsDeps, userId: string, kept: Json): Promise<void> {
  const users = database.db.collection<{ _confirmed: Json[] }>('users');
  const $pull = { _confirmed: { $nin: kept as Json[] } };
  await mapDriverErrors(() => users.updateOne({ _id: new ObjectId(userId) }, { $pull }));
}

export async function findNotificationSettings(
  { database, channels }: SettingsDeps,
  userId: string,
): Promise<JsonObject> {
  const projection = { _channels: 1, _confirmed: 1, _quiet: 1, _minSeverity: 1 };
  const users = database.db.collection('users');
  const found = await mapDriverErrors(() => users.findOne({ _id: new ObjectId(userId) }, { projection }));
  return {
    channels: toOwnChannels(found?._channels ?? null, found?._confirmed ?? null).map(toOwnFields),
    channelKinds: [...channels.kinds],
    pushKey: await channels.pushKey(),
    quiet: found?._quiet ?? null,
    minSeverity: found?._minSeverity ?? 'info',
  };
}
