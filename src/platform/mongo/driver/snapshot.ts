/** Moments of the database at which documents are read. */
import { Timestamp } from 'mongodb';
import { orderOf } from '../../../core/position.js';
import type { DocumentBatch } from '../bson/document-batch.js';

/** A moment of the database: all that is read at it fits together, whatever is packed meanwhile. */
export interface Snapshot {
  readonly readConcern: { readonly level: 'snapshot'; readonly atClusterTime?: Timestamp };
}

/** The moment of the first command with it. */
export const NOW: Snapshot = { readConcern: { level: 'snapshot' } };

const at = (atClusterTime: Timestamp): Snapshot => ({ readConcern: { level: 'snapshot', atClusterTime } });

export const snapshotOf = ({ snapshot }: DocumentBatch): Snapshot =>
  snapshot === null ? NOW : at(new Timestamp(snapshot.readBigUInt64LE()));

/** The moment right after all changes that were made together with the one at a position. */
export function snapshotAfter(position: string): Snapshot {
  const { seconds: t, nth: i } = orderOf(position);
  return at(new Timestamp({ t, i }));
}

/** The moments right before the change at a position, and right after all changes that were made together with it. */
export function snapshotsOf(position: string): readonly [Snapshot, Snapshot] {
  const { seconds: t, nth } = orderOf(position);
  return [at(new Timestamp({ t, i: nth - 1 })), snapshotAfter(position)];
}
