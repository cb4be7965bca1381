/** Every operation of the interface: the routes as a table, those of stores for each store by itself. */
import type { ErrorStatus } from '../errors.js';
import { STORES, type Store } from '../model/stores.js';
import type { Operation } from './operation.js';
import { LIST_PARAMETERS } from './parameters.js';
import { allOf, type Part, schemaRef } from './part.js';
import { PAST, PAST_EVENTS } from './past-operations.js';
import { titleOf } from './schemas.js';

const json = (schema: Part) => ({ 'application/json': schema });
const entity = (name: string): Part => allOf(schemaRef(name), schemaRef('Success'));
const LISTED = Object.keys(LIST_PARAMETERS);
const ADMITTED: readonly ErrorStatus[] = [401, 403, 429];
const WRITTEN: readonly ErrorStatus[] = [...ADMITTED, 409, 413, 415];
const LOGIN: readonly ErrorStatus[] = [...ADMITTED, 413, 415];

const list = (fields: string): Part => ({
  anyOf: [
    { type: 'array', items: schemaRef(fields) },
    {
      type: 'object',
      properties: {
        count: { type: 'integer', minimum: 0 },
        first: { anyOf: [schemaRef(fields), { type: 'null' }] },
        last: { anyOf: [schemaRef(fields), { type: 'null' }] },
      },
      required: ['count', 'first', 'last'],
      additionalProperties: false,
      title: 'With `meta`',
    },
  ],
});

const login = (schema: string) => ({
  'application/json': schemaRef(schema),
  'application/x-www-form-urlencoded': schemaRef(schema),
});

const SERVICE: readonly Operation[] = [
  ...(['/', '/api/v1'] as const).map(
    (path): Operation => ({
      ...{ method: 'get', path, id: path === '/' ? 'greet' : 'greetApi', tag: 'service', isOpen: true },
      summary: 'Identifies the server as Vigil',
      answer: { says: 'The server is Vigil', content: json(schemaRef('Greeting')) },
      errors: [],
    }),
  ),
  ...(['openapi', 'asyncapi'] as const).map(
    (name): Operation => ({
      ...{ method: 'get', path: `/api/v1/${name}.json`, id: name, tag: 'service', isOpen: true },
      summary: name === 'openapi' ? 'This document' : 'The AsyncAPI document of events and MQTT topics',
      answer: { says: 'The document', content: json({ type: 'object' }) },
      errors: [],
    }),
  ),
  {
    ...{ method: 'get', path: '/docs', id: 'browse', tag: 'service', isOpen: true },
    summary: 'Shows this document as a page on which you can try the API',
    answer: { says: 'The page', content: { 'text/html': { type: 'string' } } },
    ...{ moved: 'Redirects to the same path with a slash at the end', errors: [] },
  },
];

const LOGINS: readonly Operation[] = [
  {
    ...{ method: 'post', path: '/api/v1/auth', id: 'logIn', tag: 'auth', isOpen: true },
    summary: 'Opens a session',
    ...{ body: login('Login'), isBodyRequired: true },
    answer: { says: 'The session is open', content: json(schemaRef('LoginAnswer')) },
    ...{ headers: ['Set-Cookie'], errors: LOGIN },
  },
  {
    ...{ method: 'post', path: '/api/v1/auth/token', id: 'issueToken', tag: 'auth', isOpen: true },
    summary: 'Issues a token',
    ...{ body: login('TokenLogin'), isBodyRequired: true },
    answer: { says: 'The token', content: json(schemaRef('TokenAnswer')) },
    errors: LOGIN,
  },
  {
    ...{ method: 'get', path: '/api/v1/auth', id: 'whoAmI', tag: 'auth' },
    summary: 'Returns the current user',
    answer: { says: 'The user, with credentials and scopes', content: json(schemaRef('Caller')) },
    errors: [401, 404, 429],
  },
  {
    ...{ method: 'delete', path: '/api/v1/auth', id: 'logOut', tag: 'auth' },
    summary: 'Ends the session, or revokes the token, of the request',
    answer: { says: 'The session or token has ended', content: json(schemaRef('Success')) },
    ...{ headers: ['Set-Cookie'], errors: ADMITTED },
  },
];

const EVENTS: readonly Operation[] = [
  {
    ...{ method: 'get', path: '/api/v1/events', id: 'listen', tag: 'events' },
    summary: 'Live events, as a stream or in pages; with an interval, past events',
    query: [
      'since',
      'objects',
      'events',
      'exclude',
      'waitForEvents',
      'from',
      'to',
      'begin',
      'end',
      'limit',
      'afterPlace',
    ],
    answer: {
      says: 'With `from` or `to` a list, with `Accept: text/event-stream` a stream, otherwise a page and the next position',
      content: {
        ...json({ anyOf: [schemaRef('EventPage'), PAST_EVENTS] }),
        'text/event-stream': { type: 'string' },
      },
    },
    ...{ headers: ['Link'], errors: ADMITTED },
  },
];

const PACKETS: readonly Operation[] = [
  {
    ...{ method: 'get', path: '/api/v1/objects/{id}/packets', id: 'listPackets', tag: 'packets' },
    ...{ summary: 'The packets of an object', query: LISTED },
    answer: { says: 'The packets, sorted by `time`, then `_ts`', content: json(list('PacketFields')) },
    ...{ headers: ['Link'], errors: [...ADMITTED, 404, 413] },
  },
  {
    ...{ method: 'post', path: '/api/v1/objects/{id}/packets', id: 'sendPackets', tag: 'packets' },
    summary: 'Stores one packet or an array of packets; answers when they are durable',
    body: json({ anyOf: [schemaRef('Message'), { type: 'array', items: schemaRef('Message') }] }),
    answer: {
      says: 'For one packet, the stored packet; for an array, the number of packets',
      content: json({ anyOf: [entity('Packet'), schemaRef('Stored')] }),
    },
    errors: [...WRITTEN, 404],
  },
  {
    ...{ method: 'get', path: '/api/v1/objects/{id}/packets/{packetID}', id: 'getPacket', tag: 'packets' },
    ...{ summary: 'One packet', query: ['only'] },
    answer: { says: 'The packet', content: json(entity('PacketFields')) },
    errors: [...ADMITTED, 404],
  },
];

const COMMANDS: readonly Operation[] = ['/api/v1', ''].map((prefix) => ({
  ...{ method: 'post', path: `${prefix}/objects/{id}/commands/{command}`, tag: 'commands' },
  id: prefix === '' ? 'sendCommandUnprefixed' : 'sendCommand',
  summary: 'Creates a command',
  query: ['ttl'],
  body: json({ type: 'object', description: 'The parameters, merged over the defaults of the model' }),
  answer: { says: 'The command is in the journal; `Location` contains its path', content: json(schemaRef('Success')) },
  ...{ headers: ['Location'], errors: [...WRITTEN, 404] },
}));

const FETCHING: readonly Operation[] = [
  {
    ...{ method: 'get', path: '/api/v1/objects/{id}/commands', id: 'listCommandsOfObject', tag: 'commands' },
    ...{ summary: 'The commands of an object', query: [...LISTED, 'status', 'wait'] },
    answer: { says: 'The commands, in the order of their execution', content: json(list('CommandFields')) },
    ...{ headers: ['Link'], errors: [...ADMITTED, 404, 413] },
  },
  {
    ...{ method: 'post', path: '/api/v1/objects/{id}/commands/{commandID}/result', id: 'endCommand', tag: 'commands' },
    ...{ summary: 'Reports the result of a command', body: json(schemaRef('Outcome')), isBodyRequired: true },
    answer: { says: 'The command with its final status', content: json(entity('CommandFields')) },
    errors: [...WRITTEN, 404],
  },
];

/** The generic interface, for one store. */
function operationsOf({ name, readOnly }: Pick<Store, 'name' | 'readOnly'>, title: string): Operation[] {
  const [all, one] = [`/api/v1/${name}`, `/api/v1/${name}/{id}`];
  const tag = name === '{store}' ? 'added stores' : name;
  const whole = json(entity(title));
  const operations: Operation[] = [
    {
      ...{
        method: 'get',
        path: all,
        id: `list${title}`,
        tag,
        summary: 'Lists the entities that the caller sees',
        query: LISTED,
      },
      ...{
        answer: { says: 'The entities, sorted by `_id`', content: json(list(`${title}Fields`)) },
        headers: ['Link'],
      },
      errors: [...ADMITTED, 404, 413],
    },
    {
      ...{ method: 'get', path: one, id: `get${title}`, tag, summary: 'Returns one entity', query: ['only'] },
      answer: { says: 'The entity', content: json(entity(`${title}Fields`)) },
      errors: [...ADMITTED, 404],
    },
  ];
  return readOnly ? operations : [...operations, ...writesOf({ all, one, tag, title, whole })];
}

function writesOf(of: { all: string; one: string; tag: string; title: string; whole: Record<string, Part> }) {
  const { all, one, tag, title, whole } = of;
  const user = { type: 'object', properties: { user: { type: 'string' } }, required: ['user'] };
  const created = json(title === 'Token' ? allOf(entity(title), TOKEN_ONCE) : entity(title));
  const operations: Operation[] = [
    {
      ...{ method: 'post', path: all, id: `create${title}`, tag, summary: 'Creates an entity', query: ['group'] },
      ...{ body: json(schemaRef(`${title}New`)), isBodyRequired: true },
      ...{ answer: { says: 'The created entity', content: created }, errors: [...WRITTEN, 404] },
    },
    {
      ...{ method: 'patch', path: one, id: `change${title}`, tag, body: json(schemaRef(`${title}Change`)) },
      summary: 'Merges the body into the entity: objects field by field; all other values are replaced',
      ...{ answer: { says: 'The changed entity', content: whole }, errors: [...WRITTEN, 404] },
    },
    {
      ...{ method: 'delete', path: one, id: `remove${title}`, tag, summary: 'Removes the entity' },
      ...{ answer: { says: 'The removed entity', content: whole }, errors: [...ADMITTED, 404, 409] },
    },
    {
      ...{ method: 'post', path: `${one}/access`, id: `share${title}`, tag, summary: 'Shares the entity with a user' },
      ...{ body: json(user), isBodyRequired: true },
      ...{ answer: { says: 'The changed entity', content: whole }, errors: [...WRITTEN, 404] },
    },
    {
      ...{
        method: 'delete',
        path: `${one}/access/{user}`,
        id: `unshare${title}`,
        tag,
        summary: 'Ends the sharing with a user',
      },
      ...{ answer: { says: 'The changed entity', content: whole }, errors: [...ADMITTED, 404] },
    },
  ];
  return operations;
}

/** A token is told once, and not stored. */
const TOKEN_ONCE: Part = { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] };

/** Every operation, in the order of docs/reference/http-api.md. */
export function createOperations(): readonly Operation[] {
  return [
    ...[...SERVICE, ...LOGINS, ...EVENTS, ...PAST, ...PACKETS, ...(COMMANDS as readonly Operation[]), ...FETCHING],
    ...[...STORES.values()].flatMap((store) => operationsOf(store, titleOf(store.name))),
    ...operationsOf({ name: '{store}', readOnly: false }, 'Entity'),
  ];
}
