/** The interface as an OpenAPI document, put together out of the tables of the code. */
import { ERROR_KINDS, type ErrorStatus } from '../errors.js';
import { STORES } from '../model/stores.js';
import type { Operation } from './operation.js';
import { createOperations } from './operations.js';
import { createParameters, parameterRef, pathParametersOf } from './parameters.js';
import { type Part, schemaRef } from './part.js';
import { createSchemas } from './schemas.js';

const ABOUT = `A server for monitoring and controlling things. The repository describes it in docs/reference.

An answer that names one entity is the whole entity with \`success\` as its last field, a list is a plain array; success is
always status 200. With \`only\`, an entity has only those fields and \`_id\`. A path that is not here is a 404, a method that
is not here a 405 with \`Allow\`. \`HEAD\` works wherever \`GET\` does. Fields that are not mentioned are kept as they are
sent; query parameters that are not mentioned are ignored.`;

/** Every operation can end so: a request that is none, a fault of ours, the database away. */
const ALWAYS: readonly ErrorStatus[] = [400, 500, 503];

const HEADERS: Readonly<Record<string, Part>> = {
  'X-Request-Id': { schema: { type: 'string' }, description: 'Yours, if it was sound, or a new one; it is in the log' },
  'Set-Cookie': { schema: { type: 'string' }, description: 'The cookie `sid`: signed, `HttpOnly`, with `Expires`' },
  Link: { schema: { type: 'string' }, description: 'After a full page, the next one: `<…>; rel="next"`' },
  Location: {
    schema: { type: 'string' },
    description: 'Where it is: the entry in the journal of commands, or the page',
  },
  'Retry-After': { schema: { type: 'integer' }, description: 'Seconds until it is worth trying again' },
};

/** The whole document. */
export function createOpenApi(): Part {
  const operations = createOperations();
  return {
    openapi: '3.1.0',
    info: { title: 'Vigil', version: '1', summary: 'Objects, packets, commands', description: ABOUT },
    // Programs put a path behind it: with a slash it would begin with two. The first of security is what they ask for.
    servers: [{ url: '', description: 'Where this document comes from' }],
    security: [{ token: [] }, { session: [] }],
    tags: tagsOf(operations),
    paths: toPaths(operations),
    components: {
      schemas: createSchemas(),
      parameters: createParameters(),
      headers: HEADERS,
      responses: createErrors(),
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: 'sid', description: 'Opened by `POST /api/v1/auth`' },
        token: {
          ...{ type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          description: 'Issued by `POST /api/v1/auth/token`, or created in the store `tokens`',
        },
      },
    },
  };
}

function tagsOf(operations: readonly Operation[]): Part[] {
  const names = [...new Set(operations.map(({ tag }) => tag))];
  return names.map((name) => ({ name, description: TAGS[name] ?? `The store ${name}` }));
}

const TAGS: Readonly<Record<string, string>> = {
  service: 'The service itself',
  auth: 'Logging in, by cookie or by token; who one is; logging out',
  packets: 'What objects send',
  commands: 'What objects are told, and the journal of it',
  'added stores': `Stores that administrators add, beside ${[...STORES.keys()].join(', ')}`,
};

function toPaths(operations: readonly Operation[]): Part {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const operation of operations) {
    const item = paths[operation.path] ?? { parameters: pathParametersOf(operation.path).map(parameterRef) };
    item[operation.method] = toOperation(operation);
    paths[operation.path] = item;
  }
  return paths;
}

function toOperation(operation: Operation): Part {
  const { id, tag, summary, query = [], body, isBodyRequired = false, answer, headers = [], isOpen, moved } = operation;
  const errors = [...new Set([...ALWAYS, ...operation.errors])].sort((a, b) => a - b);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(isOpen && { security: [] }),
    ...(query.length > 0 && { parameters: query.map(parameterRef) }),
    ...(body !== undefined && { requestBody: { required: isBodyRequired, content: toContent(body) } }),
    responses: {
      200: { description: answer.says, headers: toHeaders(headers), content: toContent(answer.content) },
      ...(moved !== undefined && { 308: { description: moved, headers: toHeaders(['Location']) } }),
      ...Object.fromEntries(errors.map((status) => [status, { $ref: `#/components/responses/${errorName(status)}` }])),
    },
  };
}

const toContent = (schemas: Readonly<Record<string, Part>>): Part =>
  Object.fromEntries(Object.entries(schemas).map(([type, schema]) => [type, { schema }]));

const toHeaders = (names: readonly string[]): Part =>
  Object.fromEntries(['X-Request-Id', ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const errorName = (status: ErrorStatus): string => ERROR_KINDS[status].message.replaceAll(' ', '');

/** What makes each error, in a few words: docs/reference/errors.md has the same. */
const REASONS: Readonly<Record<ErrorStatus, string>> = {
  400: 'Malformed JSON, a missing or wrong field, a parameter that makes no sense',
  401: 'No session or token, or one that has ended; a wrong login or password',
  403: 'The role of the user, or the scopes of the token, do not permit it',
  404: 'It does not exist, or the caller does not see it',
  405: 'The path is known, the method is not',
  409: 'A unique field is taken, or what is there does not permit it',
  413: 'More than the service takes, or gives at once',
  415: 'The body is no JSON (at login: nor a form)',
  429: 'Too many requests',
  500: 'A fault of ours',
  503: 'The database is away, or the service overloaded',
};

function createErrors(): Part {
  const used = (Object.keys(ERROR_KINDS).map(Number) as ErrorStatus[]).filter((status) => status !== 405);
  const entries = used.map((status) => {
    const { message, tags } = ERROR_KINDS[status];
    const exact = { code: { const: String(status) }, message: { const: message }, tags: { const: [...tags] } };
    const schema = { allOf: [schemaRef('Error'), { type: 'object', properties: exact }] };
    const headers = toHeaders(status === 429 || status === 503 ? ['Retry-After'] : []);
    return [errorName(status), { description: REASONS[status], headers, content: toContent(json(schema)) }];
  });
  return Object.fromEntries(entries);
}

const json = (schema: Part) => ({ 'application/json': schema });
