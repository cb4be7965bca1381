/**
 * The JSON of Telegraf (`outputs.http` with `data_format = "json"`): one metric, `{metrics: […]}`, or a list. Its timestamps are in the
 * unit of `json_timestamp_units`, which their count of digits tells.
 */
import { badRequest } from '../../core/errors.js';
import { isObject, type Json, type JsonObject } from '../../core/json.js';
import { LIMITS } from '../../core/limits.js';
import {
  asObject,
  type Item,
  identifiers,
  parseBody,
  present,
  readEach,
  type SourceKind,
  type SourceRequest,
  toList,
  toTime,
  without,
} from './kind.js';

/** The digits of a time from 2001 to 2286 in ms. */
const MS_DIGITS = 13;

/** Whatever power of ten the unit is, from 10 s to 1 ns, the count of digits tells it. */
function timeOf(timestamp: Json | undefined): Json | undefined {
  const digits = typeof timestamp === 'number' || typeof timestamp === 'string' ? String(timestamp) : '';
  if (!/^[1-9]\d{8,18}$/.test(digits)) return toTime(timestamp);
  return Number(digits.slice(0, MS_DIGITS).padEnd(MS_DIGITS, '0'));
}

const isMetric = (value: unknown): value is JsonObject =>
  isObject(value) && typeof value.name === 'string' && isObject(value.fields);

const metricsIn = (body: unknown): unknown => (isObject(body) && Array.isArray(body.metrics) ? body.metrics : body);

function matches(body: unknown): boolean {
  const metrics = metricsIn(body);
  return Array.isArray(metrics) ? isMetric(metrics[0]) : isMetric(metrics);
}

function readMetric(metric: unknown, { map }: SourceRequest): Item {
  if (!isMetric(metric)) throw badRequest('expected a metric with "name" and "fields"');
  const tags = asObject(metric.tags);
  const name = String(metric.name);
  // Each field repeats it.
  if (name.length > LIMITS.keyCharacters) throw badRequest(`name: more than ${LIMITS.keyCharacters} characters`);
  const values = Object.entries(asObject(metric.fields)).map(([field, value]) => [`${name}.${field}`, value]);
  const others = without(tags, new Set([map.objectTag]));
  const more = { time: timeOf(metric.timestamp), tags: Object.keys(others).length > 0 ? others : undefined };
  return { devices: identifiers(tags[map.objectTag]), packet: { ...Object.fromEntries(values), ...present(more) } };
}

export const telegraf: SourceKind = {
  read(request) {
    const body = parseBody(request);
    if (!matches(body) && !Array.isArray(metricsIn(body))) {
      throw badRequest('the body: expected a metric with "name" and "fields", or {metrics}, as Telegraf sends it');
    }
    return { items: readEach(toList(metricsIn(body)), (one) => readMetric(one, request)), answer: null, resends: true };
  },
  matches,
};
