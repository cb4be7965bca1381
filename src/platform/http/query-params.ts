/** Parses query strings. Throws a 400 that names the parameter; ignores unknown parameters. */
import type { Request } from 'express';
import { parseDuration } from '../../core/duration.js';
import { isId } from '../../core/entity.js';
import { badRequest } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import {
  distinctPaths,
  type Filter,
  isPath,
  type ListQuery,
  type Page,
  type Scalar,
  type Selection,
  splitList,
  splitQuoted,
} from '../../core/list.js';
import { type Edge, explainQueryTime, parseQueryTime } from '../../core/time.js';

type Query = Request['query'];

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

/** The fields of `only`; null for all fields. */
export function parseFields(query: Query): string[] | null {
  const text = parseText(query, 'only');
  if (text === null || text === '') return null;
  const paths = splitList(text);
  if (paths.length > LIMITS.onlyNames) throw badRequest(`only: more than ${LIMITS.onlyNames} names`);
  const wrong = paths.find((path) => !isPath(path));
  if (wrong !== undefined) throw badRequest(`only: ${JSON.stringify(wrong.slice(0, 64))} is not a field name`);
  return distinctPaths(paths);
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

/** An optional parameter; null if it is absent. Throws a 400 if it is given more than once. */
export function parseText(query: Query, name: string): string | null {
  const value = query[name];
  if (value === undefined) return null;
  if (typeof value !== 'string') throw badRequest(`${name}: given more than once`);
  return value;
}

/** `group=mine` selects the caller's own group, whatever group the body names. */
export function parseIsMine(query: Query): boolean {
  const text = parseText(query, 'group');
  if (text === null || text === 'mine') return text !== null;
  throw badRequest('group: expected "mine" in the query; any other group is named in the body');
}

/** Whether the request only reports what it would do. A misspelled `dryRun` is refused, because it would change data. */
export function parseDryRun(query: Query): boolean {
  const wrong = Object.keys(query).find((name) => name !== 'dryRun' && /^dry[-_ ]?run$/i.test(name));
  if (wrong !== undefined) throw badRequest(`${wrong}: is spelled dryRun`);
  return parseFlag(query, 'dryRun');
}

/** A parameter that is true or false; false when it is absent. Throws a 400. */
export function parseFlag(query: Query, name: string): boolean {
  const text = parseText(query, name);
  if (text === 'true' || text === '1') return true;
  if (text === null || text === 'false' || text === '0') return false;
  throw badRequest(`${name}: expected true or false`);
}

/** A parameter that is a duration, in ms; `usualMs` when it is absent. Throws a 400. */
export function parseDurationParam(query: Query, name: string, usualMs: number): number {
  const text = parseText(query, name);
  if (text === null || text === '') return usualMs;
  const ms = parseDuration(text);
  if (ms === null || ms <= 0) throw badRequest(`${name}: expected a duration, such as "15 min", or milliseconds`);
  return ms;
}

/** A parameter as a whole number from 0 on; null when it is absent. Throws a 400. */
export function parseCount(query: Query, name: string): number | null {
  const text = parseText(query, name);
  if (text === null) return null;
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`${name}: expected a whole number, 0 or more`);
  return Number(text);
}

/** The interval of `from` and `to`, or `begin` and `end`, both ends included; null for one that is absent. Throws a 400. */
export const parseInterval = (query: Query): Pick<Selection, 'fromMs' | 'toMs'> => ({
  fromMs: parseBound(query, ['from', 'begin'], 'first'),
  toMs: parseBound(query, ['to', 'end'], 'last'),
});

function parseBound(query: Query, [name, alias]: readonly [string, string], edge: Edge): number | null {
  const given = parseMoment(query, name, edge);
  const other = parseMoment(query, alias, edge);
  if (given !== null && other !== null && given !== other)
    throw badRequest(`${name} and ${alias}: two different times`);
  return given ?? other;
}

function parseMoment(query: Query, name: string, edge: Edge): number | null {
  const text = parseText(query, name);
  // HTML forms also send empty fields.
  if (text === null || text === '') return null;
  const timeMs = parseQueryTime(text, edge);
  if (timeMs === null) throw badRequest(`${name}: ${explainQueryTime(text)}`);
  return timeMs;
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
  const text = parseText(query, 'search');
  if (text === null || text === '') return null;
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
  return items.map((item) => ({ value: item.isQuoted ? item.text : toScalar(item.text), text: item.text }));
}

function toScalar(text: string): Scalar {
  if (text === 'null') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}
