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
  readonly position: string;
}
