/** Webhooks beside the generic routes of handlers: what was delivered, again, a test, another secret. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { Entity } from '../core/entity.js';
import { conflict } from '../core/errors.js';
import { WEBHOOK_EVENTS } from '../core/event-names.js';
import { type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import { getChangeable } from '../entities/write.js';
import type { Requester } from '../packets/removals.js';
import type { FairQueue } from '../platform/fair-queue.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { LIST_QUERY, parseListQuery } from '../platform/http/list-params.js';
import { ENTITY_KEY, idParameter } from '../platform/http/parameters.js';
import { sendEntity, sendJson, sendPage } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { ANY_OBJECT, COUNT, every, literal, SUCCESS, TIME } from '../platform/http/schema.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { listDeliveries, retryDelivery, summarizeDeliveries } from './delivery-lists.js';
import { editorOf } from './handler-hooks.js';
import { resumeHandler, rotateSecret } from './handlers.js';
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

const NO_WEBHOOK = 'the handler has no url, or no secret: POST /handlers/:id/secret creates one';
const HANDLERS = builtInStore('handlers');

const getOwn = ({ database }: WebhookDeps, req: Request, res: Response): Promise<Entity> =>
  getChangeable(database, HANDLERS, scopeIn(res), String(req.params.id));

const OBJECT_ID = z.string().regex(/^[0-9a-f]{24}$/);
const STATUS = z.int().nullable().describe('The HTTP status of the last answer, if there was one');
const ERROR = z.string().nullable().describe('Why there was no answer, or the address that it redirects to');
const ANSWER = z.string().describe('The beginning of the last answer');
const MS = z.int().describe('The duration of the last attempt');

const DELIVERY = z
  .strictObject({
    _id: OBJECT_ID.describe('`webhook-id` is `msg_` and this'),
    handler: OBJECT_ID,
    object: OBJECT_ID,
    event: z.enum(WEBHOOK_EVENTS),
    state: z.enum(['pending', 'delivered', 'dead', 'withheld']),
    attempts: z.int(),
    time: TIME,
    last: z.int().describe('The time of the last attempt'),
    next: z.int().describe('The time of the next attempt after a failure'),
    bytes: z.int().describe('The size of the message'),
    batch: z.string().nullable().describe('The batch with which it was sent'),
    replayed: z.literal(true).describe('Sent because of a replay'),
    status: STATUS,
    error: ERROR,
    answer: ANSWER,
    ms: MS,
  })
  .partial()
  .required({ _id: true });

const DELIVERY_OR_NULL = z.union([DELIVERY, z.null()]);

const HANDLER = { id: ENTITY_KEY };
const NOTHING = { schema: ANY_OBJECT.describe('Nothing'), example: {}, limitBytes: LIMITS.entityBodyBytes };

const list = defineRoute({
  method: 'GET',
  path: '/api/v1/handlers/:id/deliveries',
  name: 'listDeliveries',
  tag: 'handlers',
  summary: 'The messages of a webhook',
  docs: 'The [messages of a webhook](webhooks.md#messages-of-a-webhook), with the list parameters',
  auth: 'permission',
  limit: 'list',
  params: HANDLER,
  query: LIST_QUERY,
  answer: {
    description: 'The messages, sorted by `_id`',
    schema: z.union([
      z.array(DELIVERY),
      z.strictObject({ count: COUNT, first: DELIVERY_OR_NULL, last: DELIVERY_OR_NULL }),
    ]),
    headers: ['Link'],
  },
  errors: [404, 413],
  handle: (deps: WebhookDeps) => async (req, res) => {
    const query = parseListQuery(req.query);
    const { _id } = await getEntity(deps.database, HANDLERS, scopeIn(res), String(req.params.id));
    const database = listDatabaseFor(deps, req, res);
    if (query.kind === 'summary') sendJson(res, await summarizeDeliveries(database, _id, query));
    else sendPage(req, res, query, await listDeliveries(database, _id, query));
  },
});

const retry = defineRoute({
  method: 'POST',
  path: '/api/v1/handlers/:id/deliveries/:deliveryID/retry',
  name: 'retryDelivery',
  tag: 'handlers',
  summary: 'Sends a message again',
  auth: 'permission',
  limit: 'request',
  params: { ...HANDLER, deliveryID: idParameter('The `_id` of the message') },
  body: NOTHING,
  answer: {
    description: 'The message, which is `pending`',
    schema: DELIVERY.extend({ success: z.literal(true).optional() }),
  },
  errors: [404, 409],
  handle: (deps: WebhookDeps) => async (req, res) => {
    const { _id: handlerId } = await getOwn(deps, req, res);
    const named = { handlerId, deliveryId: String(req.params.deliveryID) };
    const message = await retryDelivery(deps.database, named, deps.now());
    await resumeHandler(deps.database, handlerId, deps.now());
    sendEntity(res, message);
  },
});

const test = defineRoute({
  method: 'POST',
  path: '/api/v1/handlers/:id/test',
  name: 'testHandler',
  tag: 'handlers',
  summary: 'Sends a signed test message, and returns the answer of the receiver',
  docs: 'Sends a signed test message; returns the answer of the receiver',
  auth: 'permission',
  limit: 'request',
  params: HANDLER,
  body: NOTHING,
  answer: {
    description: 'The answer of the receiver',
    schema: every(SUCCESS, z.object({ id: z.string(), status: STATUS, error: ERROR, answer: ANSWER, ms: MS })),
  },
  errors: [404, 409],
  handle: (deps: WebhookDeps) => async (req, res) => {
    const { _id } = await getOwn(deps, req, res);
    const sent = await deps.webhookTestQueue.run(callerOf(res).userId, () => deps.sendTest(_id));
    if (sent === null) throw conflict(NO_WEBHOOK);
    sendEntity(res, sent);
  },
});

const GIVEN_TIME = literal({ type: ['integer', 'string'] });

const replay = defineRoute({
  method: 'POST',
  path: '/api/v1/handlers/:id/replay',
  name: 'replayHandler',
  tag: 'handlers',
  summary: 'Sends events of the past to a webhook, in the background',
  docs: 'Sends [events of the past](webhooks.md#replay) to a webhook: `{since}` or `{from, to}`',
  auth: 'permission',
  limit: 'request',
  params: HANDLER,
  body: {
    schema: z
      .object({
        since: z.string().describe('The position of an event: all events after it'),
        from: GIVEN_TIME.describe(
          'The packets from this time on, by their `time`: milliseconds since the epoch, or ISO 8601',
        ),
        to: GIVEN_TIME.describe(
          'Until this time, included: milliseconds since the epoch, or ISO 8601, where a day means its end; now without it',
        ),
      })
      .partial(),
    example: { from: '2026-01-01T00:00' },
    isRequired: true,
    limitBytes: LIMITS.entityBodyBytes,
  },
  answer: {
    description: 'The replay is stored, and begins soon',
    schema: every(
      SUCCESS,
      z
        .object({ handler: OBJECT_ID, status: z.literal('queued'), since: z.string(), from: TIME, to: TIME })
        .partial({ since: true, from: true, to: true }),
    ),
  },
  errors: [404, 409],
  handle: (deps: WebhookDeps) => async (req, res) => {
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
  },
});

const rotate = defineRoute({
  method: 'POST',
  path: '/api/v1/handlers/:id/secret',
  name: 'rotateSecret',
  tag: 'handlers',
  summary: 'Creates a new secret; the previous one stays valid for 24 hours',
  docs: 'Creates a new secret of a webhook and returns it',
  auth: 'permission',
  limit: 'request',
  params: HANDLER,
  body: NOTHING,
  answer: {
    description: 'The secret',
    schema: every(SUCCESS, z.object({ secret: z.string().describe('The new secret; Vigil does not show it again') })),
  },
  errors: [404, 409],
  handle: (deps: WebhookDeps) => async (req, res) => {
    const { _id } = await getOwn(deps, req, res);
    const secret = deps.createSecret();
    const untilMs = deps.now() + LIMITS.webhookSecretOverlapMs;
    await rotateSecret(deps.database, _id, { secret, untilMs, editor: editorOf(callerOf(res)) });
    res.locals.entityId = _id;
    sendEntity(res, { secret });
  },
});

export const WEBHOOK_ROUTES = [list, retry, test, replay, rotate];
