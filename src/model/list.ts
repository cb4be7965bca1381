/** What a list request asks for: a page of entities, or a summary of them (`meta`); never both. */

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
