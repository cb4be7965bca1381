/** The AsyncAPI document is valid and lists the published events. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { WEBHOOK_EVENTS } from '../../../src/core/event-names.js';
import { EVENT_NAMES } from '../../../src/core/feed.js';
import { createAsyncApi, EVENTS } from '../../../src/openapi/asyncapi.js';

const document = createAsyncApi();
const SCHEMA = 'node_modules/@asyncapi/specs/schemas/3.0.0-without-$id.json';

test('matches the schema of AsyncAPI 3.0', () => {
  const ajv = new Ajv({ strict: false, allErrors: true });
  (addFormats as unknown as (ajv: Ajv) => void)(ajv);
  const validate = ajv.compile(JSON.parse(readFileSync(SCHEMA, 'utf8')));
  validate(document);
  expect(validate.errors).toBeNull();
});

test('contains only valid references', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path as string);
  const isThere = (path: string): boolean =>
    path.split('/').reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document) !==
    undefined;
  expect(references.length).toBeGreaterThan(10);
  expect(references.filter((path) => !isThere(path))).toEqual([]);
});

test('names the published events', () => expect(EVENTS.map(({ name }) => name)).toEqual([...EVENT_NAMES]));

test('describes each message of a webhook by its type, and the headers that verify it', () => {
  interface Message {
    readonly headers: object;
    readonly payload: { readonly anyOf: readonly { readonly properties: { readonly type: { const: string } } }[] };
  }
  const { webhook } = (document.components as { messages: { webhook: Message } }).messages;
  expect(webhook.payload.anyOf.map(({ properties }) => properties.type.const)).toEqual(WEBHOOK_EVENTS);
  const validate = new Ajv({ strict: false }).compile(webhook.headers);
  const signed = { 'webhook-id': 'msg_1', 'webhook-timestamp': '1792929600', 'webhook-signature': 'v1,AAAA' };
  expect(validate(signed)).toBe(true);
  expect(validate({ ...signed, 'webhook-timestamp': 'now' })).toBe(false);
});
