/** Commands that find the last packet of each object among those that a search meets, from the latest one back. */
import { type Document, ObjectId } from 'mongodb';
import { PRESENCE_FIELDS } from '../core/packet-fields.js';
import { DAY_MS } from '../core/units.js';
import type { BoundedObjects } from './ahead.js';
import { PACKETS } from './store/query.js';

/** The member of each result that holds the packet; `_id` is that of its object. No object has a member of this name. */
export const FOUND = '_found';

const YEAR_MS = 365 * DAY_MS;

/**
 * Up to which times data are looked for where the latest packets are all reports of presence: those have the server's time, while the
 * clock of the device may be years behind, as after its week number has rolled over.
 */
export const findFarBackMs = (nowMs: number): readonly number[] =>
  [30 * DAY_MS, YEAR_MS, 5 * YEAR_MS, 10 * YEAR_MS, 20 * YEAR_MS].map((ms) => nowMs - ms);

/** An expression: whether a packet has more than the fields of a report of presence. */
export const holdsData = (packet: string): Document => ({
  $ne: [
    { $setDifference: [{ $map: { input: { $objectToArray: packet }, in: '$$this.k' } }, [...PRESENCE_FIELDS]] },
    [],
  ],
});

/** `search`: the stages that choose at most one packet of the object's packets in descending order. */
export function lookBack({ ids, boundMs }: BoundedObjects, search: readonly Document[]): Document {
  const upTo = boundMs === null ? {} : { time: { $lte: boundMs } };
  const latestFirst: Document[] = [{ $sort: { time: -1, _ts: -1 } }, ...search];
  const cursor = { batchSize: ids.length + 1 };
  const [first, ...others] = ids.map((id) => new ObjectId(id));
  // For one object, this pipeline costs the database half as much.
  if (others.length === 0) {
    const wrap = { $replaceWith: { _id: first, [FOUND]: '$$ROOT' } };
    return { aggregate: PACKETS, pipeline: [{ $match: { _oid: first, ...upTo } }, ...latestFirst, wrap], cursor };
  }
  const pipeline = boundMs === null ? latestFirst : [{ $match: upTo }, ...latestFirst];
  const lookUp = { from: PACKETS, localField: '_id', foreignField: '_oid', pipeline, as: FOUND };
  return {
    aggregate: 'objects',
    pipeline: [
      { $match: { _id: { $in: [first, ...others] } } },
      { $project: { _id: 1 } },
      { $lookup: lookUp },
      { $unwind: `$${FOUND}` },
    ],
    cursor,
  };
}
