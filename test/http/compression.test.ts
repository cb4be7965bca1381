/** Compression of answers, only for clients that ask for it. */

import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';

const service = useService();
let token = '';

interface Raw {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

function ask(path: string, encoding: string | null, { method = 'GET', body = '' } = {}): Promise<Raw> {
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(body !== '' && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
    ...(encoding !== null && { 'Accept-Encoding': encoding }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(new URL(`/api/v1/${path}`, service.url), { method, headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  for (let n = 0; n < 20; n++) {
    entityOf(await service.admin('POST', 'objects', { id: `zipped-${n}`, name: 'Wörter '.repeat(20) }));
  }
});

test.each(['objects', 'objects?meta=true', 'objects/zipped-1?only=name,id,config', 'openapi.json', 'events?from=1'])(
  'returns the same as without for %s, or is too small',
  async (path) => {
    const plain = await ask(path, null);
    const zipped = await ask(path, 'gzip, deflate, br');
    expect([plain.status, zipped.status]).toEqual([200, 200]);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect([plain, zipped].map(({ headers, body }) => headers['content-length'] === String(body.length))).toEqual([
      true,
      true,
    ]);
    const isLarge = plain.body.length >= LIMITS.compressedBytesMin;
    expect([zipped.headers['content-encoding'], plain.headers.vary]).toEqual(
      isLarge ? ['gzip', 'Accept-Encoding'] : [undefined, undefined],
    );
    expect(String(isLarge ? gunzipSync(zipped.body) : zipped.body)).toBe(String(plain.body));
    if (isLarge) expect(zipped.body.length).toBeLessThan(plain.body.length / 2);
  },
);

test.each([
  ['gzip', 'gzip'],
  ['GZIP;q=0.5', 'gzip'],
  ['br, x-gzip', 'gzip'],
  ['deflate,gzip;q=1.0,*;q=0.1', 'gzip'],
  ['gzip;q=0', undefined],
  ['gzip;q=0.000, br', undefined],
  ['br', undefined],
  ['gzipped', undefined],
  ['identity', undefined],
  ['', undefined],
])('answers Accept-Encoding: %s with %s', async (encoding, expected) => {
  expect((await ask('objects', encoding)).headers['content-encoding']).toBe(expected);
});

test('skips answers with secrets, and refusals', async () => {
  const scopes = Array.from({ length: 90 }, (_, n) => `GET /objects/object-${n}`);
  const created = await ask('tokens', 'gzip', { method: 'POST', body: JSON.stringify({ name: 'x', scopes }) });
  expect([created.status, created.body.length > LIMITS.compressedBytesMin]).toEqual([200, true]);
  expect(created.headers['content-encoding']).toBeUndefined();
  expect((await ask('nothing', 'gzip')).headers['content-encoding']).toBeUndefined();
});

test('answers all of many concurrent requests', async () => {
  const answers = await Promise.all(Array.from({ length: 30 }, () => ask('openapi.json', 'gzip')));
  const texts = answers.map(({ headers, body }) => String(headers['content-encoding'] ? gunzipSync(body) : body));
  expect(new Set(texts).size).toBe(1);
  expect(answers.some(({ headers }) => headers['content-encoding'] === 'gzip')).toBe(true);
});
