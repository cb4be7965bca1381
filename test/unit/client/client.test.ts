/** The client without a service: its size, what it spells, what it reads. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { toPath, toQueryString } from '../../../src/client/query.js';
import { createParser } from '../../../src/client/server-sent-events.js';
import { toBackoffMs } from '../../../src/client/waiting.js';
import { sourceFiles } from '../../support/docs/files.js';
import { importsOf } from '../../support/docs/imports.js';

const LARGEST_BYTES = 15 * 1_024;

describe('as a package', () => {
  test(`is at most ${LARGEST_BYTES} bytes, compressed`, async () => {
    const options = { bundle: true, minify: true, write: false, format: 'esm', platform: 'neutral' } as const;
    const { outputFiles } = await build({ entryPoints: ['src/client/client.ts'], ...options });
    const bytes = gzipSync(outputFiles[0]?.contents as Uint8Array, { level: 9 }).length;
    expect(bytes).toBeGreaterThan(1_000);
    expect(bytes).toBeLessThanOrEqual(LARGEST_BYTES);
  });

  test('imports nothing but itself, so that it runs in browsers and in Node.js', () => {
    const foreign = sourceFiles('src/client')
      .flatMap(importsOf)
      .filter(({ to }) => !to.startsWith('src/client/'));
    expect(foreign).toEqual([]);
  });
});

describe('paths and queries', () => {
  test('encodes the parameters of a path', () => {
    expect(toPath('/objects/{id}/packets/{packet}', { id: 'a/b ä', packet: '?' })).toBe(
      '/objects/a%2Fb%20%C3%A4/packets/%3F',
    );
  });

  test.each([{}, { id: '' }, { id: '.' }, { id: '..' }])('refuses a path with the parameters %j', (parameters) => {
    expect(() => toPath('/objects/{id}', parameters as Record<string, string>)).toThrow(TypeError);
  });

  test.each([
    ['nothing', undefined, ''],
    ['absent values', { limit: undefined }, ''],
    ['lists', { only: ['id', 'state.speed'] }, '?only=id%2Cstate.speed'],
    [
      'names with commas, quotes and white space',
      { params: ['a,b', 'air temperature', ' ', '"', '5" pipe', 'é'] },
      '?params=%22a%2Cb%22%2Cair+temperature%2C%22+%22%2C%22%22%22%22%2C5%22+pipe%2C%C3%A9',
    ],
    ['dates', { from: new Date(5), to: '2026-01-01' }, '?from=1970-01-01T00%3A00%3A00.005Z&to=2026-01-01'],
    ['numbers and booleans', { limit: 0, meta: true }, '?limit=0&meta=true'],
    [
      'filters',
      { where: { active: true, 'config.plate': ['A,B', 7, null] } },
      '?where.active=true&where.config.plate=%22A%2CB%22%2C7%2Cnull',
    ],
    ['text with quotes', { where: { name: '5" pipe' } }, '?where.name=5%22+pipe'],
    ['text in quotes', { where: { name: '"5"' } }, '?where.name=%22%22%225%22%22%22'],
    ['text with quotes and commas', { where: { name: 'a",b' } }, '?where.name=%22a%22%22%2Cb%22'],
  ])('spells %s', (_, query, text) => expect(toQueryString(query)).toBe(text));
});

describe('server-sent events', () => {
  const STREAM = [
    ': live\nid: p1\n\n',
    'id: p2\nevent: object-packet\ndata: {"text":"a: b\\n\\n"}\n\n',
    'event: gap\ndata: {"reason":"history gone","from":"p0"}\n\n',
    ': alive\nid: p3\n\n',
    ': nothing\n\n',
  ].join('');
  const SIGNALS = [
    { kind: 'live', position: 'p1' },
    { kind: 'event', event: { event: 'object-packet', data: { text: 'a: b\n\n' }, position: 'p2' } },
    { kind: 'event', event: { event: 'gap', data: { reason: 'history gone', from: 'p0' }, position: null } },
    { kind: 'position', position: 'p3' },
  ];

  test('reads a stream wherever it is cut into pieces', () => {
    for (let first = 0; first <= STREAM.length; first++) {
      const parse = createParser();
      const pieces = [STREAM.slice(0, first), STREAM.slice(first, first + 3), STREAM.slice(first + 3)];
      expect(pieces.flatMap(parse)).toEqual(SIGNALS);
    }
  });

  test('keeps back an event that is not complete', () => {
    expect(createParser()('id: p2\nevent: object-packet\ndata: {}\n')).toEqual([]);
  });
});

test('waits longer each time, up to a bound, and never the same for all', () => {
  expect([1, 2, 3].map((attempt) => toBackoffMs(attempt, 500, 1))).toEqual([500, 1_000, 2_000]);
  expect(toBackoffMs(50, 500, 1)).toBe(30_000);
  expect(toBackoffMs(1, 500, 0)).toBe(250);
});
