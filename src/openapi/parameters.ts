/** The parameters of paths and queries. Operations refer to them by name. */
import { FIRST_USER_ID } from '../core/builtin.js';
import { LIMITS } from '../core/limits.js';
import { EXPORT_TYPES } from '../history/export-format.js';
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
  packetID: { example: EXAMPLE_ID, schema: { type: 'string', pattern: ID }, description: 'The `_id` of the packet' },
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
  trackPoints: {
    name: 'points',
    example: 500,
    schema: { type: 'integer', minimum: 2, maximum: LIMITS.trackPoints, default: LIMITS.trackPointsUsual },
    description: 'The maximal number of points of the line',
  },
  stops: {
    example: 'true',
    schema: { enum: ['true', '1', 'false', '0'], default: 'false' },
    description: 'Returns the stops and the trips between them',
  },
  stopTime: {
    example: '5 min',
    schema: { type: 'string', examples: ['5 min'] },
    description: 'An object that stays within `stopRadius` for this duration has stopped; 5 minutes by default',
  },
  stopRadius: {
    example: 100,
    schema: { type: 'integer', minimum: 1, maximum: LIMITS.stopRadiusMaxM, default: LIMITS.stopRadiusM },
    description: 'Metres',
  },
  dryRun: {
    example: 'true',
    schema: { enum: ['true', '1', 'false', '0'], default: 'false' },
    description: 'Changes nothing, and returns how many would be affected',
  },
  format: {
    example: 'json',
    schema: { enum: ['json', 'jsonl', ...Object.keys(EXPORT_TYPES)], default: 'json' },
    description:
      'The format of the answer; without it, `Accept` decides. All but `json` are files of any length: `limit` is not bounded, and the order is that of `time`',
  },
  bom: {
    example: 'true',
    schema: { enum: ['true', '1', 'false', '0'], default: 'false' },
    description:
      'With `format=csv`: for spreadsheets. The file begins with a byte order mark, and digits that a spreadsheet would change become text: `="8944110068765432109"`',
  },
  trackGap: {
    name: 'gap',
    example: '15 min',
    schema: { type: 'string', examples: ['15 min'] },
    description:
      'In a track, and with `format=gpx`: packets further apart than this duration, or these milliseconds, are not connected; 15 minutes by default',
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
