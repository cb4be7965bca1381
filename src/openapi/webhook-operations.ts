/** The operations of webhooks beside the generic ones of handlers. */
import type { ErrorStatus } from '../core/errors.js';
import { WEBHOOK_EVENTS } from '../core/event-names.js';
import { allOf, type Part, schemaRef } from '../platform/http/schema.js';
import type { Operation } from './operation.js';
import { LIST_PARAMETERS } from './parameters.js';

const json = (schema: Part) => ({ 'application/json': schema });
const ADMITTED: readonly ErrorStatus[] = [401, 403, 404, 429];
const WRITTEN: readonly ErrorStatus[] = [...ADMITTED, 409, 413, 415];
const ID: Part = { type: 'string', pattern: '^[0-9a-f]{24}$' };
const TIME: Part = { type: 'integer', description: 'Milliseconds since the epoch' };
const STATUS: Part = { type: ['integer', 'null'], description: 'The HTTP status of the last answer, if there was one' };
const ERROR: Part = {
  type: ['string', 'null'],
  description: 'Why there was no answer, or the address that it redirects to',
};
const ANSWER: Part = { type: 'string', description: 'The beginning of the last answer' };
const MS: Part = { type: 'integer', description: 'The duration of the last attempt' };

const DELIVERY: Part = {
  type: 'object',
  properties: {
    _id: { ...ID, description: '`webhook-id` is `msg_` and this' },
    handler: ID,
    object: ID,
    event: { enum: [...WEBHOOK_EVENTS] },
    state: { enum: ['pending', 'delivered', 'dead', 'withheld'] },
    attempts: { type: 'integer' },
    time: TIME,
    last: { ...TIME, description: 'The time of the last attempt' },
    next: { ...TIME, description: 'The time of the next attempt after a failure' },
    bytes: { type: 'integer', description: 'The size of the message' },
    batch: { type: ['string', 'null'], description: 'The batch with which it was sent' },
    replayed: { const: true, description: 'Sent because of a replay' },
    status: STATUS,
    error: ERROR,
    answer: ANSWER,
    ms: MS,
  },
  required: ['_id'],
  additionalProperties: false,
};

const DELIVERY_AGAIN: Part = {
  ...DELIVERY,
  properties: { ...(DELIVERY.properties as Part), success: { const: true } },
};

const DELIVERY_LIST: Part = {
  anyOf: [
    { type: 'array', items: DELIVERY },
    {
      type: 'object',
      properties: {
        count: { type: 'integer', minimum: 0 },
        first: { anyOf: [DELIVERY, { type: 'null' }] },
        last: { anyOf: [DELIVERY, { type: 'null' }] },
      },
      required: ['count', 'first', 'last'],
      additionalProperties: false,
    },
  ],
};

const TESTED: Part = allOf(schemaRef('Success'), {
  type: 'object',
  properties: { id: { type: 'string' }, status: STATUS, error: ERROR, answer: ANSWER, ms: MS },
  required: ['id', 'status', 'error', 'answer', 'ms'],
});

const TIME_GIVEN: Part = { type: ['integer', 'string'] };
const REPLAY: Part = {
  type: 'object',
  properties: {
    since: { type: 'string', description: 'The position of an event: all events after it' },
    from: {
      ...TIME_GIVEN,
      description: 'The packets from this time on, by their `time`: milliseconds since the epoch, or ISO 8601',
    },
    to: {
      ...TIME_GIVEN,
      description:
        'Until this time, included: milliseconds since the epoch, or ISO 8601, where a day means its end; now without it',
    },
  },
};

const REPLAYED: Part = allOf(schemaRef('Success'), {
  type: 'object',
  properties: {
    handler: ID,
    status: { const: 'queued' },
    since: { type: 'string' },
    from: TIME,
    to: TIME,
  },
  required: ['handler', 'status'],
});

const SECRET: Part = allOf(schemaRef('Success'), {
  type: 'object',
  properties: { secret: { type: 'string', description: 'The new secret; Vigil does not show it again' } },
  required: ['secret'],
});

const tag = 'handlers';
const ONE = '/api/v1/handlers/{id}';
const NOTHING = json({ type: 'object', description: 'Nothing' });

export const WEBHOOK_OPERATIONS: readonly Operation[] = [
  {
    method: 'get',
    path: `${ONE}/deliveries`,
    id: 'listDeliveries',
    tag,
    summary: 'The messages of a webhook',
    query: Object.keys(LIST_PARAMETERS),
    answer: { description: 'The messages, sorted by `_id`', content: json(DELIVERY_LIST) },
    headers: ['Link'],
    errors: [...ADMITTED, 413],
  },
  {
    method: 'post',
    path: `${ONE}/deliveries/{deliveryID}/retry`,
    id: 'retryDelivery',
    tag,
    summary: 'Sends a message again',
    body: NOTHING,
    answer: { description: 'The message, which is `pending`', content: json(DELIVERY_AGAIN) },
    errors: WRITTEN,
  },
  {
    method: 'post',
    path: `${ONE}/test`,
    id: 'testHandler',
    tag,
    summary: 'Sends a signed test message, and returns the answer of the receiver',
    body: NOTHING,
    answer: { description: 'The answer of the receiver', content: json(TESTED) },
    errors: WRITTEN,
  },
  {
    method: 'post',
    path: `${ONE}/replay`,
    id: 'replayHandler',
    tag,
    summary: 'Sends events of the past to a webhook, in the background',
    body: json(REPLAY),
    isBodyRequired: true,
    answer: { description: 'The replay is stored, and begins soon', content: json(REPLAYED) },
    errors: WRITTEN,
  },
  {
    method: 'post',
    path: `${ONE}/secret`,
    id: 'rotateSecret',
    tag,
    summary: 'Creates a new secret; the previous one stays valid for 24 hours',
    body: NOTHING,
    answer: { description: 'The secret', content: json(SECRET) },
    errors: WRITTEN,
  },
];
