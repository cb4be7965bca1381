/** What was written, in order, and the events and tokens that change streams make of it. */
import { type Document, Long, Timestamp } from 'mongodb';

export interface Entry {
  readonly seconds: number;
  readonly increment: number;
  /** Its place within a transaction. */
  readonly nth: number;
  readonly wallMs: number;
  /** Null for an entry without a change, which only lets time pass. */
  readonly collection: string | null;
  readonly key: string;
  readonly id: unknown;
  readonly before: Document | null;
  readonly after: Document | null;
  readonly isReplacement: boolean;
  /** The statement of a retryable write that it comes from. */
  readonly statement: { readonly session: string; readonly number: string; readonly nth: number } | null;
  /** The number of the transaction that it is a part of. */
  readonly transaction: string | null;
}

const hex = (value: number, digits: number): string => value.toString(16).toUpperCase().padStart(digits, '0');

const timeIn = ({ seconds, increment }: Pick<Entry, 'seconds' | 'increment'>): string =>
  `82${hex(seconds, 8)}${hex(increment, 8)}2B`;

/** The token that continues after the entry. */
export const tokenOf = (entry: Entry): string => `${timeIn(entry)}042C01${hex(entry.nth, 4)}296E5A1004`;

/** The token that continues with the changes of this time: of a stream that has seen no later change. */
export const timeToken = (time: Pick<Entry, 'seconds' | 'increment'>): string => `${timeIn(time)}0229296E04`;

export interface Place {
  readonly seconds: number;
  readonly increment: number;
  /** Null: before all changes of this time. */
  readonly nth: number | null;
}

/** Where a token leads; null for what is no token. */
export function placeOf(token: string): Place | null {
  const found = /^82([0-9A-F]{8})([0-9A-F]{8})2B(0229296E04|042C01([0-9A-F]{4})296E5A1004)$/.exec(token);
  if (found === null) return null;
  const nth = found[4] === undefined ? null : Number.parseInt(found[4], 16);
  return { seconds: Number.parseInt(found[1] as string, 16), increment: Number.parseInt(found[2] as string, 16), nth };
}

/** Negative for an entry that a stream at this place has passed. */
export function compareToPlace(entry: Entry, place: Place): number {
  return (
    entry.seconds - place.seconds ||
    entry.increment - place.increment ||
    (place.nth === null ? 1 : entry.nth - place.nth)
  );
}

const events = new WeakMap<Entry, Document>();

/** The event of a change stream with images of documents before and after. */
export function eventOf(entry: Entry, database: string): Document {
  const known = events.get(entry) ?? toEvent(entry, database);
  events.set(entry, known);
  return known;
}

function toEvent(entry: Entry, database: string): Document {
  const { before, after, id, isReplacement, transaction } = entry;
  const changed = isReplacement ? 'replace' : 'update';
  const operationType = before === null ? 'insert' : after === null ? 'delete' : changed;
  return {
    ...(transaction !== null && { txnNumber: Long.fromString(transaction) }),
    _id: { _data: tokenOf(entry) },
    operationType,
    clusterTime: new Timestamp({ t: entry.seconds, i: entry.increment }),
    wallTime: new Date(entry.wallMs),
    ...(after !== null && { fullDocument: after }),
    ns: { db: database, coll: entry.collection },
    documentKey: { _id: id },
    ...(before !== null && { fullDocumentBeforeChange: before }),
  };
}
