/** What happened to one stored thing, as the database tells it: the only news that doors act on. */
import type { Guarded } from './access.js';
import type { JsonObject } from './json.js';

/** `position` is an opaque, URL-safe string; positions of one database increase. */
export interface Change {
  readonly store: string;
  readonly kind: 'created' | 'changed' | 'removed';
  readonly id: string;
  /** The whole thing before and after; null where there is none (or the database no longer has it). */
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  /** The fields, top level, that are other than they were; null where it is not known: without both of the above. */
  readonly changed: readonly string[] | null;
  /** Who may see it now, of what tells it itself; null of everything else, and where it is gone. */
  readonly guard: Guarded | null;
  /** `after` as JSON where that was made first (packets): then `after` is only read from it when it is asked for. */
  readonly json: Buffer | null;
  /** How large it is, as the database told it. */
  readonly bytes: number;
  /** The control object that the thing belongs to, or is; null when it is no object's. */
  readonly objectId: string | null;
  readonly position: string;
}

/** Whether one of these fields may be another after it. */
export function mayBeOther({ changed }: Change, fields: readonly string[]): boolean {
  return changed === null || fields.some((field) => changed.includes(field));
}

/** Some of the history, in order; everything up to `upTo` has been given now. */
export interface HistoryPage {
  readonly changes: readonly Change[];
  readonly upTo: string;
}

/** The history after a position, page by page, without end; null when the database does not have it (any more). */
export type OpenHistory = (position: string) => Promise<AsyncGenerator<HistoryPage, never> | null>;
