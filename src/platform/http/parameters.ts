/** Parameters that the routes of several features declare. */
import { z } from 'zod';
import { LIMITS } from '../../core/limits.js';
import type { Parameter } from './route.js';

/** The `_id` in examples. */
export const EXAMPLE_ID = '65a00000000000000000000a';

export const ID = z.string().regex(/^[0-9a-fA-F]{24}$/);

/** The `_id` of something in a path. */
export const idParameter = (description: string): Parameter => ({ schema: ID, example: EXAMPLE_ID, description });

/** `:id` of an entity. */
export const ENTITY_KEY: Parameter = {
  schema: z.string(),
  example: 'truck-7',
  description: 'The `_id` of the entity; for an object also its own `id`',
};

const ONLY: Parameter = {
  schema: z.array(z.string()).max(LIMITS.onlyNames),
  example: ['id', 'name'],
  description:
    'The fields to return; nested fields are possible (`state.speed`). A name with a comma stands in double quotes. `_id` is always included',
};

export const ONLY_QUERY = { only: ONLY };

const bound = (about: string, day: string, example: string): Parameter => ({
  schema: z.string(),
  example,
  description:
    `${about}, included: milliseconds since the epoch (12 to 14 digits, or 0 to 999 for the beginning), or ISO 8601 (UTC without a ` +
    `zone). A day such as \`2026-11-23\` means its ${day}. Other digits are refused`,
});
const FROM = bound('Lower bound of `time`', 'beginning', '2026-01-01T00:00');
const TO = bound('Upper bound of `time`', 'end, 23:59:59.999', '2026-12-31T23:59');

/** The parameters of an interval. */
export const INTERVAL_QUERY = {
  from: FROM,
  to: TO,
  begin: { ...FROM, description: 'The same as `from`' },
  end: { ...TO, description: 'The same as `to`: a day means its end' },
} satisfies Record<string, Parameter>;

/** A parameter that is true or false. */
export const FLAG = z.literal(['true', '1', 'false', '0']).default('false');

/** The parameter of requests that change many things at once. */
export const DRY_RUN_QUERY = {
  dryRun: {
    schema: FLAG,
    example: 'true',
    description: 'Changes nothing, and returns how many would be affected',
  },
} satisfies Record<string, Parameter>;

/** The parameters of every list: docs/reference/http-api.md, "List parameters". */
export const LIST_QUERY = {
  offset: {
    schema: z.int().min(0).max(LIMITS.listOffset).default(0),
    example: 0,
    description: 'The number of elements to skip; not with `meta`',
  },
  limit: {
    schema: z.int().min(0).default(LIMITS.listEntities),
    example: 100,
    description: `The maximal number of elements; larger values are reduced to ${LIMITS.listEntities}. Not with \`meta\``,
  },
  only: ONLY,
  meta: {
    schema: z.string().meta({ examples: ['true'] }),
    example: 'false',
    description:
      'Any value except `false` and `0` returns the count, the first and the last element instead of the list',
  },
  ...INTERVAL_QUERY,
  sortBy: {
    schema: z.string().meta({ examples: ['-time'] }),
    // Empty: programs send all examples at once, and `after` goes with the default order only.
    example: '',
    description:
      'The field to sort by, such as `-time`; a leading `-` sorts in descending order. Of objects also `state.online` and `state.time`. Not with `after`',
  },
  where: {
    schema: z.record(z.string(), z.string()).meta({ maxProperties: LIMITS.whereFilters }),
    example: { 'where.name': 'Truck 7' },
    description:
      'Parameters named `where.<field>`, such as `where.config.plate=B-VG 7`: the field has this value, or one of these ' +
      'values, separated by commas. `null`, `true` and numbers are read as such; `"123"` in quotes is text. `where_<field>` is the same',
  },
  search: {
    schema: z.string().max(LIMITS.searchCharacters),
    example: 'truck',
    description: 'Text that occurs in `name`, `id` or `login`, in upper or lower case',
  },
  after: {
    schema: ID,
    example: EXAMPLE_ID,
    description: 'The `_id` of the last element that was read, which may have been removed; returns the next page',
  },
} satisfies Record<string, Parameter>;
