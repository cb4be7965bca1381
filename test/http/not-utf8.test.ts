/** Bytes that are not UTF-8 are refused with 400 in bodies, forms and URLs. */
import { request } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, useService } from '../support/fixture.js';

const service = useService();
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
});

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly body?: Buffer;
  readonly type?: string;
}

/** Sends bytes as they are, which no client of tests does. */
function send({
  method = 'POST',
  path,
  body,
  type = 'application/json',
}: Sent): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(service.url);
  const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': type }) };
  return new Promise((resolve, reject) => {
    const call = request({ hostname, port, method, path: `/api/v1/${path}`, headers }, (answer) => {
      let text = '';
      answer.on('data', (chunk) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    call.on('error', reject).end(body);
  });
}

const BAD: [what: string, bytes: number[]][] = [
  ['a byte that none begins with', [0xff]],
  ['a byte that goes on with nothing', [0x80]],
  ['a character that is cut off', [0xe2, 0x82]],
  ['a longer form than need be', [0xc0, 0xaf]],
  ['a surrogate', [0xed, 0xa0, 0x80]],
  ['more than Unicode has', [0xf4, 0x90, 0x80, 0x80]],
];
const around = (before: string, bytes: readonly number[], after: string): Buffer =>
  Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
const percent = (bytes: readonly number[]): string =>
  bytes.map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');

const countLabels = (): Promise<number> => service.client.db().collection('labels').countDocuments();

describe.each(BAD)('%s', (_, bytes) => {
  test('is refused in a body', async () => {
    const before = await countLabels();
    const bodies: [path: string, body: Buffer, method?: string][] = [
      ['labels', around('{"name":"', bytes, '"}')],
      ['labels', around('{"', bytes, '":1}')],
      ['labels', around(`{"a":"${'x'.repeat(LIMITS.bigBodyBytes)}","name":"`, bytes, '"}')],
      ['objects/car', around('{"status":"', bytes, '"}'), 'PATCH'],
      ['objects/car/packets', around('{"text":"', bytes, '"}')],
      ['objects/car/packets', around('[{},{"text":"', bytes, '"}]')],
      ['objects/car/commands/go', around('{"text":"', bytes, '"}')],
      ['auth', around('{"login":"', bytes, '","password":"x"}')],
      ['auth/token', around('{"login":"x","password":"', bytes, '"}')],
    ];
    for (const [path, body, method = 'POST'] of bodies) {
      const { status, text } = await send({ method, path, body });
      expect([path, status, JSON.parse(text).helper?.message]).toEqual([path, 400, 'the body is not UTF-8']);
    }
    expect(await countLabels()).toBe(before);
    expect((await service.admin('GET', 'objects/car')).body).not.toHaveProperty('state');
  });

  test('is refused in a login form, as a byte and percent-encoded', async () => {
    const type = 'application/x-www-form-urlencoded';
    for (const body of [around('login=', bytes, '&password=x'), Buffer.from(`login=x&password=${percent(bytes)}`)]) {
      const { status, text } = await send({ path: 'auth', body, type });
      expect([status, JSON.parse(text).helper?.message]).toEqual([400, 'the body is not UTF-8']);
    }
  });

  test('is refused in a URL, in the path and in the query', async () => {
    for (const path of [
      `labels?search=${percent(bytes)}`,
      `labels?where.${percent(bytes)}=1`,
      `labels?where.name=${percent(bytes)}`,
      `labels?ignored=${percent(bytes)}`,
      `objects/${percent(bytes)}`,
      `${percent(bytes)}`,
    ]) {
      const { status } = await send({ method: 'GET', path });
      expect([path, status]).toEqual([path, 400]);
    }
  });
});

test('accepts UTF-8 in bodies, forms and URLs, and a single %', async () => {
  const name = 'ü€🚗\ufffd';
  expect((await send({ path: 'labels', body: Buffer.from(JSON.stringify({ name })) })).status).toBe(200);
  const found = await send({ method: 'GET', path: `labels?search=${encodeURIComponent(name)}` });
  expect(JSON.parse(found.text).map((label: { name: string }) => label.name)).toEqual([name]);
  expect((await send({ method: 'GET', path: 'labels?search=100%' })).status).toBe(200);
  const login = { login: 'percent', password: '100% of it, ü' };
  await service.admin('POST', 'users', login);
  for (const password of ['100% of it, ü', '100%25 of it, %C3%BC']) {
    const body = Buffer.from(`login=percent&password=${password.replaceAll(' ', '+')}`);
    expect((await send({ path: 'auth', body, type: 'application/x-www-form-urlencoded' })).status).toBe(200);
  }
});
