/** The parameters of paths and queries, each standing once for all operations that take it. */
import { COMMAND_STATUSES } from '../model/command.js';
import { LIMITS } from '../model/limits.js';
import { PAST_EVENT_NAMES } from '../model/past-event.js';
import type { Part } from './part.js';

const ID = '^[0-9a-fA-F]{24}$';
const AN_ID = '65a00000000000000000000a';
const [BEGIN, END] = ['2026-01-01T00:00', '2026-12-31T23:59'];
const time = (about: string, example: string): Part => ({
  example,
  schema: { type: 'string' },
  description: `${about}, included: milliseconds since the epoch, or ISO 8601 (UTC without a zone)`,
});

const PATH: Readonly<Record<string, Part>> = {
  store: {
    example: 'drivers',
    schema: { type: 'string', pattern: '^[a-z][a-z0-9-]{0,63}$' },
    description: 'A store that was added',
  },
  id: {
    example: 'truck-7',
    schema: { type: 'string' },
    description: 'The `_id` of the entity; of an object also its own `id`',
  },
  packetID: { example: AN_ID, schema: { type: 'string', pattern: ID }, description: 'The `_id` of the packet' },
  command: {
    example: 'setInterval',
    schema: { type: 'string', pattern: '^[^\\s/+#]{1,64}$' },
    description: 'The name of the command',
  },
  commandID: { example: AN_ID, schema: { type: 'string', pattern: ID }, description: 'The `_id` of the command' },
  user: { example: AN_ID, schema: { type: 'string', pattern: ID }, description: 'The `_id` of the user' },
};

/** docs/reference/http-api.md, "List parameters". */
export const LIST_PARAMETERS: Readonly<Record<string, Part>> = {
  offset: {
    example: 0,
    schema: { type: 'integer', minimum: 0, maximum: LIMITS.listOffset, default: 0 },
    description: 'Skips so many; not with `meta`',
  },
  limit: {
    example: 100,
    schema: { type: 'integer', minimum: 0, default: LIMITS.listEntities },
    description: `Gives at most so many; more than ${LIMITS.listEntities} counts as that. Not with \`meta\``,
  },
  only: {
    example: ['id', 'name'],
    schema: { type: 'array', items: { type: 'string' }, maxItems: LIMITS.onlyNames },
    style: 'form',
    explode: false,
    description: 'Only these fields, also nested ones (`state.speed`); `_id` always comes along',
  },
  meta: {
    example: 'false',
    schema: { type: 'string', examples: ['true'] },
    description: 'Anything but `false` or `0`: how many there are, the first and the last, instead of the list',
  },
  from: time('From this time on', BEGIN),
  to: time('Up to this time', END),
  begin: { ...time('From this time on', BEGIN), description: 'The same as `from`' },
  end: { ...time('Up to this time', END), description: 'The same as `to`' },
  sortBy: { example: '-time', schema: { type: 'string' }, description: 'A field; with `-` in front, descending' },
  where: {
    example: { 'where.name': 'Truck 7' },
    schema: { type: 'object', additionalProperties: { type: 'string' }, maxProperties: LIMITS.whereFilters },
    style: 'form',
    explode: true,
    description:
      'Parameters named `where.<field>`, such as `where.config.plate=B-VG 7`: the field has this value, or one of these ' +
      '(a comma list). `null`, `true` and numbers are read as such; `"123"` in quotes is text. `where_<field>` is the same',
  },
  search: {
    example: 'truck',
    schema: { type: 'string', maxLength: LIMITS.searchCharacters },
    description: 'Text that `name`, `id` or `login` contains, in any case',
  },
  after: {
    example: AN_ID,
    schema: { type: 'string', pattern: ID },
    description: 'The `_id` of the last element read: the next page, as fast for the last as for the first',
  },
};

/** What single operations take. */
const OTHERS: Readonly<Record<string, Part>> = {
  status: {
    example: ['queued'],
    schema: { type: 'array', items: { enum: [...COMMAND_STATUSES] } },
    ...{ style: 'form', explode: false },
    description: 'Only commands of these statuses; what is over by `expires` waits for nothing any more',
  },
  wait: {
    example: 0,
    schema: { type: 'number', minimum: 0, maximum: LIMITS.commandWaitMs / 1_000, default: 0 },
    description: 'Seconds: the answer comes as soon as there is a command; not with `meta`',
  },
  since: {
    example: 'gmsAVhMAAAACKwQsAQ',
    schema: { type: 'string' },
    description: 'A position: what came after it is told. The header `Last-Event-ID` says the same',
  },
  objects: {
    example: ['truck-7'],
    schema: { type: 'array', items: { type: 'string' }, maxItems: LIMITS.subscribedObjects },
    ...{ style: 'form', explode: false },
    description: 'Only of these objects, by `_id` or own id',
  },
  events: {
    example: ['object-packet'],
    schema: { type: 'array', items: { enum: [...PAST_EVENT_NAMES] } },
    ...{ style: 'form', explode: false },
    description: 'Only events of these names; `object-online` and `object-offline` with an interval alone',
  },
  exclude: {
    ...{ name: 'events!', example: ['object-update'], schema: { type: 'array', items: { type: 'string' } } },
    ...{ style: 'form', explode: false },
    description: 'With an interval: no events of these names',
  },
  afterPlace: {
    ...{
      name: 'after',
      example: '1795184145549.1795184145549000.65a00000000000000000000a',
      schema: { type: 'string' },
    },
    description: 'With an interval: what `Link` says after a page; what comes after that',
  },
  waitForEvents: {
    example: 0,
    ...{ name: 'wait', schema: { type: 'integer', minimum: 0, maximum: LIMITS.pollMs / 1_000, default: 0 } },
    description: 'Seconds: a page comes as soon as there is an event',
  },
  group: {
    example: 'mine',
    schema: { enum: ['mine'] },
    description: 'It belongs to the caller’s own group, whatever the body says: for what another installation exported',
  },
  ttl: {
    example: '10 min',
    schema: { type: 'string', examples: ['10 min'] },
    description: 'How long the command may take: a duration, or milliseconds; a day if it is not given',
  },
};

/** Every parameter by name, as the document's components hold them. */
export function createParameters(): Record<string, Part> {
  const placed = (table: Readonly<Record<string, Part>>, place: object) =>
    Object.entries(table).map(([name, part]) => [name, { name, ...place, ...part }]);
  return Object.fromEntries([
    ...placed(PATH, { in: 'path', required: true }),
    ...placed({ ...LIST_PARAMETERS, ...OTHERS }, { in: 'query' }),
  ]);
}

/** The parameters of a path like `/api/v1/objects/{id}`. */
export function pathParametersOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
}

export const parameterRef = (name: string): Part => ({ $ref: `#/components/parameters/${name}` });
