/** Which packets a reader asks for, and the command that finds them: only this folder knows their fields, keys and indexes. */
import { type Binary, type Document, type Filter, ObjectId } from 'mongodb';
import { isId } from '../../core/entity.js';
import { distinctPaths, type Page, type Selection } from '../../core/list.js';
import type { PlaceInOrder } from '../../core/packet-order.js';
import { toPacketKey } from '../../platform/mongo/bson/packet-key.js';
import { committedSince, type Snapshot } from '../../platform/mongo/driver/snapshot.js';
import { type Layout, orderBy, selectionFilter } from '../../platform/mongo/schema/mapping.js';

export const PACKETS = 'packets';
export const PACKET_LAYOUT: Layout = {
  references: ['_oid', '_gid'],
  texts: ['id'],
  hidden: [],
  derived: [],
  builtIn: false,
  followsObject: false,
};

/** Numbers between bounds: `from` and `to` are included, `above` and `below` are not. Null is no bound. */
export interface Range {
  readonly from?: number | null;
  readonly above?: number | null;
  readonly to?: number | null;
  readonly below?: number | null;
}

/** Where reading begins. */
export interface ReadStart extends PlaceInOrder {
  /** Whether packets of this time and stamp are read, too. */
  readonly isIncluded: boolean;
}

export interface PacketQuery {
  /** One object, or several: at most `pastObjectsAtOnce` of them are read in the order of an index. */
  readonly objectIds: readonly string[];
  /** In ms since the epoch. */
  readonly time?: Range;
  /** When they were stored, in microseconds since the epoch: within one of these. */
  readonly stamps?: readonly Range[];
  readonly start?: ReadStart | null;
  /** Packets that are left out. */
  readonly exceptKeys?: readonly Binary[];
  /** What a list selects by. */
  readonly selection?: Selection | null;
}

export interface PacketReading extends PacketQuery {
  /** The fields of each packet, beside `_id`; null for all. */
  readonly fields: readonly string[] | null;
  /** Null for ascending by time. */
  readonly sort?: Page['sort'];
  readonly skip?: number;
  readonly limit?: number;
  readonly batchPackets?: number;
  /** The moment at which is read; now by default. */
  readonly snapshot?: Snapshot;
  /**
   * Reads only what a majority has, which no election undoes: for whatever follows from it, and stays. With a position, that has all
   * changes up to there.
   */
  readonly committed?: { readonly since: string | null };
}

export const LATEST_FIRST: Page['sort'] = { path: 'time', descending: true };
/** In the order in which they were stored, which no index has. */
export const FIRST_STORED: Page['sort'] = { path: '_ts', descending: false };

export function toFind({
  fields,
  sort = null,
  skip,
  limit,
  batchPackets,
  snapshot,
  committed,
  ...query
}: PacketReading): Document {
  const moment = snapshot ?? (committed === undefined ? {} : committedSince(committed.since));
  const filter = toFilter(query, sort?.descending ?? false);
  const command: Document = { find: PACKETS, filter, sort: toSort(sort), allowDiskUse: true, ...moment };
  if (skip !== undefined) command.skip = skip;
  if (limit !== undefined) command.limit = limit;
  if (batchPackets !== undefined) command.batchSize = batchPackets;
  if (fields !== null) command.projection = toProjection(fields);
  return command;
}

export function toFilter(
  { objectIds, time, stamps, start, exceptKeys, selection }: PacketQuery,
  isDescending = false,
): Filter<Document> {
  const conditions: Filter<Document>[] = [{ _oid: toOperand(objectIds) }];
  if (selection) conditions.push(...selected(objectIds, selection));
  if (time) conditions.push(...within('time', time));
  if (stamps) conditions.push(...withinAny('_ts', stamps));
  if (exceptKeys) conditions.push({ _id: { $nin: exceptKeys as unknown[] as ObjectId[] } });
  if (start) conditions.push(fromStart(start, isDescending));
  return { $and: conditions };
}

/** The same where a query without bounds would be a mistake; throws for one. */
export function toBoundedFilter(query: PacketQuery): Filter<Document> {
  const filter = toFilter(query);
  if (filter.$and?.length === 1) throw new Error('the query of packets has no bounds but its objects');
  return filter;
}

export const toProjection = (fields: readonly string[]): Document =>
  Object.fromEntries(distinctPaths(['_id', ...fields]).map((path) => [path, 1]));

/** The index of an object's packets has them by time; equal times are in the order in which they were stored. */
export function toSort(sort: NonNullable<Page['sort']> | null): Document {
  if (sort !== null && sort.path !== 'time') return orderBy(PACKET_LAYOUT, sort);
  const direction = sort?.descending ? -1 : 1;
  return { time: direction, _ts: direction };
}

function toOperand(objectIds: readonly string[]): unknown {
  const ids = objectIds.map((id) => new ObjectId(id));
  return ids.length === 1 ? ids[0] : { $in: ids };
}

/** No condition where nothing bounds the field. */
function within(field: string, { from, above, to, below }: Range): Filter<Document>[] {
  const bounds: Document = {};
  if (from != null) bounds.$gte = from;
  if (above != null) bounds.$gt = above;
  if (to != null) bounds.$lte = to;
  if (below != null) bounds.$lt = below;
  return Object.keys(bounds).length === 0 ? [] : [{ [field]: bounds }];
}

function withinAny(field: string, ranges: readonly Range[]): Filter<Document>[] {
  // Within none of none.
  if (ranges.length === 0) return [{ [field]: { $in: [] } }];
  const bounded = ranges.map((range) => within(field, range));
  // One of them has no bounds.
  if (bounded.some((conditions) => conditions.length === 0)) return [];
  const conditions = bounded.flat();
  return conditions.length === 1 ? conditions : [{ $or: conditions }];
}

/** In a form by which the database finds the first packet in the index. */
function fromStart({ timeMs, stampUs, isIncluded }: ReadStart, isDescending: boolean): Filter<Document> {
  const [beyond, from] = isDescending ? ['$lt', '$lte'] : ['$gt', '$gte'];
  const stamp = { [isIncluded ? from : beyond]: stampUs };
  return { time: { [from]: timeMs }, $or: [{ time: { [beyond]: timeMs } }, { _ts: stamp }] };
}

/** What a selection asks of other fields than times, as conditions; none if it asks nothing. */
export function toConditions({ objectIds, selection }: PacketQuery): Filter<Document>[] {
  if (selection == null || (selection.filters.length === 0 && selection.search === null)) return [];
  return selected(objectIds, { ...selection, fromMs: null, toMs: null });
}

/** Packets are named by their own `_id`s, which are a part of their keys. */
function selected(objectIds: readonly string[], selection: Selection): Filter<Document>[] {
  const named = selection.filters.filter(({ path }) => path === '_id');
  const keys = named.map(({ values }) => {
    const ids = values.map(({ text }) => text).filter(isId);
    const names = objectIds.flatMap((objectId) => ids.map((packetId) => ({ objectId, packetId })));
    return { _id: { $in: names.map(keyOf) } };
  });
  const filters = selection.filters.filter((filter) => !named.includes(filter));
  return [...keys, ...selectionFilter(PACKET_LAYOUT, { ...selection, filters }, ['id'])];
}

/** A packet by its own `_id`, which is unique only within its object. */
export interface PacketName {
  readonly objectId: string;
  readonly packetId: string;
}

/** The command that finds packets by their names. `fields` are those of each packet, beside `_id`; null for all. */
export function toNamedFind(names: readonly PacketName[], fields: PacketReading['fields']): Document {
  const objectIds = new Set(names.map(({ objectId }) => objectId));
  return {
    find: PACKETS,
    // The object tells the shard.
    filter: { _id: { $in: names.map(keyOf) }, _oid: toOperand([...objectIds]) },
    // Otherwise, the database may scan all packets of the object.
    hint: { _id: 1 },
    // One more than there can be: after a full batch the cursor would stay open.
    batchSize: names.length + 1,
    ...(fields !== null && { projection: toProjection(fields) }),
  };
}

/** A packet's `_id` as it is stored. */
export const keyOf = ({ objectId, packetId }: PacketName): ObjectId =>
  toPacketKey(packetId, new ObjectId(objectId)) as unknown as ObjectId;
