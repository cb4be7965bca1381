/** A parsed list request: a page of entities, or a summary of them (`meta`). */
import { LIMITS } from './limits.js';

export type Scalar = string | number | boolean | null;

export interface Filter {
  readonly path: string;
  /** Matches any of these values; text fields are compared with `text`. */
  readonly values: readonly { readonly value: Scalar; readonly text: string }[];
}

/** The bounds on `time` are in ms, both inclusive. */
export interface Selection {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly filters: readonly Filter[];
  readonly search: string | null;
  /** Paths of the returned fields, beside `_id`; null for all. */
  readonly only: readonly string[] | null;
}

export interface Page extends Selection {
  readonly kind: 'page';
  readonly offset: number;
  readonly limit: number;
  /** The `_id` of the last entity of the page before. */
  readonly after: string | null;
  readonly sort: { readonly path: string; readonly descending: boolean } | null;
  /** Whether objects come with the latest value of each parameter, in place of their state. */
  readonly isOfEach?: boolean;
  /** The parameter after which the latest values continue, by name. */
  readonly latestAfter?: string | null;
}

export interface Summary extends Selection {
  readonly kind: 'summary';
}

export type ListQuery = Page | Summary;

/**
 * How much a list may cost the database. `quick`: a few entities in the order of an index. `page`: a long page of them. `scan`:
 * possibly all entities. `history`: all packets of an interval, read in batches; each `batch` queues separately. `export`: the
 * same, for as long as its client reads. `past`: past events, of which each looks through packets, commands and the oplog. `bulk`: a
 * list whose entities are changed or removed.
 */
export type ListCost = 'quick' | 'page' | 'scan' | 'history' | 'batch' | 'export' | 'past' | 'bulk';

/** Whether a list has bounds of time. */
const hasInterval = ({ fromMs, toMs }: Selection): boolean => fromMs !== null || toMs !== null;

/** Whether a list has a filter that no index provides. */
const hasFilter = ({ filters, search }: Selection): boolean => filters.length > 0 || search !== null;

/** Whether a list leaves anything out, apart from the bounds of its page. */
export const isSelective = (selection: Selection): boolean => hasInterval(selection) || hasFilter(selection);

/** `indexed` names the orders that an index provides. */
export function costOf(query: ListQuery, indexed: { readonly sort: string; readonly time: boolean }): ListCost {
  if (query.kind === 'summary' || hasFilter(query) || (hasInterval(query) && !indexed.time)) return 'scan';
  if (query.sort !== null && query.sort.path !== indexed.sort) return 'scan';
  if (query.offset > LIMITS.listEntities) return 'scan';
  return query.offset + query.limit > LIMITS.quickEntities ? 'page' : 'quick';
}

/** Whether the text names a field that a packet or an entity may have, nested ones with dots. */
export function isPath(text: string): boolean {
  const names = text.split('.');
  return names.length <= LIMITS.jsonDepth && names.every(isName);
}

// The driver takes an object with `_bsontype` for a value of BSON. Other reserved words select nothing.
const isName = (name: string): boolean =>
  /^[^$\0][^\0]*$/.test(name) && name !== '_bsontype' && name.length <= LIMITS.keyCharacters && name.isWellFormed();

// With lookbehind, because an item may be empty.
const ITEM = /(?<=^|,)(?:\s*"((?:[^"]|"")*)"\s*(?=,|$)|[^,]*)/g;

/**
 * The items of a list with commas. One in double quotes is taken as it is, with its commas and white space, and `""` in it is a
 * quote, as in CSV (RFC 4180). A lone quote is a character like any other.
 */
export function splitList(text: string): string[] {
  return splitQuoted(text).map((item) => (item.isQuoted ? item.text : item.text.trim()));
}

/** The same, with white space around items, and which of them were in quotes. */
export function splitQuoted(text: string): { readonly text: string; readonly isQuoted: boolean }[] {
  return [...text.matchAll(ITEM)].map(([item, quoted]) => ({
    text: quoted?.replaceAll('""', '"') ?? item,
    isQuoted: quoted !== undefined,
  }));
}

/** Drops paths below other paths of the list: MongoDB refuses a projection of both `a` and `a.b`. */
export function distinctPaths(paths: readonly string[]): string[] {
  return [...new Set(paths)].filter(
    (path, _, all) => !all.some((other) => other !== path && path.startsWith(`${other}.`)),
  );
}
