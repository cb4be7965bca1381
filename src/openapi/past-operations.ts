/** OpenAPI operations of past events and of the model of an object. */
import type { ErrorStatus } from '../core/errors.js';
import { PAST_EVENT_NAMES } from '../history/past-event.js';
import { allOf, type Part, schemaRef } from '../platform/http/schema.js';
import type { Operation } from './operation.js';

const json = (schema: Part) => ({ 'application/json': schema });
const AUTHENTICATED_ERRORS: readonly ErrorStatus[] = [401, 403, 429];
const NODES: Part = {
  type: 'array',
  items: { type: 'object' },
  description: 'Nodes of `data`, without their children',
};

const TEXT: Part = { type: 'string' };
const EVENT: Part = {
  type: 'object',
  properties: {
    event: { enum: [...PAST_EVENT_NAMES] },
    data: { type: 'object' },
    position: TEXT,
    time: { type: 'integer', description: 'Milliseconds since the epoch' },
  },
  required: ['event', 'data', 'time'],
};

export const PAST_EVENTS: Part = { type: 'array', items: EVENT };

const NAMES: Part = {
  type: 'object',
  properties: { unique: { type: 'array', items: TEXT }, noModel: { type: 'array', items: TEXT } },
  required: ['unique', 'noModel'],
};

export const PAST: readonly Operation[] = [
  {
    method: 'get',
    path: '/api/v1/events/org',
    id: 'listEventNames',
    tag: 'events',
    summary: 'The names of events; `noModel` lists the events that belong to no object',
    answer: { description: 'The names, which never change', content: json(NAMES) },
    errors: AUTHENTICATED_ERRORS,
  },
  {
    method: 'get',
    path: '/api/v1/objects/{id}/events',
    id: 'listEventsOfObject',
    tag: 'events',
    summary: 'The past events of an object',
    query: ['from', 'to', 'begin', 'end', 'events', 'exclude', 'limit', 'afterPlace'],
    answer: { description: 'The events, sorted by `time`', content: json(PAST_EVENTS) },
    headers: ['Link'],
    errors: [...AUTHENTICATED_ERRORS, 404],
  },
  {
    method: 'get',
    path: '/api/v1/objects/{id}/model',
    id: 'getModelOfObject',
    tag: 'objects',
    summary: 'The model of an object, with its declarations as plain lists',
    answer: {
      description: 'The model',
      content: json(
        allOf(schemaRef('Model'), schemaRef('Success'), {
          type: 'object',
          properties: { _arguments: NODES, _actions: NODES, _configs: NODES },
          required: ['_arguments', '_actions', '_configs'],
        }),
      ),
    },
    errors: [...AUTHENTICATED_ERRORS, 404],
  },
];
