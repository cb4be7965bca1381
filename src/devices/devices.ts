/** Finds the devices of objects by `_id` or own id, with their credentials. */
import { type Document, ObjectId } from 'mongodb';
import { parseDuration } from '../core/duration.js';
import { isId } from '../core/entity.js';
import { isObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { isValidOwnId, toOwnId } from '../core/own-id.js';
import type { PacketSource } from '../packets/packet.js';
import { findNamedPackets } from '../packets/store/reader.js';
import { readShownId } from '../platform/mongo/bson/reader.js';
import { type BulkQueueOptions, createBulkQueue } from '../platform/mongo/driver/bulk-queue.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';

export interface DeviceRecord extends PacketSource {
  readonly ownerId: string;
  readonly modelId: string;
  readonly isActive: boolean;
  /** `config.auth`: the credentials of the device; null when not set. */
  readonly username: string | null;
  readonly password: string | null;
  /** `config.offlineAfter`: the silence after which the device counts as offline; null when only its connection counts. */
  readonly offlineAfterMs: number | null;
}

/** Finds the device of an object by `_id` or own id, without a permission check. */
export async function findDevice(database: Database, key: string): Promise<DeviceRecord | null> {
  return (await findNamed(database, [key])).get(key) ?? null;
}

/** Like `findDevice`, with one query for all devices of a group. */
export function createDeviceFinder(
  database: Database,
  grouping: BulkQueueOptions,
): (key: string) => Promise<DeviceRecord | null> {
  const find = createBulkQueue(grouping, (keys: readonly string[]) => findNamed(database, keys));
  return async (key) => (await find(key)).get(key) ?? null;
}

async function findNamed(database: Database, keys: readonly string[]): Promise<Map<string, DeviceRecord>> {
  const names = [...new Set(keys)];
  const ids = names.filter(isId);
  const ownIds = new Map(names.filter((name) => !isId(name)).map((name) => [name, toOwnId(name)]));
  // And those that were stored before ids had one form.
  const wanted = [...new Set([...ownIds].filter(([, ownId]) => isValidOwnId(ownId)).flat())];
  const find = (filter: Document): Promise<DeviceRecord[]> => listDevices(database, filter, LIMITS.databaseAnswerMs);
  const [byId, byOwnId] = await Promise.all([
    ids.length === 0 ? [] : find({ _id: { $in: ids.map((id) => new ObjectId(id)) } }),
    wanted.length === 0 ? [] : find({ id: { $in: wanted } }),
  ]);
  const named = new Map(byOwnId.map((device) => [device.ownId, device]));
  const found = new Map<string, DeviceRecord>();
  for (const [name, ownId] of ownIds) {
    const device = named.get(ownId) ?? named.get(name);
    if (device !== undefined) found.set(name, device);
  }
  const devices = new Map(byId.map((device) => [device.objectId, device]));
  for (const name of ids) {
    const device = devices.get(name.toLowerCase());
    if (device !== undefined) found.set(name, device);
  }
  return found;
}

/** The devices of the existing ones among these objects. */
export async function findDevices(database: Database, objectIds: readonly string[]): Promise<DeviceRecord[]> {
  return listDevices(database, { _id: { $in: objectIds.map((id) => new ObjectId(id)) } });
}

/** `config.offlineAfter` of all devices that set it, in ms by the object's `_id`. */
export async function listOfflineAfter(database: Database): Promise<Map<string, number>> {
  const filter = { 'config.offlineAfter': { $exists: true } };
  const projection = { 'config.offlineAfter': 1 };
  const found = await mapDriverErrors(
    () => database.db.collection('objects').find(filter, { projection, batchSize: LIMITS.presenceBatch }).toArray(),
    LIMITS.databaseOperationMs,
  );
  const devices = new Map<string, number>();
  for (const { _id, config } of found) {
    const afterMs = parseOfflineAfter(isObject(config) ? config.offlineAfter : null);
    if (afterMs !== null) devices.set(String(_id), afterMs);
  }
  return devices;
}

async function listDevices(
  database: Database,
  filter: Document,
  withinMs: number = LIMITS.databaseOperationMs,
): Promise<DeviceRecord[]> {
  const config = { 'config.auth.username': 1, 'config.auth.password': 1, 'config.offlineAfter': 1 };
  const projection = { id: 1, group: 1, owner: 1, model: 1, active: 1, ...config };
  const options = { projection, batchSize: LIMITS.presenceBatch, maxTimeMS: withinMs };
  const find = () => database.db.collection('objects').find(filter, options).toArray();
  return (await mapDriverErrors(find, withinMs)).map(toDevice);
}

/** Parses `config.offlineAfter` to ms: a duration, or ms; null when it is missing or invalid. */
export function parseOfflineAfter(value: unknown): number | null {
  const ms = parseDuration(value);
  return ms !== null && ms >= LIMITS.offlineAfterMinMs && ms <= LIMITS.offlineAfterMaxMs ? ms : null;
}

function toDevice(document: Document): DeviceRecord {
  const { _id, id, group, owner, model, active, config } = document;
  const auth = isObject(config) && isObject(config.auth) ? config.auth : {};
  const textOr = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
  return {
    objectId: String(_id),
    ownId: id,
    groupId: String(toPlain(group)),
    ownerId: String(toPlain(owner)),
    modelId: String(toPlain(model)),
    isActive: active !== false,
    username: textOr(auth.username),
    password: textOr(auth.password),
    offlineAfterMs: parseOfflineAfter(isObject(config) ? config.offlineAfter : null),
  };
}

/** The `_id` of a stored packet among these; null when none is stored. */
export async function findPacketId(
  database: Database,
  objectId: string,
  ids: readonly string[],
): Promise<string | null> {
  const names = ids.map((packetId) => ({ objectId, packetId }));
  const [found] = await findNamedPackets(database, names, { fields: [], isCommitted: true });
  return found === undefined ? null : readShownId(found);
}
