/** The last known value of each parameter of objects, with its time: a packet rarely holds all of them. */
import { ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { distinctPaths } from '../core/list.js';
import { eachMember, nameAt } from '../platform/mongo/bson/members.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import { BSON_TYPES, findValue, valueEnd } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findBounds } from './ahead.js';
import { PACKETS } from './packets.js';

const { DOCUMENT, DOUBLE, INT32, INT64, NULL, UNDEFINED } = BSON_TYPES;
/** The fields of packets that are no values. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['_id', '_ts', 'time', '_oid', 'id', '_gid']);
const VALUE = Buffer.from('value\0');
const TIME = Buffer.from('time\0');
const END = Buffer.of(0);

/**
 * By the object's `_id`: a document of `{value, time}` by parameter. `paths` names the parameters, nested ones too; null for all
 * top-level ones. What is further back than the last packets is not looked for.
 */
export async function findLatestValues(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  for (const objectId of objectIds) found.set(objectId, await findOfObject(database, objectId, paths));
  return found;
}

async function findOfObject(
  database: Database,
  objectId: string,
  paths: readonly string[] | null,
  boundMs: number | null = null,
): Promise<Buffer> {
  const command = {
    find: PACKETS,
    filter: { _oid: new ObjectId(objectId), ...(boundMs !== null && { time: { $lte: boundMs } }) },
    sort: { time: -1, _ts: -1 },
    limit: LIMITS.latestPackets,
    batchSize: LIMITS.latestBatchPackets,
    ...(paths !== null && { projection: projectionOf(paths) }),
  };
  const values = new Map<string, Buffer>();
  const wanted = paths === null ? null : byField(paths);
  let isFirst = boundMs === null;
  for await (const { documents } of rawBatches(database, command)) {
    const [latest] = documents;
    if (isFirst && latest !== undefined) {
      const bounds = await findBounds(database, new Map([[objectId, readNumber(latest, 0, 'time')]]));
      const found = bounds.get(objectId);
      if (found !== undefined) return findOfObject(database, objectId, paths, found);
    }
    isFirst = false;
    for (const packet of documents) {
      if (wanted === null) takeAll(values, packet);
      else takeNamed(values, packet, wanted);
      if (values.size === paths?.length) break;
    }
    if (values.size === paths?.length) break;
  }
  return toDocument([...values.values()]);
}

const projectionOf = (paths: readonly string[]): object =>
  Object.fromEntries(distinctPaths(['_id', 'time', ...paths]).map((path) => [path, 1]));

function takeAll(values: Map<string, Buffer>, packet: Buffer): void {
  eachMember(packet, 0, (type, nameStart, nameEnd, valueStart) => {
    if (type === NULL || type === UNDEFINED) return;
    const name = nameAt(packet, nameStart, nameEnd);
    if (values.has(name) || OWN_FIELDS.has(name)) return;
    values.set(name, toMember(packet, name, type, valueStart));
  });
}

/** The paths by the field of a packet in which they are. */
function byField(paths: readonly string[]): Map<string, string[]> {
  const wanted = new Map<string, string[]>();
  for (const path of paths) {
    const [field = ''] = path.split('.');
    wanted.set(field, [...(wanted.get(field) ?? []), path]);
  }
  return wanted;
}

/** Most packets contain none of the parameters: one pass over their few members finds that out. */
function takeNamed(values: Map<string, Buffer>, packet: Buffer, wanted: ReadonlyMap<string, readonly string[]>): void {
  eachMember(packet, 0, (type, nameStart, nameEnd, valueStart) => {
    for (const path of wanted.get(nameAt(packet, nameStart, nameEnd)) ?? []) {
      if (values.has(path)) continue;
      const place = findPath(packet, { type, valueStart }, path.split('.').slice(1));
      if (place !== null) values.set(path, toMember(packet, path, place.type, place.valueStart));
    }
  });
}

interface Place {
  readonly type: number;
  readonly valueStart: number;
}

function findPath(packet: Buffer, begin: Place, names: readonly string[]): Place | null {
  let place: Place | null = begin;
  for (const name of names) {
    if (place === null || place.type !== DOCUMENT) return null;
    const from: number = place.valueStart;
    place = null;
    eachMember(packet, from, (type, nameStart, nameEnd, valueStart) => {
      if (nameAt(packet, nameStart, nameEnd) === name) place = { type, valueStart };
    });
  }
  return place === null || place.type === NULL || place.type === UNDEFINED ? null : place;
}

/** A member of this name: `{value, time}` of the packet. */
function toMember(packet: Buffer, name: string, type: number, valueStart: number): Buffer {
  const value = packet.subarray(valueStart, valueEnd(packet, type, valueStart, packet.length));
  const inner = toDocument([Buffer.concat([Buffer.of(type), VALUE, value]), timeOf(packet)]);
  return Buffer.concat([Buffer.of(DOCUMENT), Buffer.from(`${name}\0`), inner]);
}

function timeOf(packet: Buffer): Buffer {
  for (const type of [DOUBLE, INT64, INT32]) {
    const offset = findValue(packet, 0, 'time', type);
    if (offset === -1) continue;
    return Buffer.concat([
      Buffer.of(type),
      TIME,
      packet.subarray(offset, valueEnd(packet, type, offset, packet.length)),
    ]);
  }
  return Buffer.concat([Buffer.of(NULL), TIME]);
}

function toDocument(members: readonly Buffer[]): Buffer {
  const length = members.reduce((sum, member) => sum + member.length, 5);
  const head = Buffer.alloc(4);
  head.writeInt32LE(length);
  return Buffer.concat([head, ...members, END]);
}
