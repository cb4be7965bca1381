/**
 * Finds the packets of a request that were stored before and are packed by now. The database refuses an `_id` that a row has; one that is
 * in a bucket is looked up before the insert. Buckets are stored long before their rows are removed (`packingSettleMs`,
 * `bucketsKnownMs`), so that a packet that is sent again always meets one of the two.
 */
import { BSON } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { SECOND_MS } from '../core/units.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { endWithin } from '../platform/mongo/driver/deadline.js';
import { toDatabaseError } from '../platform/mongo/driver/errors.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import type { Message, Packet } from './packet.js';
import type { Source } from './source.js';
import { NEAR_MS } from './store/bucket-ids.js';
import { findInBuckets, hasBuckets } from './store/packed-repeats.js';
import { PACKET_LAYOUT } from './store/query.js';

/**
 * Whether a packet with the `_id` of this message may be in a bucket. One that was derived from the message begins with its time, or
 * with the hour of its arrival: none that is younger than `packedAgeMs` is packed.
 */
export function mayBePacked({ id, isChosen }: Message, nowMs: number, packedAgeMs: number): boolean {
  if (id === null) return false;
  if (isChosen) return true;
  const startMs = Number.parseInt(id.slice(0, 8), 16) * SECOND_MS;
  return startMs <= nowMs - packedAgeMs + NEAR_MS + LIMITS.packetAheadMs;
}

/** Whose packets they are. */
type Sender = Pick<Source, 'objectId' | 'groupId'>;

export interface PackedRepeats {
  /** Whether it is known that nothing is packed. */
  areNone(): boolean;
  /** Maps those of these packets that are packed to the stored ones. Throws 503. */
  find(source: Sender, packets: readonly Packet[]): Promise<ReadonlyMap<Packet, Packet>>;
}

const NONE: ReadonlyMap<Packet, Packet> = new Map();

export function createPackedRepeats(database: Database): PackedRepeats {
  // When it was known last that there are no buckets; ms of the monotonic clock.
  let noneAtMs = Number.NEGATIVE_INFINITY;
  const areNone = (): boolean => clock.steadyMs() - noneAtMs < LIMITS.bucketsKnownMs;
  const areAny = async (reader: Database): Promise<boolean> => {
    const askedMs = clock.steadyMs();
    if (await hasBuckets(reader)) return true;
    noneAtMs = askedMs;
    return false;
  };
  const find = async (
    reader: Database,
    source: Sender,
    packets: readonly Packet[],
  ): Promise<ReadonlyMap<Packet, Packet>> => {
    if (areNone() || !(await areAny(reader))) return NONE;
    const ids = [...new Set(packets.map(({ _id }) => _id))].map((id) => Buffer.from(id, 'hex'));
    const { objectId, groupId } = source;
    const caller = { userId: objectId, tenantId: groupId };
    // Of a damaged bucket it cannot be told: to store a packet twice is better than to refuse it for ever.
    const search = { objectId, ids, withPending: true, caller, passesOverDamaged: true };
    const found = await findInBuckets(reader, search);
    if (found.size === 0) return NONE;
    const stored = new Map(
      [...found].map(([id, bson]) => [id, toEntity(PACKET_LAYOUT, BSON.deserialize(bson)) as unknown as Packet]),
    );
    return new Map(
      packets.flatMap((packet) => (stored.has(packet._id) ? [[packet, stored.get(packet._id) as Packet]] : [])),
    );
  };
  return {
    areNone,
    async find(source, packets) {
      try {
        return await endWithin(database, LIMITS.databaseAnswerMs, (reader) => find(reader, source, packets));
      } catch (error) {
        throw toDatabaseError(error);
      }
    },
  };
}
