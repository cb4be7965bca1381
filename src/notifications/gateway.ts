/** Gateways: the objects through which others send. While one is offline, the silence of the others tells nothing new. */
import { BSONType, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { LATEST_FIRST } from '../packets/store/query.js';
import { findFirstPacket } from '../packets/store/reader.js';
import { findField } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { type Notice, removeNotice, storeWaiting } from './notices.js';

/** Whether the latest packet of the object says that it is offline. Throws 503. */
async function isOffline(database: Database, objectId: string): Promise<boolean> {
  const reading = { objectIds: [objectId], sort: LATEST_FIRST, fields: ['online'] };
  const latest = await findFirstPacket(database, reading);
  return latest !== null && findField(latest, 'online', BSONType.bool)?.[0] === 0;
}

/** Whether nobody is told now, because of the gateway; the alarm shows that. Throws 503. */
export async function isKeptBack(
  database: Database,
  notice: Notice,
  { isCleared, suppressedBy, nowMs }: { isCleared: boolean; suppressedBy: string | null; nowMs: number },
): Promise<boolean> {
  const { gateway, alarmId } = notice;
  const wasKeptBack = suppressedBy !== null;
  if (isCleared && wasKeptBack) {
    await removeNotice(database, alarmId);
    return true;
  }
  if (gateway === null) {
    if (wasKeptBack) await show(database, alarmId, { $unset: { suppressedBy: 1 } });
    return false;
  }
  if (!isCleared && (await isOffline(database, gateway))) {
    if (!wasKeptBack) await show(database, alarmId, { $set: { suppressedBy: gateway } });
    await storeWaiting(database, notice, { gateway, dueMs: nowMs + LIMITS.gatewayCheckMs });
    return true;
  }
  if (!wasKeptBack) return false;
  // Its objects have some time to be heard again.
  await storeWaiting(database, notice, { gateway: null, dueMs: nowMs + LIMITS.gatewayGraceMs });
  return true;
}

const show = ({ db }: Database, alarmId: string, update: Document): Promise<unknown> =>
  mapDriverErrors(() => db.collection('alarms').updateOne({ _id: new ObjectId(alarmId) }, update));
