/**
 * The parameters of lists: declared and parsed (docs/reference/http-api.md, "List parameters"). Throws a 400 that names the
 * parameter; ignores unknown ones.
 */
import { z } from 'zod';
import { isId } from '../../core/entity.js';
import { badRequest } from '../../core/errors.js';
import { isRounded } from '../../core/exact-json.js';
import { LIMITS } from '../../core/limits.js';
import {
  type Filter,
  isPath,
  type ListQuery,
  type Page,
  type Scalar,
  type Selection,
  splitList,
  splitQuoted,
} from '../../core/list.js';
import { EXAMPLE_ID, ID, INTERVAL_QUERY, ONLY_QUERY } from './parameters.js';
import { parseCount, parseFields, parseInterval, parseText, type Query } from './query-params.js';
import type { Parameter } from './route.js';

/** The parameters that select entities. */
export const FILTER_QUERY = {
  ...INTERVAL_QUERY,
  where: {
    schema: z.record(z.string(), z.string()).meta({ maxProperties: LIMITS.whereFilters }),
    example: { 'where.name': 'Truck 7' },
    description:
      'Parameters named `where.<field>`, such as `where.config.plate=B-VG 7`: the field has this value, or one of these ' +
      'values, separated by commas. `null`, `true` and numbers are read as such; `"123"` in quotes is text. `where_<field>` is the same',
  },
  search: {
    schema: z.string().max(LIMITS.searchCharacters),
    example: 'truck',
    description: 'Text that occurs in `name`, `id` or `login`, in upper or lower case',
  },
} satisfies Record<string, Parameter>;

/** The parameters that select a page of what is selected. */
export const PAGE_QUERY = {
  offset: {
    schema: z.int().min(0).max(LIMITS.listOffset).default(0),
    example: 0,
    description: 'The number of elements to skip; not with `meta`',
  },
  limit: {
    schema: z.int().min(0).default(LIMITS.listEntities),
    example: 100,
    description: `The maximal number of elements; larger values are reduced to ${LIMITS.listEntities}. Not with \`meta\``,
  },
  sortBy: {
    schema: z.string().meta({ examples: ['-time'] }),
    // Empty: programs send all examples at once, and `after` goes with the default order only.
    example: '',
    description:
      'The field to sort by, such as `-time`; a leading `-` sorts in descending order. Of objects also `state.online` and `state.time`. Not with `after`',
  },
  after: {
    schema: ID,
    example: EXAMPLE_ID,
    description: 'The `_id` of the last element that was read, which may have been removed; returns the next page',
  },
} satisfies Record<string, Parameter>;

/** The parameters of every list. */
export const LIST_QUERY = {
  ...PAGE_QUERY,
  ...ONLY_QUERY,
  meta: {
    schema: z.string().meta({ examples: ['true'] }),
    example: 'false',
    description:
      'Any value except `false` and `0` returns the count, the first and the last element instead of the list',
  },
  ...FILTER_QUERY,
} satisfies Record<string, Parameter>;

/** Parses the parameters of a list (docs/reference/http-api.md). */
export function parseListQuery(query: Query): ListQuery {
  const selection = parseSelection(query);
  const meta = parseText(query, 'meta');
  if (meta === null || meta === 'false' || meta === '0') return { ...selection, kind: 'page', ...parsePage(query) };
  for (const name of ['offset', 'limit']) {
    if (query[name] !== undefined) throw badRequest(`${name}: cannot be combined with meta`);
  }
  return { ...selection, kind: 'summary' };
}

/** `state=latest-of-each` of a list of objects: each object costs so much that the page is shorter. */
export function withStateKind(query: Query, asked: ListQuery): ListQuery {
  const kind = parseText(query, 'state');
  if (kind === null || kind === '') return asked;
  if (kind !== 'latest-of-each') throw badRequest('state: expected latest-of-each');
  if (asked.kind === 'summary') throw badRequest('state: cannot be combined with meta');
  const latestAfter = parseText(query, 'latestAfter') || null;
  return { ...asked, isOfEach: true, latestAfter, limit: Math.min(asked.limit, LIMITS.latestObjects) };
}

function parseSelection(query: Query): Selection {
  return {
    ...parseInterval(query),
    filters: parseFilters(query),
    search: parseSearch(query),
    only: parseFields(query),
  };
}

function parsePage(query: Query): Pick<Page, 'offset' | 'limit' | 'after' | 'sort'> {
  const offset = parseCount(query, 'offset') ?? 0;
  if (offset > LIMITS.listOffset) throw badRequest(`offset: at most ${LIMITS.listOffset}; page with after instead`);
  const after = parseText(query, 'after');
  if (after !== null && !isId(after)) throw badRequest('after: expected the _id of the last entity read');
  const sort = parseSort(query);
  if (after !== null && sort !== null) throw badRequest('after: goes with the default order, not with sortBy');
  return {
    offset,
    limit: Math.min(parseCount(query, 'limit') ?? LIMITS.listEntities, LIMITS.listEntities),
    after,
    sort,
  };
}

function parseSort(query: Query): Page['sort'] {
  const text = parseText(query, 'sortBy');
  if (text === null || text === '') return null;
  const descending = text.startsWith('-');
  const [path = '', ...others] = splitList(descending ? text.slice(1) : text);
  if (others.length > 0 || !isPath(path))
    throw badRequest('sortBy: expected a field name, with - in front for descending');
  return { path, descending };
}

function parseSearch(query: Query): string | null {
  // Blanks come along when a text is copied.
  const text = parseText(query, 'search')?.trim() ?? '';
  if (text === '') return null;
  if (text.length > LIMITS.searchCharacters || !text.isWellFormed()) {
    throw badRequest(`search: expected at most ${LIMITS.searchCharacters} characters of well-formed text`);
  }
  return text;
}

function parseFilters(query: Query): Filter[] {
  const names = Object.keys(query).filter((name) => /^where[._]/.test(name));
  if (names.length > LIMITS.whereFilters) throw badRequest(`where: more than ${LIMITS.whereFilters} filters`);
  return names.map((name) => {
    const path = name.slice('where.'.length);
    if (!isPath(path)) throw badRequest(`${JSON.stringify(name.slice(0, 64))}: not a field name`);
    return { path, values: parseFilterValues(name, parseText(query, name) ?? '') };
  });
}

// Text in double quotes is text whatever it looks like.
function parseFilterValues(name: string, text: string): Filter['values'] {
  const items = splitQuoted(text);
  if (items.length > LIMITS.whereValues) throw badRequest(`${name}: more than ${LIMITS.whereValues} values`);
  if (!text.isWellFormed()) throw badRequest(`${name}: not well-formed text`);
  return items.flatMap(({ isQuoted, text: item }) =>
    (isQuoted ? [item] : toScalars(item)).map((value) => ({ value, text: item })),
  );
}

/** Digits that a number does not print back may be an identifier, which is stored as text: 0012, 8944110068765432109. */
function toScalars(text: string): Scalar[] {
  if (text === 'null') return [null];
  if (text === 'true' || text === 'false') return [text === 'true'];
  if (!/^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?$/i.test(text) || !Number.isFinite(Number(text))) return [text];
  if (isRounded(text)) return [text];
  return String(Number(text)) === text ? [Number(text)] : [Number(text), text];
}
