/** OpenAPI operations of series, and their query parameters. */
import type { ErrorStatus } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { Part } from '../platform/http/schema.js';
import type { Operation } from './operation.js';

const ERRORS: readonly ErrorStatus[] = [401, 403, 413, 429];

const NUMBERS: Part = { type: 'array', items: { type: ['number', 'null'] } };
const PARAMETERS: Part = {
  anyOf: [{ type: 'null' }, { type: 'object', additionalProperties: NUMBERS, minProperties: 1 }],
  description: 'The numbers of each function, one for each bucket; `null` where the parameter has no value',
};
const TIME: Part = {
  type: 'array',
  items: { type: 'integer' },
  description: 'The beginning of each bucket, in milliseconds since the epoch',
};
const SERIES: Part = {
  type: 'object',
  properties: { time: TIME },
  required: ['time'],
  additionalProperties: PARAMETERS,
};
const SERIES_OF_OBJECTS: Part = {
  type: 'object',
  properties: {
    time: TIME,
    objects: {
      type: 'object',
      additionalProperties: { anyOf: [{ type: 'null' }, { type: 'object', additionalProperties: PARAMETERS }] },
      description: 'By the key that names the object; `null` where the caller does not see it',
    },
  },
  required: ['time', 'objects'],
  additionalProperties: false,
};

const QUERY = ['params', 'from', 'to', 'begin', 'end', 'points', 'every', 'tz', 'fn', 'seriesGap'];

export const SERIES_OPERATIONS: readonly Operation[] = [
  {
    method: 'get',
    path: '/api/v1/objects/{id}/series',
    id: 'getSeries',
    tag: 'packets',
    query: QUERY,
    summary: 'The history of parameters of an object, in buckets',
    answer: {
      description: 'One column of numbers for each function of each parameter',
      content: { 'application/json': SERIES },
    },
    errors: [...ERRORS, 404],
  },
  {
    method: 'get',
    path: '/api/v1/series',
    id: 'getSeriesOfObjects',
    tag: 'packets',
    summary: 'The same for several objects',
    query: ['seriesObjects', ...QUERY],
    answer: { description: 'The same for each object', content: { 'application/json': SERIES_OF_OBJECTS } },
    errors: ERRORS,
  },
];

const list = { style: 'form', explode: false };

export const SERIES_PARAMETERS: Readonly<Record<string, Part>> = {
  params: {
    example: ['speed', 'fuel'],
    schema: listOf(LIMITS.seriesParameters),
    ...list,
    required: true,
    description: 'The parameters; nested ones are possible (`engine.rpm`). A name with a comma stands in double quotes',
  },
  seriesObjects: {
    name: 'objects',
    example: ['truck-7'],
    schema: listOf(LIMITS.seriesObjects),
    ...list,
    required: true,
    description: 'The objects, by `_id` or own `id`',
  },
  points: {
    example: 1_000,
    schema: { type: 'integer', minimum: 1, maximum: LIMITS.seriesPointsMax, default: LIMITS.seriesPoints },
    description: 'The maximal number of buckets, which are equally long; not with `every`',
  },
  every: {
    // Empty: programs send all examples at once, and `points` is one of them.
    example: '',
    schema: { type: 'string', examples: ['1 h'] },
    description:
      'The length of the buckets, such as `15 min`, `1 h`, `1 day`, `1 week` or `3 months`, by the clock of `tz`; not with `points`',
  },
  tz: {
    example: 'Europe/Berlin',
    schema: { type: 'string', default: 'UTC' },
    description: 'The time zone of `every`',
  },
  fn: {
    example: ['minmax'],
    schema: listOf(LIMITS.seriesFunctions),
    ...list,
    description:
      'The functions: `minmax` (the default: `first`, `last`, `min` and `max`), one of these four, `avg`, `sum`, `count`, ' +
      '`p1` to `p99`, `time-weighted-avg`, `rate`, `duration`, `duration:<value>`',
  },
  seriesGap: {
    name: 'gap',
    example: '10 min',
    schema: { type: 'string' },
    description:
      'How long a value holds: a duration. A bucket without a value has the value that holds at its beginning',
  },
};

/** What they give then. */
export const LATEST_VALUES: Part = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    properties: { value: {}, time: { type: 'integer' } },
    required: ['value', 'time'],
    additionalProperties: false,
  },
  description: 'With `state=latest-of-each`: the last value of each parameter with its time',
};

/** The additional parameter of lists of objects. */
export const LATEST_PARAMETER: Readonly<Record<string, Part>> = {
  stateKind: {
    name: 'state',
    example: 'latest-of-each',
    schema: { enum: ['latest-of-each'] },
    description: `In place of \`state\`, each object has \`latest\`: the last value of each parameter with its time. At most ${LIMITS.latestObjects} objects; not with \`meta\``,
  },
};

function listOf(maxItems: number): Part {
  return { type: 'array', items: { type: 'string' }, maxItems };
}
