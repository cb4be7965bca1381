/** A change of one stored document, as the change stream reports it. Transports act on nothing else. */
import type { AccessFields } from './access.js';
import type { JsonObject } from './json.js';

/** `position` is an opaque, URL-safe string; positions of one database increase. */
export interface Change {
  readonly store: string;
  readonly kind: 'created' | 'changed' | 'removed';
  readonly id: string;
  /** The whole document before and after; null when it did not exist, or when the database no longer has that state. */
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  /** The changed top-level fields; null when unknown, because `before` or `after` is missing. */
  readonly changed: readonly string[] | null;
  /** Who may see the document after the change; null for documents without access fields of their own, and after removal. */
  readonly accessFields: AccessFields | null;
  /** Who saw it before the change; null for a new document, or when the database no longer has the former state. */
  readonly accessFieldsBefore: AccessFields | null;
  /** `after` as JSON, for packets: `after` is then parsed only on access. */
  readonly json: Buffer | null;
  /** Whether it is a packet that reports its object offline: cheaper than `after`. */
  readonly isOffline?: boolean;
  /** The size of the document as received from the database. */
  readonly bytes: number;
  /** The control object that the document is or belongs to; null for documents of no object. */
  readonly objectId: string | null;
  readonly position: string;
}

/** Whether one of these fields may have changed. */
export function mayHaveChanged({ changed }: Change, fields: readonly string[]): boolean {
  return changed === null || fields.some((field) => changed.includes(field));
}

/** A page of the history, in order; it completes the history up to `upTo`. */
export interface HistoryPage {
  readonly changes: readonly Change[];
  readonly upTo: string;
}

/** Opens the endless history after a position, page by page; null when the database does not have it, or no longer. */
export type OpenHistory = (position: string) => Promise<AsyncGenerator<HistoryPage, never> | null>;
