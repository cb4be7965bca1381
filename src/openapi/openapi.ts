/** Creates the OpenAPI document from the declared routes and the schemas of stores. */
import { ERROR_KINDS, type ErrorStatus } from '../core/errors.js';
import { STORES } from '../core/stores.js';
import type { Route } from '../platform/http/route.js';
import { type Part, schemaRef } from '../platform/http/schema.js';
import { DOCUMENTED_ROUTES } from './all-routes.js';
import { addParameters, type Components, contentOf, errorsOf, json, toRequestBody } from './route-parts.js';
import { createSchemas } from './schemas.js';

const ABOUT = `A server for monitoring and controlling devices. The repository describes it in docs/reference.

An answer that contains one entity is the whole entity, with \`success\` as its last field. A list is a plain array. Every
success has status 200. With \`only\`, an entity has only those fields and \`_id\`. An unknown path is a 404, and an
unsupported method a 405 with \`Allow\`. \`HEAD\` works wherever \`GET\` does. Undocumented fields are kept as they are sent,
and undocumented query parameters are ignored.`;

/** Errors of every operation: an invalid request, an internal error, an unavailable database. */
const ALWAYS: readonly ErrorStatus[] = [400, 500, 503];

const HEADERS: Readonly<Record<string, Part>> = {
  'X-Request-Id': {
    schema: { type: 'string' },
    description: 'The id of the request, if it was valid, or a new one; it is in the log',
  },
  'Set-Cookie': { schema: { type: 'string' }, description: 'The cookie `sid`: signed, `HttpOnly`, with `Expires`' },
  Link: {
    schema: { type: 'string' },
    description: 'After a full page, the address of the next one: `<…>; rel="next"`',
  },
  Location: {
    schema: { type: 'string' },
    description: 'The path of the command, or of the page',
  },
  'Content-Disposition': { schema: { type: 'string' }, description: 'The name of the file, after the object' },
  Trailer: {
    schema: { type: 'string' },
    description:
      '`X-Export`: this trailer is `complete; packets=…`, or `incomplete; packets=…` when the export ended early',
  },
  'X-Interval': {
    schema: { type: 'string' },
    description:
      'Without `from` or `to`, the interval that Vigil took, both ends included: `2026-11-16T00:00:00.000Z/…`',
  },
  'Retry-After': { schema: { type: 'integer' }, description: 'Seconds to wait before the next attempt' },
};

export function createOpenApi(basePath = ''): Part {
  const named: Components = { schemas: {}, parameters: {} };
  const paths = toPaths(named);
  return {
    openapi: '3.1.0',
    info: { title: 'Vigil', version: '1', summary: 'Objects, packets, commands', description: ABOUT },
    // Programs append a path to the URL, so it must not end with a slash. They offer the first entry of `security` by default.
    servers: [{ url: basePath, description: 'The server of this document' }],
    security: [{ token: [] }, { session: [] }],
    tags: createTags(),
    paths,
    components: {
      schemas: { ...createSchemas(), ...named.schemas },
      parameters: named.parameters,
      headers: HEADERS,
      responses: createErrors(),
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: 'sid', description: 'Opened by `POST /api/v1/auth`' },
        token: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'Issued by `POST /api/v1/auth/token`, or created in the store `tokens`',
        },
      },
    },
  };
}

function createTags(): Part[] {
  const names = [...new Set(DOCUMENTED_ROUTES.map(({ tag }) => tag))];
  return names.map((name) => ({ name, description: TAGS[name] ?? `The store ${name}` }));
}

const TAGS: Readonly<Record<string, string>> = {
  service: 'The service itself',
  auth: 'Log in with a cookie or a token, read the current user, log out',
  account: 'The caller’s own account, tokens and sessions',
  settings: 'The settings of the installation',
  geocoder: 'Addresses of places, and places of addresses',
  packets: 'Measurements of objects',
  commands: 'Commands to objects, and their journal',
  links: 'Share links: an object for visitors without an account',
  'added stores': `Stores of your own, besides ${[...STORES.keys()].join(', ')}`,
};

function toPaths(components: Components): Part {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of DOCUMENTED_ROUTES) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    const item = paths[path] ?? { parameters: addParameters(components, 'path', route.params ?? {}) };
    item[route.method.toLowerCase()] = toOperation(route, components);
    paths[path] = item;
  }
  return paths;
}

function toOperation(route: Route<never>, components: Components): Part {
  const { name, tag, summary, auth, query, body, answer, moved } = route;
  const errors = [...new Set([...ALWAYS, ...errorsOf(route)])].sort((a, b) => a - b);
  return {
    operationId: name,
    tags: [tag],
    summary,
    ...(auth === 'none' && { security: [] }),
    ...(query && { parameters: addParameters(components, 'query', query) }),
    ...(body && { requestBody: toRequestBody(body, components) }),
    responses: {
      200: {
        description: answer.description,
        headers: toHeaders(answer.headers ?? []),
        content: contentOf(answer, components),
      },
      ...(moved !== undefined && { 308: { description: moved, headers: toHeaders(['Location']) } }),
      ...Object.fromEntries(errors.map((status) => [status, { $ref: `#/components/responses/${errorName(status)}` }])),
    },
  };
}

const toHeaders = (names: readonly string[]): Part =>
  Object.fromEntries(['X-Request-Id', ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const errorName = (status: ErrorStatus): string => ERROR_KINDS[status].message.replaceAll(' ', '');

/** The causes of each error, as in docs/reference/errors.md. */
const REASONS: Readonly<Record<ErrorStatus, string>> = {
  400: 'Malformed JSON, a missing or invalid field, an invalid parameter',
  401: 'No session or token, or an ended one; a wrong login or password',
  403: 'The role of the user or the scopes of the token do not permit the request',
  404: 'The entity does not exist, or the caller does not see it',
  405: 'The path does not support the method',
  409: 'A unique field is taken, or the current state does not permit the request',
  413: 'The request or the answer exceeds a limit',
  415: 'The body is not JSON (nor, at login, a form)',
  429: 'Too many requests',
  500: 'A fault in Vigil',
  503: 'The database is unavailable, or Vigil is overloaded',
};

function createErrors(): Part {
  const statuses = Object.keys(ERROR_KINDS).map(Number) as ErrorStatus[];
  const entries = statuses.map((status) => {
    const { message, tags } = ERROR_KINDS[status];
    const exact = { code: { const: String(status) }, message: { const: message }, tags: { const: [...tags] } };
    const schema = { allOf: [schemaRef('Error'), { type: 'object', properties: exact }] };
    const headers = toHeaders(status === 429 || status === 503 ? ['Retry-After'] : []);
    return [errorName(status), { description: REASONS[status], headers, content: json(schema) }];
  });
  return Object.fromEntries(entries);
}
