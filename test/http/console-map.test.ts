/** The operator's own map: its origins in the policy of the page, and its tiles in ranges. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { refusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';

const folder = mkdtempSync(join(tmpdir(), 'vigil-map-'));
const file = join(folder, 'country.pmtiles');
const BYTES = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 251));
writeFileSync(file, BYTES);
afterAll(() => rmSync(folder, { recursive: true }));
const service = useService({
  env: {
    MAP_STYLE_URL: 'https://maps.example/style.json?key=a&b="c"',
    MAP_ORIGINS: 'https://tiles.example,https://maps.example',
    MAP_TILES: file,
  },
});

const get = (path: string, headers: Record<string, string> = {}) => fetch(service.url + path, { headers });
const range = (text: string) => get('/console/map.pmtiles', { Range: text });

test('permits the page the origins of the style, and no others', async () => {
  const answer = await get('/', { Accept: 'text/html' });
  const policy = answer.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("connect-src 'self' https://maps.example https://tiles.example;");
  expect(policy).toContain("img-src 'self' data: blob: https://maps.example https://tiles.example;");
  expect(policy).toContain("script-src 'self';");
  expect(await answer.text()).toContain('&quot;https://maps.example/style.json?key=a&amp;b=\\&quot;c\\&quot;&quot;');
});

test('sends a range of the file', async () => {
  const answer = await range('bytes=10-19');
  expect([answer.status, answer.headers.get('content-range')]).toEqual([206, 'bytes 10-19/5000']);
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(BYTES.subarray(10, 20));
});

test('sends what is there of a range that ends behind the file', async () => {
  const answer = await range('bytes=0-16383');
  expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([206, 5_000]);
});

test.each(['', 'bytes=0-', 'bytes=-5', 'bytes=9-3', 'bytes=0-8388608', 'bytes=0-1,4-5', 'lines=0-5'])(
  'refuses %j instead of sending the whole file',
  async (text) => {
    const answer = await range(text);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      ...refusal(400),
      helper: { message: expect.stringMatching(/^Range: /) },
    });
  },
);

describe('whatever the headers are', () => {
  const whole = async (headers: Record<string, string>) => {
    const answer = await get('/console/map.pmtiles', headers);
    const bytes = Buffer.from(await answer.arrayBuffer());
    return { answer, bytes };
  };
  const current = async () => {
    const { answer } = await whole({ Range: 'bytes=0-1' });
    return { etag: answer.headers.get('etag') ?? '', modified: answer.headers.get('last-modified') ?? '' };
  };

  test.each([
    '"another"',
    'W/"another"',
    '*',
    'x',
    '""',
    'Thu, 01 Jan 1970 00:00:00 GMT',
    'Fri, 01 Jan 2100 00:00:00 GMT',
    '2100-01-01',
    '0',
  ])('refuses If-Range: %s, which would replace the range by the whole file', async (condition) => {
    for (const text of ['bytes=0-1', 'bytes=10-4999', 'bytes=4999-4999', 'bytes=0-8388607']) {
      const { answer, bytes } = await whole({ Range: text, 'If-Range': condition });
      expect([answer.status, answer.headers.get('content-range')]).toEqual([400, null]);
      expect(JSON.parse(bytes.toString())).toMatchObject({ helper: { message: expect.stringMatching(/^If-Range: /) } });
    }
  });

  test('sends the range where If-Range names the current file', async () => {
    const { etag, modified } = await current();
    for (const condition of [etag, modified]) {
      const { answer, bytes } = await whole({ Range: 'bytes=3-5', 'If-Range': condition });
      expect([answer.status, bytes]).toEqual([206, BYTES.subarray(3, 6)]);
    }
    for (const condition of [`W/${etag}`, `${etag}x`, `"x", ${etag}`]) {
      expect((await whole({ Range: 'bytes=3-5', 'If-Range': condition })).answer.status).toBe(400);
    }
  });

  test('never sends more than the range', async () => {
    const { etag, modified } = await current();
    const ranges = [
      '',
      'bytes=0-',
      'bytes=-1',
      'bytes=0-1',
      'bytes=0-0,2-2',
      'bytes=0-1, 0-1',
      'Bytes=0-1',
      ' bytes=0-1',
    ];
    const odd = [
      'bytes=0-1,',
      'bytes= 0-1',
      'bytes=0-1;',
      'bytes=00-01',
      'bytes=-0',
      'bytes=5000-5001',
      'items=0-1',
      'none',
    ];
    const conditions: Record<string, string>[] = [
      {},
      { 'If-Range': '"x"' },
      { 'If-Range': etag },
      { 'If-Range': modified },
      { 'If-Match': '*' },
      { 'If-Match': '"x"' },
      { 'If-None-Match': '"x"' },
      { 'If-Unmodified-Since': modified },
      { 'If-Modified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
      { 'Cache-Control': 'no-cache', 'If-Range': '"x"' },
    ];
    for (const text of [...ranges, ...odd]) {
      for (const headers of conditions) {
        const { answer, bytes } = await whole({ ...(text && { Range: text }), ...headers });
        const isJson = answer.headers.get('content-type')?.includes('json');
        expect([text, headers, answer.status, isJson || bytes.length <= 2]).toEqual([
          text,
          headers,
          expect.any(Number),
          true,
        ]);
        expect([206, 400, 304]).toContain(answer.status);
      }
    }
  });

  test('answers 304 to those who have the range', async () => {
    const { etag } = await current();
    const headers = { Range: 'bytes=0-1', 'If-None-Match': etag };
    // `fetch` would add Cache-Control: no-cache.
    const answer = await sendHttp(service.url, { method: 'GET', path: '/console/map.pmtiles', headers });
    expect([answer.status, answer.text]).toEqual([304, '']);
  });
});

test('refuses a range behind the file', async () => {
  expect((await range('bytes=6000-6001')).status).toBe(400);
});
