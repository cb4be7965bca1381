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
  description: 'The `_id` of the entity; for an object or a source also its own `id`',
};

/** The parameter that selects fields. */
export const ONLY_QUERY = {
  only: {
    schema: z.array(z.string()).max(LIMITS.onlyNames),
    example: ['id', 'name'],
    description:
      'The fields to return; nested fields are possible (`state.speed`). A name with a comma stands in double quotes. `_id` is always included',
  },
} satisfies Record<string, Parameter>;

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
