/** Routes: past events as lists, the event names, and the model of an object, compatible with programs for other platforms. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import { addressesOf, mayCall, permittedObjects } from '../core/access.js';
import { isAlarmEvent } from '../core/event-names.js';
import { LIMITS } from '../core/limits.js';
import { splitList } from '../core/list.js';
import { nodesOf } from '../core/model.js';
import { builtInStore } from '../core/stores.js';
import { findObjectIds } from '../entities/object-ids.js';
import { getStored } from '../entities/read.js';
import { getSource } from '../packets/source.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { LIST_QUERY } from '../platform/http/list-params.js';
import { ENTITY_KEY, INTERVAL_QUERY } from '../platform/http/parameters.js';
import { parseCount, parseInterval, parseText } from '../platform/http/query-params.js';
import { sendEntity, sendJson, toAddress } from '../platform/http/responses.js';
import { defineRoute, type Parameter } from '../platform/http/route.js';
import { ANY_OBJECT, every, named, SUCCESS, TIME } from '../platform/http/schema.js';
import { LAYOUT } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { PAST_EVENT_NAMES, type PastQuery, parsePastNames, parsePlace, placeToText } from './past-event.js';
import { findVisibleObjects, listPastEvents, type PastPage } from './past-events.js';

export interface PastEventDeps extends ListDeps {
  readonly database: Database;
}

/** A list of past events. */
export const PAST_EVENTS = z.array(
  z.object({
    event: z.enum(PAST_EVENT_NAMES),
    data: ANY_OBJECT,
    position: z.string().optional(),
    time: TIME,
  }),
);

/** Which events, by name. */
export const EVENTS_PARAMETER: Parameter = {
  schema: z.array(z.enum(PAST_EVENT_NAMES)),
  example: ['object-packet'],
  description: 'Only events with these names; `object-online` and `object-offline` only with an interval',
};
export const EXCLUDED_EVENTS_PARAMETER: Parameter = {
  component: 'exclude',
  schema: z.array(z.string()),
  example: ['object-update'],
  description: 'With an interval: excludes events with these names',
};

/** The page of an interval. */
export const PAST_PAGE_QUERY = {
  limit: LIST_QUERY.limit,
  after: {
    component: 'afterPlace',
    schema: z.string(),
    example: '1795184145549.1795184145549000.65a00000000000000000000a',
    description: 'With an interval: the value from `Link`; returns the next page',
  },
} satisfies Record<string, Parameter>;

const listEventNames = defineRoute({
  method: 'GET',
  path: '/api/v1/events/org',
  name: 'listEventNames',
  tag: 'events',
  summary: 'The names of events; `noModel` lists the events that belong to no object',
  docs: 'The names of [events](history.md#events-of-the-past): `{unique, noModel}`; `noModel` lists the events that belong to no object',
  auth: 'caller',
  limit: 'request',
  answer: {
    description: 'The names, which never change',
    schema: z.object({ unique: z.array(z.string()), noModel: z.array(z.string()) }),
  },
  errors: [403],
  // All events concern objects, which have a model: `noModel` is empty.
  handle: () => (_req, res) => {
    sendJson(res, JSON.stringify({ unique: PAST_EVENT_NAMES, noModel: [] }));
  },
});

const listEventsOfObject = defineRoute({
  method: 'GET',
  path: '/api/v1/objects/:id/events',
  name: 'listEventsOfObject',
  tag: 'events',
  summary: 'The past events of an object',
  docs: 'The [past events](history.md#events-of-the-past) of an object',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: {
    ...INTERVAL_QUERY,
    events: EVENTS_PARAMETER,
    'events!': EXCLUDED_EVENTS_PARAMETER,
    ...PAST_PAGE_QUERY,
  },
  answer: { description: 'The events, sorted by `time`', schema: PAST_EVENTS, headers: ['Link'] },
  errors: [404],
  handle: (deps: PastEventDeps) => async (req, res) => {
    const query = parsePastQuery(req);
    const { objectId } = await getSource(deps.database, scopeIn(res), String(req.params.id));
    await sendEvents(deps, req, res, { query, find: async () => [objectId], isAll: false });
  },
});

const NODES = z.array(ANY_OBJECT).describe('Nodes of `data`, without their children');

/** The model, with its declared arguments, actions and configurations also as flat lists. */
const getModelOfObject = defineRoute({
  method: 'GET',
  path: '/api/v1/objects/:id/model',
  name: 'getModelOfObject',
  tag: 'objects',
  summary: 'The model of an object, with its declarations as plain lists',
  docs: "The object's model. The plain lists `_arguments`, `_actions` and `_configs` contain its declarations",
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  answer: {
    description: 'The model',
    schema: every(named('Model'), SUCCESS, z.object({ _arguments: NODES, _actions: NODES, _configs: NODES })),
  },
  errors: [404],
  handle: (deps: PastEventDeps) => async (req, res) => {
    const { modelId } = await getSource(deps.database, scopeIn(res), String(req.params.id));
    // Who sees an object sees its model.
    const found = await getStored(deps.database, builtInStore('models'), modelId);
    const declared = { _arguments: nodesOf(found.data, 'argument'), _actions: nodesOf(found.data, 'action') };
    sendEntity(res, { ...found, ...declared, _configs: nodesOf(found.data, 'config') });
  },
});

export const PAST_EVENT_ROUTES = [listEventNames, listEventsOfObject, getModelOfObject];

/** Answers a request for the past events of all objects. Returns false if the request has no interval: it asks for live events. */
export async function sendPastEvents(deps: PastEventDeps, req: Request, res: Response): Promise<boolean> {
  const query = parsePastQuery(req);
  if (query.fromMs === null && query.toMs === null) return false;
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
  return true;
}

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
  const names = mayCall(callerOf(res), 'GET', ['alarms'])
    ? query.names
    : new Set([...query.names].filter((name) => !isAlarmEvent(name)));
  const read = async (database: Database): Promise<PastPage> =>
    listPastEvents(database, { objectIds: await find(), isAll, addresses }, { ...query, names });
  const { events, next } = await runList([listDatabaseFor(deps, req, res)], 'past', read);
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
