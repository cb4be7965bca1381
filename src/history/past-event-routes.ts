/** Routes: past events as lists, the event names, and the model of an object, compatible with programs for other platforms. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { addressesOf, permittedObjects } from '../core/access.js';
import { LIMITS } from '../core/limits.js';
import { splitList } from '../core/list.js';
import { nodesOf } from '../core/model.js';
import { builtInStore } from '../core/stores.js';
import { findObjectIds, getEntity } from '../entities/read.js';
import { getSource } from '../packets/source.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { parseCount, parseInterval, parseText } from '../platform/http/query-params.js';
import { sendEntity, sendJson, toAddress } from '../platform/http/responses.js';
import { LAYOUT } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { PAST_EVENT_NAMES, type PastQuery, parsePastNames, parsePlace, placeToText } from './past-event.js';
import { findVisibleObjects, listPastEvents, type PastPage } from './past-events.js';

export interface PastEventDeps extends ListDeps {
  readonly database: Database;
}

type Handler = (deps: PastEventDeps) => RequestHandler;

export function createPastEventRouter(deps: PastEventDeps): Router {
  const router = Router();
  router.route('/events/org').get(names).all(allowMethods('GET'));
  router.route('/events').get(ofAll(deps));
  router.route('/objects/:id/events').get(ofOne(deps)).all(allowMethods('GET'));
  router.route('/objects/:id/model').get(model(deps)).all(allowMethods('GET'));
  return router;
}

// All events concern objects, which have a model: `noModel` is empty.
const names: RequestHandler = (_req, res) => {
  sendJson(res, JSON.stringify({ unique: PAST_EVENT_NAMES, noModel: [] }));
};

/** A request without an interval asks for live events and goes to the next handler. */
const ofAll: Handler = (deps) => async (req, res, next) => {
  const query = parsePastQuery(req);
  if (query.fromMs === null && query.toMs === null) {
    next();
    return;
  }
  const named = parseText(req.query, 'objects');
  const keys = named ? splitList(named).slice(0, LIMITS.subscribedObjects) : null;
  const permitted = permittedObjects(callerOf(res));
  const find = async (): Promise<string[]> => {
    if (keys === null && permitted === 'all') return findVisibleObjects(deps.database, scopeIn(res));
    const ids = await findObjectIds(deps.database, scopeIn(res), keys ?? (permitted as string[]));
    if (keys === null || permitted === 'all') return ids;
    const permittedIds = new Set(await findObjectIds(deps.database, scopeIn(res), permitted));
    return ids.filter((id) => permittedIds.has(id));
  };
  await sendEvents(deps, req, res, { query, find, isAll: keys === null && permitted === 'all' });
};

const ofOne: Handler = (deps) => async (req, res) => {
  const query = parsePastQuery(req);
  const { objectId } = await getSource(deps.database, scopeIn(res), String(req.params.id));
  await sendEvents(deps, req, res, { query, find: async () => [objectId], isAll: false });
};

function parsePastQuery({ query }: Request): PastQuery {
  return {
    ...parseInterval(query),
    names: parsePastNames(parseText(query, 'events'), parseText(query, 'events!')),
    after: parsePlace(parseText(query, 'after')),
    limit: Math.min(parseCount(query, 'limit') ?? LIMITS.listEntities, LIMITS.listEntities),
  };
}

async function sendEvents(
  deps: PastEventDeps,
  req: Request,
  res: Response,
  { query, find, isAll }: { query: PastQuery; find: () => Promise<string[]>; isAll: boolean },
): Promise<void> {
  const addresses = addressesOf(scopeIn(res));
  const read = async (database: Database): Promise<PastPage> =>
    listPastEvents(database, { objectIds: await find(), isAll, addresses }, query);
  const { events, next } = await runList([listDatabaseFor(deps, req, res)], 'scan', read);
  if (next !== null) {
    const [path, search] = req.originalUrl.split('?', 2);
    const after = new URLSearchParams(search);
    after.set('after', placeToText(next));
    res.setHeader('Link', `<${toAddress(req, `${path}?${after}`)}>; rel="next"`);
  }
  const between = Buffer.from(LAYOUT.between);
  const pieces = events.flatMap(({ json }, index) => (index === 0 ? [json] : [between, json]));
  const body = [Buffer.from(LAYOUT.begin), ...pieces, Buffer.from(LAYOUT.end)];
  sendJson(res, events.length === 0 ? LAYOUT.empty : Buffer.concat(body));
}

/** The model, with its declared arguments, actions and configurations also as flat lists. */
const model: Handler = (deps) => async (req, res) => {
  const { modelId } = await getSource(deps.database, scopeIn(res), String(req.params.id));
  const found = await getEntity(deps.database, builtInStore('models'), scopeIn(res), modelId);
  const declared = { _arguments: nodesOf(found.data, 'argument'), _actions: nodesOf(found.data, 'action') };
  sendEntity(res, { ...found, ...declared, _configs: nodesOf(found.data, 'config') });
};
