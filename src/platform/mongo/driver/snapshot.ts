/** Moments of the database at which documents are read. */
import { Timestamp } from 'mongodb';
import { orderOf } from '../../../core/position.js';
import type { DocumentBatch } from '../bson/document-batch.js';

/** A moment of the database: all that is read at it fits together, whatever is packed meanwhile. */
export interface Snapshot {
  readonly readConcern: {
    readonly level: 'snapshot';
    readonly atClusterTime?: Timestamp;
    readonly afterClusterTime?: Timestamp;
  };
}

/** The moment of the first command with it. */
export const NOW: Snapshot = { readConcern: { level: 'snapshot' } };

const at = (atClusterTime: Timestamp): Snapshot => ({ readConcern: { level: 'snapshot', atClusterTime } });

/** Only what a majority has, which no election undoes, at whatever moment each batch is read. */
export interface Committed {
  readonly readConcern: { readonly level: 'majority'; readonly afterClusterTime?: Timestamp };
}

const timeOf = (position: string): Timestamp => {
  const { seconds: t, nth: i } = orderOf(position);
  return new Timestamp({ t, i });
};

/** With all changes up to a position; null for those of now, as the member that is asked knows it. */
export const committedSince = (position: string | null): Committed => ({
  readConcern: { level: 'majority', ...(position !== null && { afterClusterTime: timeOf(position) }) },
});

/** The moment of the first command with it, or the one of the position if that is later. */
export const snapshotSince = (position: string | null): Snapshot =>
  position === null ? NOW : { readConcern: { level: 'snapshot', afterClusterTime: timeOf(position) } };

export const snapshotOf = ({ snapshot }: DocumentBatch): Snapshot =>
  snapshot === null ? NOW : at(new Timestamp(snapshot.readBigUInt64LE()));

/** The moment right after all changes that were made together with the one at a position. */
export const snapshotAfter = (position: string): Snapshot => at(timeOf(position));

/** The moments right before the change at a position, and right after all changes that were made together with it. */
export function snapshotsOf(position: string): readonly [Snapshot, Snapshot] {
  const { seconds: t, nth } = orderOf(position);
  return [at(new Timestamp({ t, i: nth - 1 })), snapshotAfter(position)];
}
