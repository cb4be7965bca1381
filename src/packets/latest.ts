/**
 * An object's `state` is its last packet with data, with `online` from its latest packet. It is computed when it is read, so that
 * it is never older than an acknowledged packet.
 */
import { type Binary, BSON, BSONType } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { PRESENCE_FIELDS } from '../core/packet-fields.js';
import { builtInStore } from '../core/stores.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { findField, hasOthers, readObjectId } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { projectionOf, toEntity } from '../platform/mongo/schema/mapping.js';
import { type BoundedObjects, type Bounds, findBounds, groupByBound, NO_BOUNDS } from './ahead.js';
import { findFarBackMs } from './far-back.js';
import type { Packet } from './packet.js';
import {
  type LatestPacket,
  readLatest,
  readLatestData,
  readObjectsWithLatest,
  toLatest,
} from './store/latest-packets.js';
import { LATEST_FIRST, PACKET_LAYOUT } from './store/query.js';
import { findFirstPacket } from './store/reader.js';

/** An object and its state as they are stored. */
export interface ObjectWithState {
  readonly stored: Uint8Array;
  readonly state: Uint8Array | null;
}

/**
 * Finds an object with its state, without a permission check. Calls in one iteration of the event loop share a command: separate
 * commands for object and state would cost the process half as much again, and the database a quarter.
 */
export async function findWithState(database: Database, objectId: string): Promise<ObjectWithState | null> {
  const found = await database.batch('objects with state', [objectId], (ids: string[]) =>
    findAllWithState(database, [...new Set(ids)]),
  );
  return found.get(objectId) ?? null;
}

async function findAllWithState(
  database: Database,
  objectIds: readonly string[],
): Promise<Map<string, ObjectWithState>> {
  const projection = projectionOf(builtInStore('objects'), null);
  const reading = { projection, withinMs: LIMITS.databaseAnswerMs };
  const objects = new Map<string, Uint8Array>();
  const latest = new Latest();
  for await (const { documents } of readObjectsWithLatest(database, objectIds, reading)) {
    for (const document of documents) {
      const found = toLatest(document);
      if (found === null) objects.set(readObjectId(document) ?? '', document);
      else latest.add(found);
    }
  }
  await leaveOutAhead(database, latest, null);
  const states = await withData(database, latest, null);
  return new Map([...objects].map(([id, stored]) => [id, { stored, state: states.get(id) ?? null }]));
}

/** Collects latest packets. A class for speed: every read of an object creates one (docs/development.md). */
class Latest {
  readonly packets = new Map<string, Uint8Array>();
  /** The value of `online`, for objects whose latest packet has no data. */
  readonly online = new Map<string, boolean>();
  readonly timesMs = new Map<string, number>();
  /** For objects with packets ahead of time. */
  bounds: Bounds = NO_BOUNDS;

  add({ objectId, packet, facts }: LatestPacket): void {
    this.packets.set(objectId, packet);
    this.timesMs.set(objectId, facts?.timeMs ?? readNumber(packet, 0, 'time'));
    if (facts?.hasData ?? hasOthers(packet, PRESENCE_FIELDS)) return;
    const online = facts?.online ?? findField(packet, 'online', BSONType.bool);
    this.online.set(objectId, online?.[0] !== 0);
  }
}

/** Replaces packets that are further ahead than they may be by the latest ones before them. */
async function leaveOutAhead(database: Database, latest: Latest, paths: readonly string[] | null): Promise<void> {
  latest.bounds = await findBounds(database, latest.timesMs);
  for (const { ids, boundMs } of groupByBound([...latest.bounds.keys()], latest.bounds)) {
    for (const id of ids) for (const found of [latest.packets, latest.online]) found.delete(id);
    const reading = { objectIds: ids, boundMs, fields: paths };
    for await (const found of readLatest(database, reading, { withinMs: withinMs(ids.length) })) {
      for (const one of found) latest.add(one);
    }
  }
}

/** The states: a latest packet without data passes its `online` to the last packet with data. */
async function withData(
  database: Database,
  { packets, online, bounds }: Latest,
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  if (online.size === 0) return packets;
  for (const [id, packet] of await findData(database, groupByBound([...online.keys()], bounds), paths)) {
    const field = findField(packet, 'online', BSONType.bool);
    if (field !== null) field[0] = online.get(id) ? 1 : 0;
    packets.set(id, packet);
  }
  return packets;
}

/** How many packets the first query searches. */
const FIRST_SEARCH = 8;

/** The last packets with data, among the latest `statePackets` of each object, and then among a few that are far back. */
async function findData(
  database: Database,
  groups: readonly BoundedObjects[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  const farBack = findFarBackMs(database.clock.now()).map((boundMs) => ({ boundMs, limit: FIRST_SEARCH }));
  for (const { ids, boundMs } of groups) {
    // Nearly always the second or third latest packet has data.
    const usual = [FIRST_SEARCH, LIMITS.statePackets].map((limit) => ({ boundMs, limit }));
    for (const search of [...usual, ...farBack]) {
      const left = ids.filter((id) => !found.has(id));
      if (left.length === 0) break;
      const reading = { objectIds: left, boundMs: search.boundMs, fields: paths, among: search.limit };
      for await (const some of readLatestData(database, reading, { withinMs: withinMs(left.length) })) {
        for (const { objectId, packet } of some) found.set(objectId, packet);
      }
    }
  }
  return found;
}

const withinMs = (objects: number): number =>
  objects > LIMITS.itemsPerTurn ? LIMITS.databaseOperationMs : LIMITS.databaseAnswerMs;

/** The latest packets of these objects. */
async function findLatest(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Latest> {
  const latest = new Latest();
  const [first, ...others] = objectIds;
  if (first === undefined) return latest;
  if (others.length === 0 && paths === null) {
    // For one object, this costs the database half as much.
    const packet = await findFirstPacket(database, { objectIds, sort: LATEST_FIRST, fields: null });
    if (packet !== null) latest.add({ objectId: first, packet, facts: null });
  } else {
    const reading = { objectIds, boundMs: null, fields: paths };
    for await (const found of readLatest(database, reading, { withinMs: withinMs(objectIds.length) })) {
      for (const one of found) latest.add(one);
    }
  }
  await leaveOutAhead(database, latest, paths);
  return latest;
}

/** The states of these objects as BSON, by the object's `_id`. `paths` restricts the fields. */
export async function findStates(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  return withData(database, await findLatest(database, objectIds, paths), paths);
}

/** The keys of the packets that each object keeps whatever their age: the latest packet, and the one of its state. */
export async function findKept(database: Database, objectIds: readonly string[]): Promise<Map<string, Binary[]>> {
  const latest = await findLatest(database, objectIds, null);
  const keyOf = (packet: Uint8Array): Binary => BSON.deserialize(packet)._id;
  const kept = new Map([...latest.packets].map(([id, packet]) => [id, [keyOf(packet)]]));
  for (const [id, packet] of await withData(database, latest, null)) kept.get(id)?.push(keyOf(packet));
  return kept;
}

/** The state of one object as BSON; calls in one iteration of the event loop share a command. */
export async function findState(database: Database, objectId: string): Promise<Uint8Array | null> {
  const states = await database.batch('states', [objectId], (ids: string[]) =>
    findStates(database, [...new Set(ids)], null),
  );
  return states.get(objectId) ?? null;
}

export async function readState(database: Database, objectId: string): Promise<Packet | null> {
  return toPacket(await findState(database, objectId));
}

const toPacket = (packet: Uint8Array | null): Packet | null =>
  packet === null ? null : (toEntity(PACKET_LAYOUT, BSON.deserialize(packet)) as unknown as Packet);
