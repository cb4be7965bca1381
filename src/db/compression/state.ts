/**
 * The compression of existing packets as the database knows it: who asked for it, how far it is, and who works on it. Only the
 * owner advances it, in the transactions that move packets: whoever was overtaken changes nothing more.
 */
import type { Binary, ClientSession, Collection, Document, UUID } from 'mongodb';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { COMPRESSION } from '../schema/collections.js';

/** The first four are under way, in this order; the others are ends. */
export type Stage = 'requested' | 'copying' | 'comparing' | 'exchanging' | 'done' | 'stopped' | 'failed';

/** A value inside of an object, because it can be of any type. */
export interface Key {
  readonly _id: unknown;
}

/** The stored state. */
export interface Compression {
  readonly _id: typeof COMPRESSION;
  readonly stage: Stage;
  /** Whether the operator wants it no more. */
  readonly isUnwanted: boolean;
  readonly owner: string | null;
  /** The owner's, in which a transaction may be open. */
  readonly session: Binary | null;
  readonly source: UUID | null;
  readonly copy: UUID | null;
  /** The position in the change stream up to which the copy has all changes of packets that it has at all. */
  readonly token: Document | null;
  /** Where copying or comparing goes on; null at the beginning. */
  readonly from: Key | null;
  /** Where it ends: packets from there on that are stored meanwhile are changes. Null for the end of the collection. */
  readonly end: Key | null;
  readonly copied: number;
  /** How often the exchange was tried. */
  readonly attempts: number;
  /** About so many packets there were at the beginning. */
  readonly total: number;
  /** On disk, with indexes, before and after. */
  readonly bytes: number;
  readonly bytesAfter: number | null;
  /** Why it failed. */
  readonly problem: string | null;
}

const NEW: Omit<Compression, '_id'> = {
  ...{ stage: 'requested', isUnwanted: false, owner: null, session: null, source: null, copy: null },
  ...{
    token: null,
    from: null,
    end: null,
    copied: 0,
    attempts: 0,
    total: 0,
    bytes: 0,
    bytesAfter: null,
    problem: null,
  },
};
const ENDS: readonly Stage[] = ['done', 'stopped', 'failed'];

/** Another instance has taken over, or the operator wants it no more. */
export class OvertakenError extends Error {
  constructor() {
    super('the compression of packets was stopped, or another instance has taken it over');
    this.name = 'OvertakenError';
  }
}

/** A reason, for the operator, why packets cannot be compressed here. */
export class CannotCompressError extends Error {}

const statesOf = ({ db }: Database): Collection<Compression> => db.collection<Compression>('installation');

export const isUnderWay = (state: Compression | null): state is Compression =>
  state !== null && !ENDS.includes(state.stage);

/** Null where nobody ever asked for it. */
export function readCompression(database: Database): Promise<Compression | null> {
  return mapDriverErrors(() => statesOf(database).findOne({ _id: COMPRESSION }));
}

/** Asks for it; a running service does it. What is under way goes on, also if it was wanted no more. */
export async function requestCompression(database: Database): Promise<void> {
  const isUnderWay = { $not: { $in: [{ $ifNull: ['$stage', 'done'] }, ENDS] } };
  const goOn = { $mergeObjects: ['$$ROOT', { isUnwanted: false }] };
  const request = { $replaceWith: { $cond: [isUnderWay, goOn, { $literal: { _id: COMPRESSION, ...NEW } }] } };
  await mapDriverErrors(() => statesOf(database).updateOne({ _id: COMPRESSION }, [request], { upsert: true }));
}

/** Wants it no more; returns whether it was under way. */
export async function withdrawCompression(database: Database): Promise<boolean> {
  const underWay = { _id: COMPRESSION, stage: { $nin: ENDS } } as const;
  const update = { $set: { isUnwanted: true } };
  return (await mapDriverErrors(() => statesOf(database).updateOne(underWay, update))).matchedCount > 0;
}

/** Makes `owner` the owner, in place of any other. */
export async function takeCompression(database: Database, owner: string, session: Binary | null): Promise<void> {
  await mapDriverErrors(() => statesOf(database).updateOne({ _id: COMPRESSION }, { $set: { owner, session } }));
}

/** It is too late to stop it. */
export async function keepCompression(database: Database, owner: string): Promise<void> {
  const update = { $set: { isUnwanted: false } };
  await mapDriverErrors(() => statesOf(database).updateOne({ _id: COMPRESSION, owner }, update));
}

/** What the owner changes. A `marker` appears in the change stream, after all that was written before it. */
export type Progress = Partial<Omit<Compression, '_id' | 'owner' | 'session'>> & { readonly marker?: string };

/**
 * Throws `OvertakenError` unless `owner` still is the owner, and the operator wants it, or wants it no more if it is stopped. Any
 * other end may be stored either way.
 */
export async function advance(
  database: Database,
  owner: string,
  progress: Progress,
  session?: ClientSession,
): Promise<void> {
  const isUnwanted = progress.stage === 'stopped';
  const isOtherEnd = progress.stage === 'done' || progress.stage === 'failed';
  const filter = { _id: COMPRESSION, owner, ...(!isOtherEnd && { isUnwanted }) } as const;
  const run = () => statesOf(database).updateOne(filter, { $set: progress }, session && { session });
  const { matchedCount } = session === undefined ? await mapDriverErrors(run) : await run();
  if (matchedCount === 0) throw new OvertakenError();
}
