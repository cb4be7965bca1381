/** The operator's own map: its origins in the policy of the page, and its tiles in ranges. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { refusal } from '../support/answers.js';
import { useService } from '../support/fixture.js';

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
  expect(await answer.text()).toContain('content="https://maps.example/style.json?key=a&amp;b=&quot;c&quot;"');
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

test('refuses a range behind the file', async () => {
  expect((await range('bytes=6000-6001')).status).toBe(400);
});
