/** The document of the events: sound in itself, and of the events that are told. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { createAsyncApi, EVENTS } from '../../../src/documents/asyncapi.js';
import { EVENT_NAMES } from '../../../src/model/feed.js';

const document = createAsyncApi();
const SCHEMA = 'node_modules/@asyncapi/specs/schemas/3.0.0-without-$id.json';

test('is one, as the schema of AsyncAPI 3.0 has it', () => {
  const ajv = new Ajv({ strict: false, allErrors: true });
  (addFormats as unknown as (ajv: Ajv) => void)(ajv);
  const validate = ajv.compile(JSON.parse(readFileSync(SCHEMA, 'utf8')));
  validate(document);
  expect(validate.errors).toBeNull();
});

test('refers only to what is there', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path as string);
  const isThere = (path: string): boolean =>
    path.split('/').reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document) !==
    undefined;
  expect(references.length).toBeGreaterThan(10);
  expect(references.filter((path) => !isThere(path))).toEqual([]);
});

test('names the events that are told', () => expect(EVENTS.map(({ name }) => name)).toEqual([...EVENT_NAMES]));
