/** What a list request asks for: a page of entities, or a summary of them (`meta`); never both. */
import { LIMITS } from './limits.js';

export type Scalar = string | number | boolean | null;

export interface Filter {
  readonly path: string;
  /** Any of these; `text` is what a field that holds text is compared with. */
  readonly values: readonly { readonly value: Scalar; readonly text: string }[];
}

/** Which entities: bounds on `time` in ms, both inclusive. */
export interface Selection {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly filters: readonly Filter[];
  readonly search: string | null;
  /** Paths of the fields that each entity is given with, beside `_id`; null for all. */
  readonly only: readonly string[] | null;
}

export interface Page extends Selection {
  readonly kind: 'page';
  readonly offset: number;
  readonly limit: number;
  /** The `_id` of the last entity of the page before. */
  readonly after: string | null;
  readonly sort: { readonly path: string; readonly descending: boolean } | null;
}

export interface Summary extends Selection {
  readonly kind: 'summary';
}

export type ListQuery = Page | Summary;

/**
 * How much a list may cost the database: as little as a few entities in the order of an index; a long page of them; or a
 * look at everything there is.
 */
export type ListCost = 'quick' | 'page' | 'scan';

/** `indexed`: what an index gives in order. */
export function costOf(query: ListQuery, indexed: { readonly sort: string; readonly time: boolean }): ListCost {
  if (query.kind === 'summary' || query.filters.length > 0 || query.search !== null) return 'scan';
  if (!indexed.time && (query.fromMs !== null || query.toMs !== null)) return 'scan';
  if (query.sort !== null && query.sort.path !== indexed.sort) return 'scan';
  if (query.offset > LIMITS.listEntities) return 'scan';
  return query.offset + query.limit > LIMITS.quickEntities ? 'page' : 'quick';
}

// A lone number is no name, but models have parameters such as `3303_0_5601` and `!govecs_lock`.
const PATH = /^(?!\d+(?:\.|$))[\w!][\w-]*(?:\.[\w-]+)*$/;

/** Whether text names a field, or a nested one with dots. */
export function isPath(text: string): boolean {
  return text.length <= 256 && PATH.test(text);
}

/** Names such that none stands under another: the database takes no projection of both `a` and `a.b`. */
export function distinctPaths(paths: readonly string[]): string[] {
  return [...new Set(paths)].filter(
    (path, _, all) => !all.some((other) => other !== path && path.startsWith(`${other}.`)),
  );
}
