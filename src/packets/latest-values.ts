/** The last known value of each parameter of objects, with its time: a packet rarely holds all of them. */
import { LIMITS } from '../core/limits.js';
import { eachMember, nameAt } from '../platform/mongo/bson/members.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { BSON_TYPES, findValue, valueEnd } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findBounds } from './ahead.js';
import { findFarBackMs } from './far-back.js';
import { LATEST_FIRST } from './store/query.js';
import { readPackets } from './store/reader.js';

const { DOCUMENT, DOUBLE, INT32, INT64, NULL, UNDEFINED } = BSON_TYPES;
/** The fields of packets that are no values. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['_id', '_ts', 'time', '_oid', 'id', '_gid']);
const VALUE = Buffer.from('value\0');
const TIME = Buffer.from('time\0');
const END = Buffer.of(0);

/** `paths` names the parameters, nested ones too; null for all top-level ones. `after`: only those after this name. */
export interface WantedValues {
  readonly paths: readonly string[] | null;
  readonly after: string | null;
}

export interface LatestValues {
  /** A document of `{value, time}` by parameter. */
  readonly values: Uint8Array;
  /** The name after which there are more parameters; null if these are all. */
  readonly next: string | null;
}

/** By the object's `_id`. What is further back than the last packets is not looked for. */
export async function findLatestValues(
  database: Database,
  objectIds: readonly string[],
  wanted: WantedValues,
): Promise<Map<string, LatestValues>> {
  const found = new Map<string, LatestValues>();
  for (const objectId of objectIds) found.set(objectId, await findOfObject(database, objectId, wanted));
  return found;
}

async function findOfObject(database: Database, objectId: string, wanted: WantedValues): Promise<LatestValues> {
  const values = new FirstValues(wanted.after);
  const names = wanted.paths === null ? null : byField(wanted.paths);
  const read = (search: Search) => readValues(database, { objectId, paths: wanted.paths, names, values }, search);
  const boundMs = await read({ boundMs: null, limit: LIMITS.latestPackets });
  if (boundMs !== null) await read({ boundMs, limit: LIMITS.latestPackets });
  for (const farMs of findFarBackMs(database.clock.now())) {
    if (!values.isOnlyPresence) break;
    await read({ boundMs: farMs, limit: LIMITS.latestBatchPackets });
  }
  return values.take();
}

interface Search {
  /** Up to which time; null for all, unless the latest packet is further ahead than it may be. */
  readonly boundMs: number | null;
  readonly limit: number;
}

interface Reading {
  readonly objectId: string;
  readonly paths: readonly string[] | null;
  readonly names: ReadonlyMap<string, readonly string[]> | null;
  readonly values: FirstValues;
}

/** Adds the values of packets, the latest first. Where the latest one is too far ahead, nothing is added: returns the time up to which packets count. */
async function readValues(
  database: Database,
  { objectId, paths, names, values }: Reading,
  { boundMs, limit }: Search,
): Promise<number | null> {
  const reading = {
    objectIds: [objectId],
    time: { to: boundMs },
    sort: LATEST_FIRST,
    limit,
    batchPackets: LIMITS.latestBatchPackets,
    fields: paths && ['time', ...paths],
  };
  let isFirst = boundMs === null;
  for await (const { documents } of readPackets(database, reading)) {
    const [latest] = documents;
    if (isFirst && latest !== undefined) {
      const bounds = await findBounds(database, new Map([[objectId, readNumber(latest, 0, 'time')]]));
      const found = bounds.get(objectId);
      if (found !== undefined) return found;
    }
    isFirst = false;
    for (const packet of documents) {
      if (names === null) takeAll(values, packet);
      else takeNamed(values, packet, names);
      if (values.size === paths?.length) return null;
    }
  }
  return null;
}

/** The newest value of each parameter, of the first parameters by name, so that devices with any number of names are bounded. */
class FirstValues {
  readonly #after: string | null;
  #values = new Map<string, Buffer>();
  #hasMore = false;

  constructor(after: string | null) {
    this.#after = after;
  }

  get size(): number {
    return this.#values.size;
  }

  /** Whether there is nothing but what reports of presence have. */
  get isOnlyPresence(): boolean {
    return [...this.#values.keys()].every((name) => name === 'online');
  }

  isWanted(name: string): boolean {
    return !this.#values.has(name) && (this.#after === null || name > this.#after);
  }

  set(name: string, member: Buffer): void {
    this.#values.set(name, member);
    if (this.#values.size >= 2 * LIMITS.latestParameters) this.#reduce();
  }

  take(): LatestValues {
    if (this.#values.size > LIMITS.latestParameters) this.#reduce();
    const next = this.#hasMore ? ([...this.#values.keys()].at(-1) ?? null) : null;
    return { values: toDocument([...this.#values.values()]), next };
  }

  /** Names that were left out may come again: they are left out again, since the ones before them stay. */
  #reduce(): void {
    const first = [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, LIMITS.latestParameters);
    this.#values = new Map(first);
    this.#hasMore = true;
  }
}

function takeAll(values: FirstValues, packet: Buffer): void {
  eachMember(packet, 0, (type, nameStart, nameEnd, valueStart) => {
    if (type === NULL || type === UNDEFINED) return;
    const name = nameAt(packet, nameStart, nameEnd);
    if (!values.isWanted(name) || OWN_FIELDS.has(name)) return;
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
function takeNamed(values: FirstValues, packet: Buffer, wanted: ReadonlyMap<string, readonly string[]>): void {
  eachMember(packet, 0, (type, nameStart, nameEnd, valueStart) => {
    for (const path of wanted.get(nameAt(packet, nameStart, nameEnd)) ?? []) {
      if (!values.isWanted(path)) continue;
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
