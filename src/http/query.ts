/** The query string becomes a ListQuery, or a 400 that names the parameter. Unknown parameters are ignored. */
import type { Request } from 'express';
import { badRequest } from '../errors.js';
import { isId } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import {
  distinctPaths,
  type Filter,
  isPath,
  type ListQuery,
  type Page,
  type Scalar,
  type Selection,
} from '../model/list.js';
import { readTime } from '../model/time.js';

type Query = Request['query'];

/** What a list request asks for: docs/reference/http-api.md. */
export function readListQuery(query: Query): ListQuery {
  const selection = readSelection(query);
  const meta = readText(query, 'meta');
  if (meta === null || meta === 'false' || meta === '0') return { ...selection, kind: 'page', ...readPage(query) };
  for (const name of ['offset', 'limit']) {
    if (query[name] !== undefined) throw badRequest(`${name}: cannot be combined with meta`);
  }
  return { ...selection, kind: 'summary' };
}

/** The fields that `only` asks for, or null for all: decoded, then split at commas. */
export function readOnly(query: Query): string[] | null {
  const text = readText(query, 'only');
  if (text === null || text === '') return null;
  const paths = text.split(',').map((path) => path.trim());
  if (paths.length > LIMITS.onlyNames) throw badRequest(`only: more than ${LIMITS.onlyNames} names`);
  const wrong = paths.find((path) => !isPath(path));
  if (wrong !== undefined) throw badRequest(`only: ${JSON.stringify(wrong.slice(0, 64))} is not a field name`);
  return distinctPaths(paths);
}

function readSelection(query: Query): Selection {
  return {
    fromMs: readBound(query, 'from', 'begin'),
    toMs: readBound(query, 'to', 'end'),
    filters: readFilters(query),
    search: readSearch(query),
    only: readOnly(query),
  };
}

function readPage(query: Query): Pick<Page, 'offset' | 'limit' | 'after' | 'sort'> {
  const offset = readCount(query, 'offset') ?? 0;
  if (offset > LIMITS.listOffset) throw badRequest(`offset: at most ${LIMITS.listOffset}; page with after instead`);
  const after = readText(query, 'after');
  if (after !== null && !isId(after)) throw badRequest('after: expected the _id of the last entity read');
  const sort = readSort(query);
  if (after !== null && sort !== null) throw badRequest('after: goes with the default order, not with sortBy');
  return {
    offset,
    limit: Math.min(readCount(query, 'limit') ?? LIMITS.listEntities, LIMITS.listEntities),
    after,
    sort,
  };
}

/** A parameter that is given once or not at all; null where it is not. */
export function readText(query: Query, name: string): string | null {
  const value = query[name];
  if (value === undefined) return null;
  if (typeof value !== 'string') throw badRequest(`${name}: given more than once`);
  return value;
}

/** `group=mine`: whatever group the body names, the caller's own is meant. */
export function readIsMine(query: Query): boolean {
  const text = readText(query, 'group');
  if (text === null || text === 'mine') return text !== null;
  throw badRequest('group: expected "mine" in the query; any other group is named in the body');
}

/** A parameter as a whole number from 0 on; null when it is absent. Throws a 400. */
export function readCount(query: Query, name: string): number | null {
  const text = readText(query, name);
  if (text === null) return null;
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`${name}: expected a whole number, 0 or more`);
  return Number(text);
}

/** A bound of an interval, in ms; null where there is none. Throws a 400. */
export function readBound(query: Query, name: string, alias: string): number | null {
  const [given, other] = [readInstant(query, name), readInstant(query, alias)];
  if (given !== null && other !== null && given !== other)
    throw badRequest(`${name} and ${alias}: two different times`);
  return given ?? other;
}

function readInstant(query: Query, name: string): number | null {
  const text = readText(query, name);
  // A form sends the field that was left empty.
  if (text === null || text === '') return null;
  const timeMs = readTime(text);
  if (timeMs === null) throw badRequest(`${name}: expected ms since the epoch or YYYY-MM-DDThh:mm`);
  return timeMs;
}

function readSort(query: Query): Page['sort'] {
  const text = readText(query, 'sortBy');
  if (text === null || text === '') return null;
  const descending = text.startsWith('-');
  const path = descending ? text.slice(1) : text;
  if (!isPath(path)) throw badRequest('sortBy: expected a field name, with - in front for descending');
  return { path, descending };
}

function readSearch(query: Query): string | null {
  const text = readText(query, 'search');
  if (text === null || text === '') return null;
  if (text.length > LIMITS.searchCharacters || !text.isWellFormed()) {
    throw badRequest(`search: expected at most ${LIMITS.searchCharacters} characters of well-formed text`);
  }
  return text;
}

function readFilters(query: Query): Filter[] {
  const names = Object.keys(query).filter((name) => /^where[._]/.test(name));
  if (names.length > LIMITS.whereFilters) throw badRequest(`where: more than ${LIMITS.whereFilters} filters`);
  return names.map((name) => {
    const path = name.slice('where.'.length);
    if (!isPath(path)) throw badRequest(`${JSON.stringify(name.slice(0, 64))}: not a field name`);
    return { path, values: readValues(name, readText(query, name) ?? '') };
  });
}

// A comma list; a part in double quotes is text whatever it looks like, and may hold commas; a lone quote is a character.
function readValues(name: string, text: string): Filter['values'] {
  const parts = text.match(/(?:"[^"]*"|[^,])+|(?<=^|,)(?=,|$)/g) ?? [''];
  if (parts.length > LIMITS.whereValues) throw badRequest(`${name}: more than ${LIMITS.whereValues} values`);
  if (!text.isWellFormed()) throw badRequest(`${name}: not well-formed text`);
  return parts.map((part) => {
    const quoted = /^"([^"]*)"$/.exec(part);
    return quoted ? { value: quoted[1] ?? '', text: quoted[1] ?? '' } : { value: toScalar(part), text: part };
  });
}

function toScalar(text: string): Scalar {
  if (text === 'null') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}
