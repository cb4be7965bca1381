/** Events of the past as lists, what events there are, and the model of an object: as programs of other platforms ask for them. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { Database } from '../db/connect.js';
import { findObjectIds, getEntity, getSource } from '../db/entities.js';
import { readInTurn } from '../db/lists.js';
import { LAYOUT } from '../db/pages.js';
import { findVisibleObjects, listPastEvents, type PastPage } from '../db/past-events.js';
import { audibleObjects } from '../model/access.js';
import { LIMITS } from '../model/limits.js';
import { nodesOf } from '../model/model.js';
import { PAST_EVENT_NAMES, type PastQuery, placeToText, readPastNames, readPlace } from '../model/past-event.js';
import { builtInStore } from '../model/stores.js';
import { sendEntity, sendJson } from './answer.js';
import { callerOf, scopeIn } from './caller.js';
import { only } from './failure.js';
import { type ListParts, listDatabaseFor } from './lists.js';
import { readBound, readCount, readText } from './query.js';

export interface PastParts extends ListParts {
  readonly database: Database;
}

type Handler = (parts: PastParts) => RequestHandler;

export function createPastRouter(parts: PastParts): Router {
  const router = Router();
  router.route('/events/org').get(names).all(only('GET'));
  router.route('/events').get(ofAll(parts));
  router.route('/objects/:id/events').get(ofOne(parts)).all(only('GET'));
  router.route('/objects/:id/model').get(model(parts)).all(only('GET'));
  return router;
}

// All of them are events of objects: each has a model.
const names: RequestHandler = (_req, res) => {
  sendJson(res, JSON.stringify({ unique: PAST_EVENT_NAMES, noModel: [] }));
};

/** Without an interval it is live events that are asked for. */
const ofAll: Handler = (parts) => async (req, res, next) => {
  const query = readPastQuery(req);
  if (query.fromMs === null && query.toMs === null) {
    next();
    return;
  }
  const named = readText(req.query, 'objects');
  const keys = named ? named.split(',', LIMITS.subscribedObjects).map((key) => key.trim()) : null;
  const audible = audibleObjects(callerOf(res));
  const find = async (): Promise<string[]> => {
    if (keys === null && audible === 'all') return findVisibleObjects(parts.database, scopeIn(res));
    const ids = await findObjectIds(parts.database, scopeIn(res), keys ?? (audible as string[]));
    if (keys === null || audible === 'all') return ids;
    const permitted = new Set(await findObjectIds(parts.database, scopeIn(res), audible));
    return ids.filter((id) => permitted.has(id));
  };
  await answer(parts, req, res, { query, find });
};

const ofOne: Handler = (parts) => async (req, res) => {
  const query = readPastQuery(req);
  const { objectId } = await getSource(parts.database, scopeIn(res), String(req.params.id));
  await answer(parts, req, res, { query, find: async () => [objectId] });
};

function readPastQuery({ query }: Request): PastQuery {
  return {
    fromMs: readBound(query, 'from', 'begin'),
    toMs: readBound(query, 'to', 'end'),
    names: readPastNames(readText(query, 'events'), readText(query, 'events!')),
    after: readPlace(readText(query, 'after')),
    limit: Math.min(readCount(query, 'limit') ?? LIMITS.listEntities, LIMITS.listEntities),
  };
}

async function answer(
  parts: PastParts,
  req: Request,
  res: Response,
  { query, find }: { query: PastQuery; find: () => Promise<string[]> },
): Promise<void> {
  const read = async (database: Database): Promise<PastPage> => listPastEvents(database, await find(), query);
  const { events, next } = await readInTurn([listDatabaseFor(parts, req, res)], 'scan', read);
  if (next !== null) {
    const [path, search] = req.originalUrl.split('?', 2);
    const after = new URLSearchParams(search);
    after.set('after', placeToText(next));
    res.setHeader('Link', `<${path}?${after}>; rel="next"`);
  }
  const between = Buffer.from(LAYOUT.between);
  const pieces = events.flatMap(({ json }, at) => (at === 0 ? [json] : [between, json]));
  const body = [Buffer.from(LAYOUT.begin), ...pieces, Buffer.from(LAYOUT.end)];
  sendJson(res, events.length === 0 ? LAYOUT.empty : Buffer.concat(body));
}

/** The model, with what it declares also as plain lists. */
const model: Handler = (parts) => async (req, res) => {
  const { modelId } = await getSource(parts.database, scopeIn(res), String(req.params.id));
  const found = await getEntity(parts.database, builtInStore('models'), scopeIn(res), modelId);
  const declared = { _arguments: nodesOf(found.data, 'argument'), _actions: nodesOf(found.data, 'action') };
  sendEntity(res, { ...found, ...declared, _configs: nodesOf(found.data, 'config') });
};
