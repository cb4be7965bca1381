/** Routes: the values of objects' parameters over time, in columns. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { mayCall } from '../core/access.js';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { splitList } from '../core/list.js';
import { getSource } from '../packets/source.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { parseCount, parseInterval, parseText } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { readHistory } from '../platform/mongo/driver/list-queue.js';
import { findObjectId } from '../platform/mongo/schema/lookup.js';
import { parseSeriesQuery, type SeriesQuery } from './series/query.js';
import { readSeries } from './series.js';
import { toSeriesBody, toSeriesListBody } from './series-body.js';

export interface SeriesDeps extends ListDeps {
  readonly database: Database;
  readonly now: () => number;
}

type Handler = (deps: SeriesDeps) => RequestHandler;

export function createSeriesRouter(deps: SeriesDeps): Router {
  const router = Router();
  router.route('/objects/:id/series').get(ofOne(deps)).all(allowMethods('GET'));
  router.route('/series').get(ofMany(deps)).all(allowMethods('GET'));
  return router;
}

const ofOne: Handler = (deps) => async (req, res) => {
  const query = seriesQueryOf(req);
  const { objectId } = await getSource(deps.database, scopeIn(res), String(req.params.id));
  const series = await read(deps, req, res, { query, objectIds: [objectId] });
  sendJson(res, await toSeriesBody(query, series));
};

/** Objects that the caller cannot see or read give null, like unknown ones. */
const ofMany: Handler = (deps) => async (req, res) => {
  const query = seriesQueryOf(req);
  const keys = parseKeys(req);
  const caller = callerOf(res);
  const find = async (key: string): Promise<string | null> =>
    mayCall(caller, 'GET', ['objects', key, 'series']) ? findObjectId(deps.database, scopeIn(res), key) : null;
  const found = new Map(await Promise.all(keys.map(async (key) => [key, await find(key)] as const)));
  const objectIds = [...new Set(found.values())].filter((id) => id !== null);
  const series = await read(deps, req, res, { query, objectIds });
  sendJson(res, await toSeriesListBody(query, series, found));
};

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
