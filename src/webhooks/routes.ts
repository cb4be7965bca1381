/** Webhooks beside the generic routes of handlers: what was delivered, again, a test, another secret. */
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { Entity } from '../core/entity.js';
import { conflict } from '../core/errors.js';
import { type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import { getChangeable } from '../entities/write.js';
import type { Requester } from '../packets/removals.js';
import type { FairQueue } from '../platform/fair-queue.js';
import { type BodyDeps, jsonBody } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { parseListQuery } from '../platform/http/query-params.js';
import { sendEntity, sendJson, sendPage } from '../platform/http/responses.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { listDeliveries, retryDelivery, summarizeDeliveries } from './delivery-lists.js';
import { editorOf } from './handler-hooks.js';
import { rotateSecret } from './handlers.js';
import { parseReplay, type ReplayRange, toRangeFields, toRangeTexts } from './replay.js';

export interface WebhookDeps extends ListDeps, BodyDeps {
  readonly database: Database;
  readonly createSecret: () => string;
  /** Sends a signed request to the receiver of a handler; null where it is no webhook. */
  readonly sendTest: (handlerId: string) => Promise<JsonObject | null>;
  /** Has events of the past sent to a handler; false where it is no webhook. */
  readonly requestReplay: (request: { handlerId: string; range: ReplayRange; by: Requester }) => Promise<boolean>;
  readonly webhookTestQueue: FairQueue;
  readonly now: () => number;
}

type Handler = (deps: WebhookDeps) => RequestHandler;

const NO_WEBHOOK = 'the handler has no url, or no secret: POST /handlers/:id/secret creates one';
const HANDLERS = builtInStore('handlers');

export function createWebhookRouter(deps: WebhookDeps): Router {
  const router = Router();
  const post = (path: string, handler: RequestHandler): void => {
    router
      .route(path)
      .post(jsonBody(LIMITS.entityBodyBytes, deps, handler))
      .all(allowMethods('POST'));
  };
  router.route('/handlers/:id/deliveries').get(list(deps)).all(allowMethods('GET'));
  post('/handlers/:id/deliveries/:deliveryID/retry', retry(deps));
  post('/handlers/:id/test', test(deps));
  post('/handlers/:id/replay', replay(deps));
  post('/handlers/:id/secret', rotate(deps));
  return router;
}

const getOwn = ({ database }: WebhookDeps, req: Request, res: Response): Promise<Entity> =>
  getChangeable(database, HANDLERS, scopeIn(res), String(req.params.id));

const list: Handler = (deps) => async (req, res) => {
  const query = parseListQuery(req.query);
  const { _id } = await getEntity(deps.database, HANDLERS, scopeIn(res), String(req.params.id));
  const database = listDatabaseFor(deps, req, res);
  if (query.kind === 'summary') sendJson(res, await summarizeDeliveries(database, _id, query));
  else sendPage(req, res, query, await listDeliveries(database, _id, query));
};

const retry: Handler = (deps) => async (req, res) => {
  const { _id: handlerId } = await getOwn(deps, req, res);
  const named = { handlerId, deliveryId: String(req.params.deliveryID) };
  sendEntity(res, await retryDelivery(deps.database, named, deps.now()));
};

const test: Handler = (deps) => async (req, res) => {
  const { _id } = await getOwn(deps, req, res);
  const sent = await deps.webhookTestQueue.run(callerOf(res).userId, () => deps.sendTest(_id));
  if (sent === null) throw conflict(NO_WEBHOOK);
  sendEntity(res, sent);
};

const replay: Handler = (deps) => async (req, res) => {
  const range = parseReplay(parseObject(req.body ?? {}), deps.now());
  const { _id } = await getOwn(deps, req, res);
  const { userId, login } = callerOf(res);
  const by = { userId, login, address: req.ip ?? 'unknown', requestId: res.locals.requestId as string };
  const request = { handlerId: _id, range, by: { ...by, method: 'POST', path: `/handlers/${_id}/replay` } };
  if (!(await deps.requestReplay(request))) throw conflict(NO_WEBHOOK);
  res.locals.action = 'webhook replay requested';
  res.locals.entityId = _id;
  res.locals.fields = toRangeTexts(range);
  sendEntity(res, { handler: _id, ...toRangeFields(range), status: 'queued' });
};

const rotate: Handler = (deps) => async (req, res) => {
  const { _id } = await getOwn(deps, req, res);
  const secret = deps.createSecret();
  const untilMs = deps.now() + LIMITS.webhookSecretOverlapMs;
  await rotateSecret(deps.database, _id, { secret, untilMs, editor: editorOf(callerOf(res)) });
  res.locals.entityId = _id;
  sendEntity(res, { secret });
};
