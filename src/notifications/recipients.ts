/** Who is told of an alarm, and whether they may know. */
import { type Document, ObjectId } from 'mongodb';
import type { Account } from '../accounts/accounts.js';
import { mayCall, type Scope, scopeOf } from '../core/access.js';
import type { Json, JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { parseChannels } from '../core/notification.js';
import type { Notify } from '../core/rule/notifying.js';
import { builtInStore } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';
import { channelKey, type Lane } from './outbox.js';

const ALARMS = builtInStore('alarms');
const OBJECTS = builtInStore('objects');

export interface Recipient extends Lane {
  readonly text: string | null;
}

/** The channels of those who are named, each once: the first text that names a user counts. Throws 503. */
export async function loadRecipients({ db }: Database, notify: readonly Notify[]): Promise<Recipient[]> {
  const recipients = new Map<string, Recipient>();
  for (const { users, group, text } of notify) {
    const named: Document[] = [{ _id: { $in: users.map((id) => new ObjectId(id)) } }];
    if (group !== null) named.push({ branch: new ObjectId(group) });
    const filter = { active: { $ne: false }, '_channels.0': { $exists: true }, $or: named };
    const options = { projection: { _channels: 1 }, limit: LIMITS.notifiedUsers, sort: { _id: 1 } as const };
    const found = await mapDriverErrors(() => db.collection('users').find(filter, options).toArray());
    for (const { _id, _channels } of found) {
      const userId = String(_id);
      for (const channel of parseChannels(_channels as Json).map(channelKey)) {
        const id = `${userId}|${channel}`;
        if (!recipients.has(id)) recipients.set(id, { userId, channel, text });
      }
    }
  }
  return [...recipients.values()];
}

/** Those of these alarms that there are, by `_id`. Throws 503. */
export async function loadAlarms(
  { db }: Database,
  alarmIds: readonly string[],
): Promise<ReadonlyMap<string, JsonObject>> {
  const named = { _id: { $in: alarmIds.map((id) => new ObjectId(id)) } };
  const found = await mapDriverErrors(() => db.collection('alarms').find(named).toArray());
  return new Map(found.map((one) => [String(one._id), toPlain(one) as JsonObject]));
}

/** Those of these alarms that the user may read, by `_id`. Throws 503. */
export async function loadReadable(
  { db }: Database,
  account: Account,
  alarmIds: readonly string[],
): Promise<ReadonlyMap<string, JsonObject>> {
  if (!mayCall({ credentials: account.credentials, scopes: null }, 'GET', ['alarms'])) return new Map();
  const ids = { _id: { $in: [...new Set(alarmIds)].map((id) => new ObjectId(id)) } };
  const filter = { $and: [ids, scopeFilter(ALARMS, scopeOf(account))] };
  const found = await mapDriverErrors(() => db.collection('alarms').find(filter).toArray());
  return new Map(found.map((one) => [String(one._id), toPlain(one) as JsonObject]));
}

/** The object of an alarm: empty where it was removed, null where the user does not see it. Throws 503. */
export async function loadSeenObject({ db }: Database, account: Account, objectId: string): Promise<JsonObject | null> {
  const scope = scopeOf(account);
  const id = { _id: new ObjectId(objectId) };
  const objects = db.collection('objects');
  const seen = { $and: [id, scopeFilter(OBJECTS, scope)] };
  const found = await mapDriverErrors(() => objects.findOne(seen));
  if (found !== null) {
    const object = toPlain(found) as JsonObject;
    return isPermitted(scope, object) ? object : null;
  }
  const isThere = (await mapDriverErrors(() => objects.findOne(id, { projection: { _id: 1 } }))) !== null;
  return isThere ? null : {};
}

const isPermitted = ({ onlyObjects }: Scope, object: JsonObject): boolean =>
  onlyObjects === null || onlyObjects.includes(String(object._id)) || onlyObjects.includes(String(object.id));
