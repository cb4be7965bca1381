/** The types that are printed from JSON Schemas and from the documents of the interface. */
import { describe, expect, test } from '@jest/globals';
import { printClientTypes } from '../../../scripts/types/print-client-types.js';
import { printSchema } from '../../../src/cli/print-schema.js';
import { createAsyncApi } from '../../../src/openapi/asyncapi.js';
import { createOpenApi } from '../../../src/openapi/openapi.js';

describe('a JSON Schema', () => {
  test.each([
    [{}, 'unknown'],
    [{ type: 'integer' }, 'number'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ const: "it's" }, "'it\\'s'"],
    [{ enum: ['a', 1, null] }, "'a' | 1 | null"],
    [{ type: 'array', items: { type: ['string', 'null'] } }, '(string | null)[]'],
    [{ $ref: '#/components/schemas/Packet' }, 'Packet'],
    [{ allOf: [{ $ref: '#/a/A' }, { description: 'x' }] }, 'A'],
    [{ allOf: [{ $ref: '#/a/A' }], required: ['b'] }, "WithRequired<A, 'b'>"],
    [{ anyOf: [{ type: 'array', items: {} }, { type: 'null' }] }, 'unknown[] | null'],
    [{ type: 'object' }, '{ [name: string]: unknown }'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, '{ [name: string]: number }'],
    [{ properties: { 'a-b': {} }, required: ['a-b'] }, "{\n  'a-b': unknown;\n}"],
    [
      { properties: { a: { description: 'x */ y' } }, additionalProperties: true },
      '{\n  /** x *\\/ y */\n  a?: unknown;\n  [name: string]: unknown;\n}',
    ],
  ])('converts %j to %s', (schema, type) => expect(printSchema(schema)).toBe(type));
});

describe('the types of the client', () => {
  const openApi = createOpenApi() as { paths: Record<string, object>; components: { schemas: object } };
  const text = printClientTypes(openApi, createAsyncApi());

  test('hold every schema and every route', () => {
    for (const name of Object.keys(openApi.components.schemas)) expect(text).toContain(`export type ${name} = `);
    const routes = Object.entries(openApi.paths).flatMap(([path, item]) =>
      Object.keys(item).flatMap((method) => (method === 'parameters' ? [] : [`'${method.toUpperCase()} ${path}': {`])),
    );
    expect(routes.filter((route) => !text.includes(route))).toEqual([]);
  });

  test('hold every event', () => {
    expect(text).toMatch(/interface EventPayloads \{[\s\S]*'object-packet': Packet;[\s\S]*gap: \{/);
  });
});
