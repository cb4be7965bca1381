/** Every operation of the API: a table of routes, and the generic operations of each store. */

import { ACCOUNT_ROUTES } from '../accounts/account-routes.js';
import { AUTH_ROUTES } from '../accounts/auth-routes.js';
import { PERMISSION_ROUTES } from '../accounts/permission-routes.js';
import { COMMAND_ROUTES } from '../commands/routes.js';
import { BUILT_IN_STORE_ROUTES, STORE_ROUTES } from '../entities/routes.js';
import { PAST_EVENT_ROUTES } from '../history/past-event-routes.js';
import { SERIES_ROUTES } from '../history/series-routes.js';
import { TRACK_ROUTES } from '../history/track-routes.js';
import { EVENT_ROUTES } from '../live/routes.js';
import { PACKET_ROUTES } from '../packets/routes.js';
import type { Route } from '../platform/http/route.js';
import { type Part, schemaRef } from '../platform/http/schema.js';
import { WEBHOOK_ROUTES } from '../webhooks/routes.js';
import type { Operation } from './operation.js';
import { type Components, toOperation } from './route-operation.js';

const json = (schema: Part) => ({ 'application/json': schema });

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
    ...[...ROUTES, ...BUILT_IN_STORE_ROUTES, ...STORE_ROUTES].map((route) => toOperation(route, components)),
  ];
}
