/** Objects as the devices that they are: found by what a device calls itself, with what it has to prove. */
import { type Document, ObjectId } from 'mongodb';
import { isId } from '../model/entity.js';
import { isObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { namesObject } from '../model/own-id.js';
import type { PacketSource } from '../model/packet.js';
import { readDuration } from '../model/time.js';
import type { Database } from './connect.js';
import { toPlain, translated } from './documents.js';
import { createGrouped, type Grouping } from './in-groups.js';
import { packetIdIn } from './packet-key.js';
import { namedPacket, PACKETS } from './packets.js';

export interface DeviceRecord extends PacketSource {
  readonly ownerId: string;
  readonly modelId: string;
  readonly isActive: boolean;
  /** `config.auth`: what a device has to know; null where nothing is set. */
  readonly username: string | null;
  readonly password: string | null;
  /** `config.offlineAfter`: how long it may be silent; null where its connection tells whether it is there. */
  readonly offlineAfterMs: number | null;
}

/** The device of an object named by `_id` or own id; null when there is none. Asks nobody's rights. */
export async function findDevice(database: Database, key: string): Promise<DeviceRecord | null> {
  return (await findNamed(database, [key])).get(key) ?? null;
}

/** Finds devices as `findDevice` does, those of one group in one question. */
export function createDeviceFinder(
  database: Database,
  grouping: Grouping,
): (key: string) => Promise<DeviceRecord | null> {
  const find = createGrouped(grouping, (keys: readonly string[]) => findNamed(database, keys));
  return async (key) => (await find(key)).get(key) ?? null;
}

async function findNamed(database: Database, keys: readonly string[]): Promise<Map<string, DeviceRecord>> {
  const names = [...new Set(keys)];
  const ids = names.filter(isId);
  const ownIds = names.filter((name) => !isId(name) && namesObject(name));
  const find = (filter: Document): Promise<DeviceRecord[]> => listDevices(database, filter, LIMITS.databaseAnswerMs);
  const [byId, byOwnId] = await Promise.all([
    ids.length === 0 ? [] : find({ _id: { $in: ids.map((id) => new ObjectId(id)) } }),
    ownIds.length === 0 ? [] : find({ id: { $in: ownIds } }),
  ]);
  const found = new Map(byOwnId.map((device) => [device.ownId, device]));
  const devices = new Map(byId.map((device) => [device.objectId, device]));
  for (const name of ids) {
    const device = devices.get(name.toLowerCase());
    if (device !== undefined) found.set(name, device);
  }
  return found;
}

/** The devices of these objects, those that are still there. */
export async function findDevices(database: Database, objectIds: readonly string[]): Promise<DeviceRecord[]> {
  return listDevices(database, { _id: { $in: objectIds.map((id) => new ObjectId(id)) } });
}

/** How long each device may be silent that says so, ms by the object's `_id`. */
export async function listOfflineAfter(database: Database): Promise<Map<string, number>> {
  const [filter, projection] = [{ 'config.offlineAfter': { $exists: true } }, { 'config.offlineAfter': 1 }];
  const found = await translated(
    () => database.db.collection('objects').find(filter, { projection, batchSize: LIMITS.presenceBatch }).toArray(),
    LIMITS.databaseOperationMs,
  );
  const devices = new Map<string, number>();
  for (const { _id, config } of found) {
    const afterMs = readOfflineAfter(isObject(config) ? config.offlineAfter : null);
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
  return (await translated(find, withinMs)).map(toDevice);
}

/** `config.offlineAfter` in ms: a duration, or ms; null where there is none, or one that makes no sense. */
export function readOfflineAfter(value: unknown): number | null {
  const ms = readDuration(value);
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
    offlineAfterMs: readOfflineAfter(isObject(config) ? config.offlineAfter : null),
  };
}

/** Which of these packets of the object is stored: its `_id`, or null where none is. */
export async function findPacketId(
  database: Database,
  objectId: string,
  ids: readonly string[],
): Promise<string | null> {
  const filter = namedPacket(objectId, ids);
  // Left to itself, the database may look through all packets of the object.
  const bounds = { hint: { _id: 1 }, maxTimeMS: LIMITS.databaseOperationMs };
  const options = { projection: { _id: 1 }, readConcern: { level: 'majority' }, ...bounds };
  const found = await translated(() => database.db.collection(PACKETS).findOne(filter, options as object));
  return found === null ? null : packetIdIn(found._id);
}
