/** What happened to one stored thing, as the database tells it: the only news that doors act on. */
import type { JsonObject } from './json.js';

/** `position` is an opaque, URL-safe string; positions of one database increase. */
export interface Change {
  readonly store: string;
  readonly kind: 'created' | 'changed' | 'removed';
  readonly id: string;
  /** The whole thing before and after; null where there is none (or the database no longer has it). */
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  /** `after` as JSON where that was made first (packets): then `after` is only read from it when it is asked for. */
  readonly json: Buffer | null;
  /** How large it is, as the database told it. */
  readonly bytes: number;
  /** The control object that the thing belongs to, or is; null when it is no object's. */
  readonly objectId: string | null;
  readonly position: string;
}

/** Some of the history, in order; everything up to `upTo` has been given now. */
export interface HistoryPage {
  readonly changes: readonly Change[];
  readonly upTo: string;
}

/** The history after a position, page by page, without end; null when the database does not have it (any more). */
export type OpenHistory = (position: string) => Promise<AsyncGenerator<HistoryPage, never> | null>;
