/** Every operation of the API: a table of routes, and the generic operations of each store. */

import { ACCOUNT_ROUTES } from '../accounts/account-routes.js';
import { AUTH_ROUTES } from '../accounts/auth-routes.js';
import { PERMISSION_ROUTES } from '../accounts/permission-routes.js';
import { COMMAND_ROUTES } from '../commands/routes.js';
import type { ErrorStatus } from '../core/errors.js';
import { SINGLE_ONLY, STORES, type Store } from '../core/stores.js';
import { PAST_EVENT_ROUTES } from '../history/past-event-routes.js';
import { SERIES_ROUTES } from '../history/series-routes.js';
import { TRACK_ROUTES } from '../history/track-routes.js';
import { EVENT_ROUTES } from '../live/routes.js';
import { PACKET_ROUTES } from '../packets/routes.js';
import type { Route } from '../platform/http/route.js';
import { allOf, listOf, type Part, schemaRef } from '../platform/http/schema.js';
import { WEBHOOK_ROUTES } from '../webhooks/routes.js';
import { bulkOperationsOf } from './bulk-operations.js';
import type { Operation } from './operation.js';
import { LIST_PARAMETERS } from './parameters.js';
import { type Components, toOperation } from './route-operation.js';
import { titleOf } from './schemas.js';

const json = (schema: Part) => ({ 'application/json': schema });
const entity = (name: string): Part => allOf(schemaRef(name), schemaRef('Success'));
const LISTED = Object.keys(LIST_PARAMETERS);
const AUTHENTICATED: readonly ErrorStatus[] = [401, 403, 429];
const WRITES: readonly ErrorStatus[] = [...AUTHENTICATED, 409, 413, 415];

const SERVICE: readonly Operation[] = [
  ...(['/', '/api/v1'] as const).map(
    (path): Operation => ({
      method: 'get',
      path,
      id: path === '/' ? 'greet' : 'greetApi',
      tag: 'service',
      isOpen: true,
      summary: 'Identifies the server as Vigil',
      answer: { description: 'The server is Vigil', content: json(schemaRef('Greeting')) },
      errors: [],
    }),
  ),
  ...(['openapi', 'asyncapi'] as const).map(
    (name): Operation => ({
      method: 'get',
      path: `/api/v1/${name}.json`,
      id: name,
      tag: 'service',
      isOpen: true,
      summary: name === 'openapi' ? 'This document' : 'The AsyncAPI document of events and MQTT topics',
      answer: { description: 'The document', content: json({ type: 'object' }) },
      errors: [],
    }),
  ),
  {
    method: 'get',
    path: '/docs',
    id: 'browse',
    tag: 'service',
    isOpen: true,
    summary: 'Shows this document as a page on which you can try the API',
    answer: { description: 'The page', content: { 'text/html': { type: 'string' } } },
    moved: 'Redirects to the same path with a slash at the end',
    errors: [],
  },
];

/** The generic operations of one store. */
function operationsOf({ name, readOnly }: Pick<Store, 'name' | 'readOnly'>, title: string): Operation[] {
  const all = `/api/v1/${name}`;
  const one = `/api/v1/${name}/{id}`;
  const tag = name === '{store}' ? 'added stores' : name;
  const whole = json(entity(title));
  const operations: Operation[] = [
    {
      method: 'get',
      path: all,
      id: `list${title}`,
      tag,
      summary: 'Lists the entities that the caller sees',
      query: name === 'objects' ? [...LISTED, 'stateKind'] : LISTED,
      answer: { description: 'The entities, sorted by `_id`', content: json(listOf(`${title}Fields`)) },
      headers: ['Link'],
      errors: [...AUTHENTICATED, 404, 413],
    },
    {
      method: 'get',
      path: one,
      id: `get${title}`,
      tag,
      summary: 'Returns one entity',
      query: ['only'],
      answer: { description: 'The entity', content: json(entity(`${title}Fields`)) },
      errors: [...AUTHENTICATED, 404],
    },
  ];
  if (readOnly) return operations;
  const bulk = SINGLE_ONLY.has(name) ? [] : bulkOperationsOf({ path: all, tag, title });
  return [...operations, ...writesOf({ all, one, tag, title, whole }), ...bulk];
}

function writesOf(of: { all: string; one: string; tag: string; title: string; whole: Record<string, Part> }) {
  const { all, one, tag, title, whole } = of;
  const user = { type: 'object', properties: { user: { type: 'string' } }, required: ['user'] };
  const created = json(title === 'Token' ? allOf(entity(title), TOKEN_ONCE) : entity(title));
  const operations: Operation[] = [
    {
      method: 'post',
      path: all,
      id: `create${title}`,
      tag,
      summary: 'Creates an entity',
      query: ['group'],
      body: json(schemaRef(`${title}New`)),
      isBodyRequired: true,
      answer: { description: 'The created entity', content: created },
      errors: [...WRITES, 404],
    },
    {
      method: 'patch',
      path: one,
      id: `change${title}`,
      tag,
      body: json(schemaRef(`${title}Change`)),
      summary: 'Merges the body into the entity: objects field by field; all other values are replaced',
      answer: { description: 'The changed entity', content: whole },
      errors: [...WRITES, 404],
    },
    {
      method: 'delete',
      path: one,
      id: `remove${title}`,
      tag,
      summary: 'Removes the entity',
      answer: { description: 'The removed entity', content: whole },
      errors: [...AUTHENTICATED, 404, 409],
    },
    {
      method: 'post',
      path: `${one}/access`,
      id: `share${title}`,
      tag,
      summary: 'Shares the entity with a user',
      body: json(user),
      isBodyRequired: true,
      answer: { description: 'The changed entity', content: whole },
      errors: [...WRITES, 404],
    },
    {
      method: 'delete',
      path: `${one}/access/{user}`,
      id: `unshare${title}`,
      tag,
      summary: 'Ends the sharing with a user',
      answer: { description: 'The changed entity', content: whole },
      errors: [...AUTHENTICATED, 404],
    },
  ];
  return operations;
}

/** A token is returned once, and not stored. */
const TOKEN_ONCE: Part = { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] };

/** Every declared route. */
export const ROUTES: readonly Route<never>[] = [
  ...AUTH_ROUTES,
  ...ACCOUNT_ROUTES,
  ...EVENT_ROUTES,
  ...PAST_EVENT_ROUTES,
  ...SERIES_ROUTES,
  ...PACKET_ROUTES,
  ...TRACK_ROUTES,
  ...COMMAND_ROUTES,
  ...WEBHOOK_ROUTES,
  ...PERMISSION_ROUTES,
];

/** Every operation, in the order of docs/reference/http-api.md. */
export function createOperations(components: Components): readonly Operation[] {
  return [
    ...SERVICE,
    ...ROUTES.map((route) => toOperation(route, components)),
    ...[...STORES.values()].flatMap((store) => operationsOf(store, titleOf(store.name))),
    ...operationsOf({ name: '{store}', readOnly: false }, 'Entity'),
  ];
}
