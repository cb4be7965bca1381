/** The examples of the OpenAPI document, sent as programs such as Postman fill them in: the service accepts all of them. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { STORES } from '../../src/core/stores.js';
import { createOpenApi } from '../../src/openapi/openapi.js';
import { type Call, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly example: unknown;
  readonly explode?: boolean;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { $ref: string }[];
  readonly requestBody?: { readonly content: Record<string, { example?: unknown }> };
}

/** A Nominatim that knows no place. */
const geocoder = createServer((req, res) => {
  res.end(req.url?.startsWith('/reverse') ? '{"error":"Unable to geocode"}' : '[]');
});
/** No mail server is there, and none is asked. */
const MAIL = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'vigil@example.com' };
const env: Record<string, string> = { WEBHOOK_NETWORKS: '127.0.0.1', ...MAIL };
beforeAll(async () => {
  await new Promise<void>((resolve) => geocoder.listen(0, '127.0.0.1', () => resolve()));
  env.GEOCODER_URL = `http://127.0.0.1:${(geocoder.address() as AddressInfo).port}`;
});
afterAll(() => {
  geocoder.closeAllConnections();
  geocoder.close();
});

const service = useService({ env });
const { paths, components } = createOpenApi() as unknown as {
  paths: Record<string, Record<string, Operation>>;
  components: { parameters: Record<string, Parameter> };
};
const operations = Object.entries(paths).flatMap(([path, item]) =>
  ['get', 'post', 'patch', 'delete'].flatMap((method) =>
    item[method] === undefined ? [] : [{ method: method.toUpperCase(), path, operation: item[method] }],
  ),
);
/** Keys of entities that exist, by the path that created them. */
const keys = new Map<string, string>();

const bodyOf = ({ requestBody }: Operation): unknown => requestBody?.content['application/json']?.example;

/** The key of the source that was created, which only that answer has. */
function noteKey({ key }: { key?: string }): void {
  if (key === undefined) return;
  for (const name of ['key', 'sourceKey']) Object.assign(components.parameters[name] as Parameter, { example: key });
}

/** All query parameters at once, as programs send them. */
function queryOf({ parameters = [] }: Operation): string {
  const query = new URLSearchParams();
  for (const { $ref } of parameters) {
    const { name, example } = components.parameters[$ref.split('/').at(-1) as string] as Parameter;
    if (Array.isArray(example)) query.set(name, example.join());
    else if (typeof example === 'object')
      for (const [field, value] of Object.entries(example as object)) query.set(field, value);
    else query.set(name, String(example));
  }
  return String(query);
}

/** The path with its examples; `{id}` is the created entity, where there is one. */
function filled(path: string): string {
  const store = path.split('/')[path.startsWith('/api') ? 3 : 1] as string;
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const created = { id: keys.get(store), commandID: keys.get('commands') }[name];
    return created ?? String(components.parameters[name]?.example);
  });
}

/** Who sends the requests of a path: those below `/shared` need the token of a visitor of a share link. */
async function callerOf(path: string): Promise<Call> {
  if (!path.startsWith('/api/v1/shared')) return service.admin;
  const { secret } = (await service.admin('POST', filled('/api/v1/objects/{id}/links'), { name: 'For the customer' }))
    .body;
  return service.as((await service.as(null)('POST', 'shared', { secret })).body.token);
}

async function send(path: string, method: string) {
  const { operation } = operations.find((one) => one.path === path && one.method === method) as (typeof operations)[0];
  return service.admin(method, filled(path), bodyOf(operation));
}

beforeAll(async () => {
  for (const { name } of [...STORES.values()].filter(({ readOnly }) => !readOnly)) {
    const { status, body } = await send(`/api/v1/${name}`, 'POST');
    expect([name, status, body.helper]).toEqual([name, 200, undefined]);
    keys.set(name, name === 'objects' ? body.id : body._id);
    noteKey(body);
  }
  keys.set('{store}', (await send('/api/v1/{store}', 'POST')).body._id);
  const { headers } = await send('/api/v1/objects/{id}/commands/{command}', 'POST');
  keys.set('commands', headers.location?.split('/').at(-1) as string);
  keys.set('notes', (await send('/api/v1/objects/{id}/notes', 'POST')).body._id);
  await service.admin('POST', 'rules', { name: 'Moving', when: { param: 'speed', op: '>', value: 0 } });
  await send('/api/v1/objects/{id}/packets', 'POST');
  await until(async () => {
    const [alarm] = (await service.admin('GET', 'alarms')).body;
    if (alarm !== undefined) keys.set('alarms', alarm._id);
    return alarm !== undefined;
  }, 'an alarm');
});

test('creates the object that the examples of paths name', () => {
  expect(keys.get('objects')).toBe(components.parameters.id?.example);
  expect(components.parameters.store?.example).toBe('drivers');
});

const withBody = operations.filter(({ operation }) => operation.requestBody !== undefined);

describe('bodies', () => {
  test.each(withBody.map((one) => [`${one.method} ${one.path}`, one.operation] as const))(
    'has an example: %s',
    (_, operation) => {
      for (const { example } of Object.values(operation.requestBody?.content ?? {})) expect(example).toBeDefined();
    },
  );

  const again = /^\/api\/v1\/(?:[a-z]+|\{store\})$/;
  // No webhook and no code was sent or can be sent from here, and an entity cannot be created twice.
  const elsewhere = /deliveries|\/(?:test|confirm)$/;
  const sent = withBody.filter(({ method, path }) => !elsewhere.test(path) && !(method === 'POST' && again.test(path)));
  const order = ({ path }: { path: string }): number => (path.includes('/replay') ? 1 : 0);
  test.each([...sent].sort((a, b) => order(a) - order(b)).map((one) => [one.method, one.path, one.operation] as const))(
    'is accepted: %s %s',
    async (method, path, operation) => {
      const search = (method === 'PATCH' || path === '/api/v1/in/{source}') && queryOf(operation);
      const { status, body } = await service.admin(
        method,
        `${filled(path)}${search ? `?${search}` : ''}`,
        bodyOf(operation),
      );
      expect([status, body.helper]).toEqual([200, undefined]);
      noteKey(body);
    },
  );
});

describe('parameters', () => {
  const withQuery = operations.filter(({ operation }) => operation.parameters !== undefined);
  test.each(
    withQuery.filter(({ method }) => method !== 'POST').map((one) => [one.method, one.path, one.operation] as const),
  )('are accepted together: %s %s', async (method, path, operation) => {
    const call = await callerOf(path);
    const { status, body } = await call(method, `${filled(path)}?${queryOf(operation)}`, bodyOf(operation));
    // The `_id` of a security event is unknown before it happens.
    expect([status, body.helper]).toEqual([path.includes('/audit/') ? 404 : 200, undefined]);
  });
});

test('leads to well-formed requests: no double slashes, no part of a path without an example', () => {
  for (const { path } of operations) {
    expect(path).not.toMatch(/\/\/|\/$(?<!^\/)/);
    for (const [, name] of path.matchAll(/\{(\w+)\}/g))
      expect(String(components.parameters[name as string]?.example)).toMatch(/^[\w-]+$/);
  }
});
