/** The OpenAPI document is valid and lists exactly the existing routes. */
import { describe, expect, test } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { ERROR_KINDS } from '../../../src/core/errors.js';
import { SINGLE_ONLY, STORES } from '../../../src/core/stores.js';
import { createOpenApi } from '../../../src/openapi/openapi.js';
import { LIST_QUERY } from '../../../src/platform/http/list-params.js';
import { routes } from '../../http/routes.js';
import { readCode, readSection, readTable } from '../../support/docs/markdown.js';

// biome-ignore lint/suspicious/noExplicitAny: the document is looked into everywhere
const document = createOpenApi() as any;
const METHODS = ['get', 'post', 'patch', 'delete'];

/** `METHOD /path` of every operation, as Express writes them. */
const documented: string[] = Object.entries<object>(document.paths).flatMap(([path, item]) =>
  Object.keys(item)
    .filter((key) => METHODS.includes(key))
    .map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
);

test('passes the linter', async () => {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // The repository names no licence.
      'info-license': 'off',
      'info-license-strict': 'off',
    },
  });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  const shown = problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
  // `in` is the name of no store.
  const isOfSources = /^no-ambiguous-paths: .*`\/api\/v1\/in\/\{source\}\/\{key\}`/;
  expect(shown.filter((problem) => !isOfSources.test(problem))).toEqual([]);
});

describe('routes', () => {
  test('match the service, with the generic ones repeated for each built-in store', () => {
    const known = routes().flatMap((route) => {
      if (!/ \/api\/v1\/:store/.test(route)) return [route];
      const isBulk = / \/api\/v1\/:store$/.test(route) && /^(?:PATCH|DELETE) /.test(route);
      const stores = [...STORES.values()]
        .filter(({ readOnly }) => !readOnly || route.startsWith('GET '))
        .filter(({ name }) => !isBulk || !SINGLE_ONLY.has(name));
      return [route, ...stores.map(({ name }) => route.replace(':store', name))];
    });
    expect([...documented].sort()).toEqual([...new Set(known)].sort());
  });

  test('have unique names', () => {
    const ids = Object.values<Record<string, { operationId?: string }>>(document.paths).flatMap((item) =>
      METHODS.flatMap((method) => item[method]?.operationId ?? []),
    );
    expect(ids).toHaveLength(documented.length);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

test('matches the list parameters of docs/reference/http-api.md', () => {
  const shown = readTable(readSection('docs/reference/http-api.md', 'List parameters')).flatMap(([names]) =>
    readCode(names).map((name) => name.replace(/\.<.*/, '')),
  );
  expect(Object.keys(LIST_QUERY)).toEqual(shown.sort(inOrderOf(Object.keys(LIST_QUERY))));

  function inOrderOf(names: readonly string[]) {
    return (a: string, b: string): number => names.indexOf(a) - names.indexOf(b);
  }
});

test('matches the causes of errors of docs/reference/errors.md', () => {
  const shown = readTable(readSection('docs/reference/errors.md', 'Errors')).map(([status]) => Number(status));
  const responses = Object.values<{ content: { 'application/json': { schema: { allOf: object[] } } } }>(
    document.components.responses,
  );
  const statuses = responses.map(({ content }) => content['application/json'].schema.allOf[1]);
  expect(statuses).toEqual(
    shown.map((status) => ({
      type: 'object',
      properties: {
        code: { const: String(status) },
        message: { const: ERROR_KINDS[status as 400].message },
        tags: { const: ERROR_KINDS[status as 400].tags },
      },
    })),
  );
});

describe('generated clients', () => {
  test('can append a path to the server URL, and use a token by default', () => {
    expect(document.servers.map(({ url }: { url: string }) => url)).toEqual(['']);
    expect(document.security[0]).toEqual({ token: [] });
  });

  test('find a valid example for every parameter', () => {
    const parameters = Object.entries<{ example?: unknown; schema: { type?: string; enum?: string[] } }>(
      document.components.parameters,
    );
    expect(parameters.filter(([, { example }]) => example === undefined)).toEqual([]);
    for (const [name, { example, schema }] of parameters) {
      const type = Array.isArray(example) ? 'array' : Number.isInteger(example) ? 'integer' : typeof example;
      const types = schema.enum ? ['string'] : schema.type === 'number' ? ['integer', 'number'] : [schema.type];
      expect([name, types]).toEqual([name, expect.arrayContaining([type])]);
    }
  });
});
