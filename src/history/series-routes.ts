/** Routes: the values of objects' parameters over time, in columns. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import { mayCall } from '../core/access.js';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { splitList } from '../core/list.js';
import { getSource } from '../packets/source.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { ENTITY_KEY, INTERVAL_QUERY } from '../platform/http/parameters.js';
import { parseCount, parseInterval, parseText } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import { defineRoute, type Parameter } from '../platform/http/route.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { readHistory } from '../platform/mongo/driver/list-queue.js';
import { findObjectId } from '../platform/mongo/schema/lookup.js';
import { COUNTER_BITS } from './series/counter.js';
import { parseSeriesQuery, type SeriesQuery } from './series/query.js';
import { readSeries } from './series.js';
import { toSeriesBody, toSeriesListBody } from './series-body.js';
import { tellInterval } from './told-interval.js';

export interface SeriesDeps extends ListDeps {
  readonly database: Database;
  readonly now: () => number;
}

const VALUES = z
  .union([z.null(), z.record(z.string(), z.array(z.number().nullable())).meta({ minProperties: 1 })])
  .describe('The numbers of each function, one for each bucket; `null` where the parameter has no value');
const BUCKETS = z.array(z.int()).describe('The beginning of each bucket, in milliseconds since the epoch');

const SERIES_QUERY = {
  params: {
    schema: z.array(z.string()).max(LIMITS.seriesParameters),
    example: ['speed', 'fuel'],
    isRequired: true,
    description:
      'The parameters; nested ones are possible (`engine.rpm`), and patterns with `*` (`temp*`, `engine.*`). A name with a comma or ' +
      'an asterisk stands in double quotes',
  },
  ...INTERVAL_QUERY,
  points: {
    schema: z.int().min(1).max(LIMITS.seriesPointsMax).default(LIMITS.seriesPoints),
    example: 1_000,
    description: 'The maximal number of buckets, which are equally long; not with `every`',
  },
  every: {
    schema: z.string().meta({ examples: ['1 h'] }),
    // Empty: programs send all examples at once, and `points` is one of them.
    example: '',
    description:
      'The length of the buckets, such as `15 min`, `1 h`, `1 day`, `1 week` or `3 months`, by the clock of `tz`; not with `points`',
  },
  tz: { schema: z.string().default('UTC'), example: 'Europe/Berlin', description: 'The time zone of `every`' },
  fn: {
    schema: z.array(z.string()).max(LIMITS.seriesFunctions),
    example: ['minmax'],
    description:
      'The functions: `minmax` (the default: `first`, `last`, `min` and `max`), one of these four, `avg`, `sum`, `count`, ' +
      '`p1` to `p99`, `time-weighted-avg`, `increase`, `rate`, `derivative`, `duration`, `duration:<value>`',
  },
  gap: {
    component: 'seriesGap',
    schema: z.string(),
    example: '10 min',
    description:
      'How long a value holds: a duration. A bucket without a value has the value that holds at its beginning',
  },
  wrap: {
    schema: z.enum([...COUNTER_BITS.keys()]),
    example: '32',
    description:
      'The bits of a counter that continues at 0 after its largest value, for `increase` and `rate`. By default, a counter that falls was restarted at 0',
  },
} satisfies Record<string, Parameter>;

const getSeries = defineRoute({
  method: 'GET',
  path: '/api/v1/objects/:id/series',
  name: 'getSeries',
  tag: 'packets',
  summary: 'The history of parameters of an object, in buckets',
  docs: 'The [history of parameters](history.md#series) of an object, in buckets',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: SERIES_QUERY,
  answer: {
    description: 'One column of numbers for each function of each parameter',
    schema: z.object({ time: BUCKETS }).catchall(VALUES),
    headers: ['X-Interval'],
  },
  errors: [404, 413],
  handle: (deps: SeriesDeps) => async (req, res) => {
    const query = seriesQueryOf(req);
    const { objectId } = await getSource(deps.database, scopeIn(res), String(req.params.id));
    const series = await read(deps, req, res, { query, objectIds: [objectId] });
    tellInterval(res, query, series.interval);
    sendJson(res, await toSeriesBody(query, series));
  },
});

/** Objects that the caller cannot see or read give null, like unknown ones. */
const getSeriesOfObjects = defineRoute({
  method: 'GET',
  path: '/api/v1/series',
  name: 'getSeriesOfObjects',
  tag: 'packets',
  summary: 'The same for several objects',
  docs: 'The same for several objects: `objects` names them',
  auth: 'caller',
  limit: 'list',
  query: {
    objects: {
      component: 'seriesObjects',
      schema: z.array(z.string()).max(LIMITS.seriesObjects),
      example: ['truck-7'],
      isRequired: true,
      description: 'The objects, by `_id` or own `id`',
    },
    ...SERIES_QUERY,
  },
  answer: {
    description: 'The same for each object',
    schema: z.strictObject({
      time: BUCKETS,
      objects: z
        .record(z.string(), z.union([z.null(), z.record(z.string(), VALUES)]))
        .describe('By the key that names the object; `null` where the caller does not see it'),
    }),
    headers: ['X-Interval'],
  },
  errors: [403, 413],
  handle: (deps: SeriesDeps) => async (req, res) => {
    const query = seriesQueryOf(req);
    const keys = parseKeys(req);
    const caller = callerOf(res);
    const find = async (key: string): Promise<string | null> =>
      mayCall(caller, 'GET', ['objects', key, 'series']) ? findObjectId(deps.database, scopeIn(res), key) : null;
    const found = new Map(await Promise.all(keys.map(async (key) => [key, await find(key)] as const)));
    const objectIds = [...new Set(found.values())].filter((id) => id !== null);
    const series = await read(deps, req, res, { query, objectIds });
    tellInterval(res, query, series.interval);
    sendJson(res, await toSeriesListBody(query, series, found));
  },
});

export const SERIES_ROUTES = [getSeries, getSeriesOfObjects];

function parseKeys({ query }: Request): string[] {
  const text = parseText(query, 'objects') ?? '';
  const keys = [...new Set(splitList(text))].filter((key) => key !== '');
  if (keys.length === 0) throw badRequest('objects: expected the _id or own id of objects, separated by commas');
  if (keys.length > LIMITS.seriesObjects) throw badRequest(`objects: more than ${LIMITS.seriesObjects}`);
  return keys;
}

const seriesQueryOf = ({ query }: Request): SeriesQuery =>
  parseSeriesQuery({
    params: parseText(query, 'params'),
    points: parseCount(query, 'points'),
    every: parseText(query, 'every'),
    tz: parseText(query, 'tz'),
    fn: parseText(query, 'fn'),
    gap: parseText(query, 'gap'),
    wrap: parseText(query, 'wrap'),
    ...parseInterval(query),
  });

const read = (
  deps: SeriesDeps,
  req: Request,
  res: Response,
  { query, objectIds }: { query: SeriesQuery; objectIds: readonly string[] },
) =>
  readHistory(listDatabaseFor(deps, req, res), (database) =>
    readSeries(database, objectIds, { query, nowMs: deps.now() }),
  );
