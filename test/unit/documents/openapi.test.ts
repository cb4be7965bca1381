/** The interface's document: sound in itself, and of exactly the routes that are there. */
import { describe, expect, test } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { createOpenApi } from '../../../src/documents/openapi.js';
import { LIST_PARAMETERS } from '../../../src/documents/parameters.js';
import { ERROR_KINDS } from '../../../src/errors.js';
import { STORES } from '../../../src/model/stores.js';
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

test('has no fault that a linter of such documents knows', async () => {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // The repository names no licence.
      'info-license': 'off',
      'info-license-strict': 'off',
    },
  });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([]);
});

describe('routes', () => {
  test('are those of the service, the generic ones also for each built-in store by itself', () => {
    const known = routes().flatMap((route) => {
      if (!/ \/api\/v1\/:store/.test(route)) return [route];
      const stores = [...STORES.values()].filter(({ readOnly }) => !readOnly || route.startsWith('GET '));
      return [route, ...stores.map(({ name }) => route.replace(':store', name))];
    });
    expect([...documented].sort()).toEqual([...new Set(known)].sort());
  });

  test('are named once', () => {
    const ids = Object.values<Record<string, { operationId?: string }>>(document.paths).flatMap((item) =>
      METHODS.flatMap((method) => item[method]?.operationId ?? []),
    );
    expect(ids).toHaveLength(documented.length);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

test('list parameters are those of docs/reference/http-api.md', () => {
  const shown = readTable(readSection('docs/reference/http-api.md', 'List parameters')).flatMap(([names]) =>
    readCode(names).map((name) => name.replace(/\.<.*/, '')),
  );
  expect(Object.keys(LIST_PARAMETERS)).toEqual(shown.sort(inOrderOf(Object.keys(LIST_PARAMETERS))));

  function inOrderOf(names: readonly string[]) {
    return (a: string, b: string): number => names.indexOf(a) - names.indexOf(b);
  }
});

test('reasons of errors are those of docs/reference/errors.md', () => {
  const shown = readTable(readSection('docs/reference/errors.md', 'Errors'))
    .filter(([status]) => status !== '405')
    .map(([status]) => Number(status));
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

describe('programs that make requests of the document', () => {
  test('can put a path behind the address of the server, and are asked for a token first', () => {
    expect(document.servers.map(({ url }: { url: string }) => url)).toEqual(['']);
    expect(document.security[0]).toEqual({ token: [] });
  });

  test('find an example for every parameter, and it fits', () => {
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
