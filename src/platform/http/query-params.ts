/** Parses query strings. Throws a 400 that names the parameter; ignores unknown parameters. */
import type { Request } from 'express';
import { explainSeconds, parseDuration } from '../../core/duration.js';
import { badRequest } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { distinctPaths, isPath, type Selection, splitList } from '../../core/list.js';
import { type Edge, explainQueryTime, parseQueryTime, parseZonedQueryTime } from '../../core/time.js';
import type { Zone } from '../../core/zone.js';

export type Query = Request['query'];

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
  const fault = explainSeconds(text);
  if (fault !== null) throw badRequest(`${name}: ${fault}`);
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

/**
 * The interval of `from` and `to`, or `begin` and `end`, both ends included; null for one that is absent. What is written without a
 * zone is in UTC, or else in `zone`. Throws a 400.
 */
export const parseInterval = (query: Query, zone: Zone | null = null): Pick<Selection, 'fromMs' | 'toMs'> => ({
  fromMs: parseBound(query, ['from', 'begin'], 'first', zone),
  toMs: parseBound(query, ['to', 'end'], 'last', zone),
});

function parseBound(
  query: Query,
  [name, alias]: readonly [string, string],
  edge: Edge,
  zone: Zone | null,
): number | null {
  const given = parseMoment(query, name, edge, zone);
  const other = parseMoment(query, alias, edge, zone);
  if (given !== null && other !== null && given !== other)
    throw badRequest(`${name} and ${alias}: two different times`);
  return given ?? other;
}

function parseMoment(query: Query, name: string, edge: Edge, zone: Zone | null): number | null {
  const text = parseText(query, name);
  // HTML forms also send empty fields.
  if (text === null || text === '') return null;
  const timeMs = zone === null ? parseQueryTime(text, edge) : parseZonedQueryTime(text, edge, zone);
  if (timeMs === null) throw badRequest(`${name}: ${explainQueryTime(text)}`);
  return timeMs;
}
