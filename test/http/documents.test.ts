/** The API documents and the documentation page: public, complete, and without foreign content. */
import { expect, test } from '@jest/globals';
import { createAsyncApi } from '../../src/openapi/asyncapi.js';
import { createOpenApi } from '../../src/openapi/openapi.js';
import { expectRefusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';

const service = useService();

test.each([
  ['openapi.json', createOpenApi],
  ['asyncapi.json', createAsyncApi],
])('describes %s', async (name, create) => {
  const answer = await service.as(null)('GET', name);
  expect({ status: answer.status, body: answer.body }).toEqual({
    status: 200,
    body: JSON.parse(JSON.stringify(create())),
  });
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(answer.text)),
  });
  expectRefusal(await service.as(null)('DELETE', name), 405, 'GET');
});

test('serves the page with and without a slash, and behind a proxy', async () => {
  const bare = await service.as(null)('GET', '/docs?from=here');
  expect([bare.status, bare.headers.location]).toEqual([308, 'docs/']);
  expectRefusal(await service.as(null)('POST', '/docs', {}), 405, 'GET');
});

test('runs only own scripts on the page, and sends no requests to other hosts', async () => {
  const page = await service.as(null)('GET', '/docs/');
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  const scripts = [...page.text.matchAll(/<script([^>]*)>([^<]*)/g)];
  expect(
    scripts.map(([, attributes, text]) => [/src="(\.\/[\w.-]+)"/.exec(attributes ?? '')?.[1], text?.trim()]),
  ).toEqual(['bundle', 'standalone-preset', 'init'].map((part) => [`./swagger-ui-${part}.js`, '']));
  expect(page.text).not.toMatch(/\son\w+=|javascript:/i);
  const places = [...page.text.matchAll(/(?:src|href)="([^"#]+)/g)].map(([, place]) => place as string);
  expect(places.filter((place) => !place.startsWith('./'))).toEqual([]);
  for (const place of new Set(places)) {
    const part = await service.as(null)('GET', `/docs/${place.slice(2)}`);
    expect([place, part.status, part.headers['content-security-policy']]).toEqual([
      place,
      200,
      page.headers['content-security-policy'],
    ]);
  }
  const policy = new Map(
    String(page.headers['content-security-policy'])
      .split('; ')
      .map((rule) => [rule.split(' ')[0], rule.split(' ').slice(1)]),
  );
  expect(policy.get('script-src')).toEqual(["'self'"]);
  expect([policy.get('default-src'), policy.get('connect-src')]).toEqual([["'none'"], ["'self'"]]);
  expect([...policy.values()].flat().filter((source) => source?.includes('.') || source === 'https:')).toEqual([]);
  const script = await service.as(null)('GET', '/docs/swagger-ui-init.js');
  expect(script.text).toContain('"swaggerUrl": "../api/v1/openapi.json"');
});

test('serves no other files of the package of the page', async () => {
  for (const file of ['', 'x', 'package.json', 'swagger-initializer.js', 'oauth2-redirect.html', '..%2fpackage.json']) {
    const path = file === '' ? '/docs/index.html' : `/docs/${file}`;
    expectRefusal(await service.as(null)('GET', path), 404);
  }
});
