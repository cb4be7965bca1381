/** The parameters of paths and queries. Operations refer to them by name. */
import { FIRST_USER_ID } from '../core/builtin.js';
import { LIMITS } from '../core/limits.js';
import { PAST_EVENT_NAMES } from '../history/past-event.js';
import { EXAMPLE_ID, LIST_QUERY } from '../platform/http/parameters.js';
import type { Part } from '../platform/http/schema.js';
import { toParameter } from './route-operation.js';
import { LATEST_PARAMETER, SERIES_PARAMETERS } from './series-operations.js';

const ID = '^[0-9a-fA-F]{24}$';
const PATH: Readonly<Record<string, Part>> = {
  store: {
    example: 'drivers',
    schema: { type: 'string', pattern: '^[a-z][a-z0-9-]{0,63}$' },
    description: 'A store of your own',
  },
  id: {
    example: 'truck-7',
    schema: { type: 'string' },
    description: 'The `_id` of the entity; for an object also its own `id`',
  },
  deliveryID: { example: EXAMPLE_ID, schema: { type: 'string', pattern: ID }, description: 'The `_id` of the message' },
  user: { example: FIRST_USER_ID, schema: { type: 'string', pattern: ID }, description: 'The `_id` of the user' },
};

/** docs/reference/http-api.md, "List parameters". */
export const LIST_PARAMETERS: Readonly<Record<string, Part>> = Object.fromEntries(
  Object.entries(LIST_QUERY).map(([name, parameter]) => [name, toParameter(name, 'query', parameter)]),
);

/** Parameters of single operations. */
const OTHERS: Readonly<Record<string, Part>> = {
  since: {
    example: 'gmsAVhMAAAACKwQsAQ',
    schema: { type: 'string' },
    description: 'A position; returns the events after it. The header `Last-Event-ID` has the same effect',
  },
  objects: {
    example: ['truck-7'],
    schema: { type: 'array', items: { type: 'string' }, maxItems: LIMITS.subscribedObjects },
    style: 'form',
    explode: false,
    description: 'Only events of these objects, by `_id` or own `id`',
  },
  groups: {
    example: [EXAMPLE_ID],
    schema: { type: 'array', items: { type: 'string', pattern: ID }, maxItems: LIMITS.subscribedGroups },
    style: 'form',
    explode: false,
    description: 'Live: only events of objects in these groups or below them, by `_id`; not with `objects`',
  },
  events: {
    example: ['object-packet'],
    schema: { type: 'array', items: { enum: [...PAST_EVENT_NAMES] } },
    style: 'form',
    explode: false,
    description: 'Only events with these names; `object-online` and `object-offline` only with an interval',
  },
  exclude: {
    name: 'events!',
    example: ['object-update'],
    schema: { type: 'array', items: { type: 'string' } },
    style: 'form',
    explode: false,
    description: 'With an interval: excludes events with these names',
  },
  permissionMethod: {
    name: 'method',
    example: 'PATCH',
    schema: { enum: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'] },
    description: 'The method of a request; with `path`',
  },
  permissionPath: {
    name: 'path',
    example: '/objects/truck-7',
    schema: { type: 'string' },
    description: 'The path of a request, with or without `/api/v1`; with `method`',
  },
  afterPlace: {
    name: 'after',
    example: '1795184145549.1795184145549000.65a00000000000000000000a',
    schema: { type: 'string' },
    description: 'With an interval: the value from `Link`; returns the next page',
  },
  waitForEvents: {
    example: 0,
    name: 'wait',
    schema: { type: 'integer', minimum: 0, maximum: LIMITS.pollMs / 1_000, default: 0 },
    description: 'Seconds to wait until there is an event',
  },
  group: {
    example: 'mine',
    schema: { enum: ['mine'] },
    description:
      'Creates the entity in the caller’s own group and ignores the group in the body, for entities exported from another installation',
  },
};

/** Every parameter by name, for the components of the document. */
export function createParameters(): Record<string, Part> {
  const placed = (table: Readonly<Record<string, Part>>, place: object) =>
    Object.entries(table).map(([name, part]) => [name, { name, ...place, ...part }]);
  return Object.fromEntries([
    ...placed(PATH, { in: 'path', required: true }),
    ...placed({ ...LIST_PARAMETERS, ...SERIES_PARAMETERS, ...LATEST_PARAMETER, ...OTHERS }, { in: 'query' }),
  ]);
}

/** The names of the parameters in a path like `/api/v1/objects/{id}`. */
export function pathParametersOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
}

export const parameterRef = (name: string): Part => ({ $ref: `#/components/parameters/${name}` });
