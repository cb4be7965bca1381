/** Every status of the table of errors (docs/reference/errors.md), produced for real: the body to the letter, its length, its request id. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Binary, ObjectId } from 'mongodb';
import { entityOf, expectRefusal } from '../support/answers.js';
import { ADMIN, type Answer, useService } from '../support/fixture.js';

const service = useService();
const JSON_TYPE = { 'Content-Type': 'application/json' };
const ROOT = new ObjectId('000000000000000000000001');
let token: string;

/** What comes back for these bytes, until the service ends the connection. */
function exchange(bytes: string): Promise<string> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.setEncoding('utf8').on('data', (text) => {
      received += text;
    });
    socket.on('close', () => resolve(received)).on('error', reject);
  });
}

/** The only answer within what came back. */
function answerIn(received: string): Answer {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const text = rest.join('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => field.split(/: (.*)/s, 2)).map(([name, value]) => [name?.toLowerCase(), value]),
  );
  return { status: Number(line.split(' ')[1]), headers, text, body: text === '' ? null : JSON.parse(text) };
}

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
});

describe('the exact body of an error', () => {
  test.each<[status: number, ask: () => Promise<Answer>, text: string]>([
    [
      401,
      () => service.as(null)('GET', 'objects'),
      '{"success":false,"code":"401","message":"Unauthorized","tags":["error_unauthorized"]}',
    ],
    [
      404,
      () => service.admin('GET', 'objects/none'),
      '{"success":false,"code":"404","message":"Not Found","tags":["error_not_found"]}',
    ],
    [
      400,
      () => service.admin('GET', 'objects?limit=x'),
      '{"success":false,"code":"400","message":"Bad Request","tags":["error_bad_request"],"helper":{"message":"limit: expected a whole number, 0 or more"}}',
    ],
    [
      405,
      () => service.admin('PUT', 'objects'),
      '{"success":false,"code":"405","message":"Method Not Allowed","tags":["error_method_not_allowed"],"helper":{"message":"allowed here: GET, POST, PATCH, DELETE, HEAD"}}',
    ],
    [
      409,
      () => service.admin('POST', 'objects', { id: 'car', name: 'x' }),
      '{"success":false,"code":"409","message":"Conflict","tags":["error_conflict"],"helper":{"message":"id: already taken"}}',
    ],
  ])('is that of the reference: %d', async (status, ask, text) => {
    const answer = await ask();
    expect(answer.text).toBe(text);
    expectRefusal(answer, status);
  });

  test('has both tags for 403, and reveals nothing', async () => {
    await service.admin('POST', 'users', { login: 'viewer', password: 'long enough' });
    const viewer = service.as(await service.tokenOf('viewer', 'long enough'));
    for (const path of ['objects/car', 'objects/none', 'nowhere/x']) {
      const answer = await viewer('DELETE', path);
      expect(answer.text).toBe(
        '{"success":false,"code":"403","message":"Forbidden","tags":["error_credentials","error_forbidden"]}',
      );
      expectRefusal(answer, 403);
    }
  });
});

describe('an unauthenticated request', () => {
  test.each<[method: string, path: string, body: unknown]>([
    ['GET', 'objects', undefined],
    ['GET', 'objects?limit=x', undefined],
    ['GET', 'nowhere', undefined],
    ['PUT', 'objects', {}],
    ['POST', 'objects', '{'],
    ['POST', 'objects', 'x'.repeat(2_000_000)],
    ['GET', 'objects/%ZZ', undefined],
    ['GET', 'auth', undefined],
  ])('is refused before all other checks: %s %s', async (method, path, body) => {
    const anonymous = service.as(null);
    expectRefusal(await anonymous(method, path, body), 401);
    expectRefusal(await service.as('forged')(method, path, body), 401);
  });
});

describe('a body', () => {
  const post = (body: unknown, headers: Record<string, string> = JSON_TYPE) =>
    service.admin('POST', 'labels', body, headers);

  test.each([
    '{',
    '{"a":}',
    "{'a':1}",
    '{"a":1}}',
    '{"a":1,}',
    'undefined',
    '\u0000',
    '{"a":"\n"}',
    '{"a":01}',
    '{"a":NaN}',
    '<a/>',
    'a=1',
  ])('is refused if it is not JSON: %j', async (body) => expectRefusal(await post(body), 400, 'not valid JSON'));

  test.each(['null', '5', '"text"', 'true', ' null ', '[]'])('is refused if it is no object: %s', async (body) => {
    for (const type of ['application/json', 'application/vnd.api+json', 'application/json;charset=utf8']) {
      expectRefusal(await post(body, { 'Content-Type': type }), 400, 'the body must be a JSON object');
    }
  });

  test.each(['application/json;charset=utf8', 'application/json; charset="UTF8"', 'application/json; Charset=Utf-8'])(
    'is taken with the type %s, on every path with a body',
    async (type) => {
      const { body } = await post({ name: 'x' }, { 'Content-Type': type });
      const headers = { 'Content-Type': type };
      const patched = await service.admin('PATCH', `labels/${body._id}`, { name: 'y'.repeat(200) }, headers);
      const many = Array.from({ length: 3_000 }, () => ({ text: 'x'.repeat(30) }));
      const packets = await service.admin('POST', 'objects/car/packets', many, headers);
      const login = await service.as(null)('POST', 'auth/token', ADMIN, headers);
      const formType = type.replace('json', 'x-www-form-urlencoded');
      const form = new URLSearchParams(ADMIN).toString();
      const byForm = await service.as(null)('POST', 'auth/token', form, { 'Content-Type': formType });
      expect([body.name, patched.status, packets.status, login.status, byForm.status]).toEqual([
        'x',
        200,
        200,
        200,
        200,
      ]);
    },
  );

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/xml',
    'json',
    'application/jsonp',
    'text/json',
    // Records of SenML mean something else than their fields.
    'application/senml+json',
    'Application/SenSML+JSON; charset=utf-8',
  ])('is refused with the type %s, on every path with a body', async (type) => {
    for (const [method, path] of [
      ['POST', 'labels'],
      ['PATCH', 'objects/car'],
      ['POST', 'objects/car/packets'],
      ['POST', 'objects/car/commands/go'],
    ] as const) {
      expectRefusal(await service.admin(method, path, '{"name":"n"}', { 'Content-Type': type }), 415, 'JSON');
    }
  });

  test.each([
    'application/json',
    'application/json;charset=utf-8',
    'APPLICATION/JSON; charset=UTF-8',
    'application/vnd.api+json',
    'application/merge-patch+json',
  ])('is accepted with the type %s', async (type) => {
    expect(entityOf(await post('{"name":"ж"}', { 'Content-Type': type })).name).toBe('ж');
  });

  test('is refused if it is compressed or in another character set', async () => {
    const packed = gzipSync('{"name":"n"}').toString('latin1');
    for (const encoding of ['gzip', 'deflate', 'br', 'zstd', 'x']) {
      expectRefusal(await post(packed, { ...JSON_TYPE, 'Content-Encoding': encoding }), 415);
    }
    expectRefusal(await post('{"name":"n"}', { 'Content-Type': 'application/json; charset=latin1' }), 415);
    expect((await post('{"name":"n"}', { ...JSON_TYPE, 'Content-Encoding': 'identity' })).status).toBe(200);
  });

  test('is refused above the limit of its path', async () => {
    const sized = (bytes: number) => `{"name":"n"${' '.repeat(bytes - 12)}}`;
    expect((await post(sized(1_048_576))).status).toBe(200);
    for (const [method, path] of [
      ['POST', 'labels'],
      ['PATCH', 'objects/car'],
      ['POST', 'objects/car/commands/go'],
    ] as const) {
      expectRefusal(await service.admin(method, path, sized(1_048_577)), 413, 'larger');
    }
    expect((await service.admin('POST', 'objects/car/packets', sized(2_000_000))).status).toBe(200);
    expectRefusal(await service.admin('POST', 'objects/car/packets', sized(16_777_217)), 413, 'larger');
    expectRefusal(await service.as(null)('POST', 'auth/token', sized(5_000)), 413, 'larger');
  });

  test('is refused if the entity became too large, and leaves the entity unchanged', async () => {
    const text = 'x'.repeat(65_000);
    const part = () => Array.from({ length: 8 }, () => text);
    const { _id, success, ...before } = (await post({ a: part() })).body;
    const answer = await service.admin('PATCH', `labels/${_id}`, { b: part(), c: part() });
    expectRefusal(answer, 413);
    const after = entityOf(await service.admin('GET', `labels/${_id}`));
    expect([success, after]).toEqual([true, { _id, ...before }]);
  });
});

describe('an unusual but valid request', () => {
  test.each<[method: string, path: string, headers: Record<string, string>]>([
    ['GET', 'objects', JSON_TYPE],
    ['GET', 'objects/car', JSON_TYPE],
    ['GET', 'objects/car', { 'Content-Type': 'text/plain' }],
    ['GET', 'objects/', {}],
    ['GET', 'objects/car/', {}],
    ['GET', 'objects/car/packets/', {}],
    ['GET', 'objects/?limit=1', {}],
    ['GET', 'Objects/car/Packets', {}],
    ['GET', '/API/V1/objects', {}],
    ['GET', 'objects?', {}],
    ['GET', 'objects?&&==&%', {}],
    ['PATCH', 'objects/car/?x=1', JSON_TYPE],
    ['POST', 'labels/?limit=-1', JSON_TYPE],
    ['GET', 'auth/', {}],
  ])('is answered: %s %s %j', async (method, path, headers) => {
    expect((await service.admin(method, path, undefined, headers)).status).toBe(200);
  });

  test('is answered: DELETE with a content type and no body', async () => {
    const { _id } = entityOf(await service.admin('POST', 'labels', {}));
    entityOf(await service.admin('DELETE', `labels/${_id}/`, undefined, JSON_TYPE));
  });

  test.each(['/', '/api/v1', '/api/v1/'])('is answered without authentication: GET and HEAD %s', async (path) => {
    const anonymous = service.as(null);
    const got = await anonymous('GET', path);
    const head = await anonymous('HEAD', path);
    expect([got.status, head.status, got.body.success]).toEqual([200, 200, true]);
    expect(got.headers['content-length']).toBe(head.headers['content-length']);
    const posted = await anonymous('POST', path, {});
    expectRefusal(posted, 405, 'GET');
    expect(posted.headers.allow).toBe('GET, HEAD');
  });

  test('is answered: HEAD like GET, with the same headers and no body', async () => {
    for (const path of ['objects', 'objects/car', 'objects/car/packets?limit=1', 'objects?meta=true']) {
      const got = await service.admin('GET', path);
      const head = await service.admin('HEAD', path);
      expect([head.status, head.text ?? '']).toEqual([200, '']);
      expect(head.headers['content-length']).toBe(got.headers['content-length']);
    }
    expect((await service.admin('HEAD', 'objects/none')).status).toBe(404);
  });

  test.each([
    '/nowhere',
    '/objects',
    '/objects/car',
    '/api',
    '/api/v2/objects',
    '/api/v1/objects/car/nothing',
    '/api/v1/objects/car/packets/x/y',
    '/favicon.ico',
    '/.env',
  ])('is answered with 404: %s', async (path) => expectRefusal(await service.admin('GET', path), 404));
});

describe('a request id', () => {
  test("is the client's, if that is valid", async () => {
    const given = 'abc-DEF_0123.:9';
    expect((await service.admin('GET', 'objects', undefined, { 'X-Request-Id': given })).headers['x-request-id']).toBe(
      given,
    );
    for (const wrong of ['short', 'a b c d e f g h', 'x'.repeat(129), '<script>alert(1)</script>']) {
      const requestId = (await service.admin('GET', 'objects/none', undefined, { 'X-Request-Id': wrong })).headers[
        'x-request-id'
      ];
      expect(requestId).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test('is unique for each request, and in the log', async () => {
    const ids = (await Promise.all([1, 2, 3].map(() => service.admin('GET', 'objects')))).map(
      ({ headers }) => headers['x-request-id'],
    );
    expect(new Set(ids).size).toBe(3);
    const logged = service.logLines.join('\n');
    for (const id of ids) expect(logged).toContain(id);
  });
});

describe('a malformed HTTP request', () => {
  test.each<[what: string, bytes: string, status: number]>([
    ['a line of noise', 'hello\r\n\r\n', 400],
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', 400],
    ['an unknown method', 'FETCH / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['a header without a name', 'GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n', 400],
    ['a length that is none', 'POST /api/v1/objects HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n', 400],
    [
      'two lengths',
      'POST /api/v1/objects HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      400,
    ],
    [
      'a length beside chunks',
      'POST /api/v1/objects HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['headers too large', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 400],
    ['no host', 'GET /api/v1/objects HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['no host, of old', 'GET /api/v1/objects HTTP/1.0\r\n\r\n', 401],
    [
      'an expectation of ours',
      'GET /api/v1/objects HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n',
      401,
    ],
    ['an unknown address', 'GET http://elsewhere/api/v1/objects HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 401],
    ['OPTIONS of everything', 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 404],
  ])('is answered: %s', async (_, bytes, status) => expectRefusal(answerIn(await exchange(bytes)), status));

  test('is answered: a body with invalid chunks', async () => {
    const head = `POST /api/v1/labels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
    expectRefusal(
      answerIn(await exchange(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\nnoise\r\n\r\n`)),
      400,
    );
  });

  test('accepts a body in chunks, and one after a 100-continue', async () => {
    const head = `POST /api/v1/labels HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nConnection: close\r\n`;
    entityOf(answerIn(await exchange(`${head}Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n`)));
    const received = await exchange(`${head}Expect: 100-continue\r\nContent-Length: 7\r\n\r\n{"a":1}`);
    expect(received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    entityOf(answerIn(received.replace(/^.*?\r\n\r\n/, '')));
  });
});

test('answers 429 with Retry-After after too many failed logins, and accepts other users', async () => {
  const anonymous = service.as(null);
  for (let attempt = 0; attempt < 10; attempt++) {
    expectRefusal(await anonymous('POST', 'auth/token', { login: 'mallory', password: `guess ${attempt}` }), 401);
  }
  const answer = await anonymous('POST', 'auth/token', { login: 'mallory', password: 'guess again' });
  expectRefusal(answer, 429, 'failed logins');
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  expect(await service.tokenOf(ADMIN.login, ADMIN.password)).toEqual(expect.any(String));
});

test('answers 500 without the reason, and logs it', async () => {
  const secret = randomBytes(8).toString('hex');
  // What the service never stores, and so cannot show.
  const odd = { [secret]: new Binary(Buffer.from(secret)), branch: [ROOT], owner: ROOT, access: [] };
  const { insertedId } = await service.client.db().collection('geofences').insertOne(odd);
  for (const path of ['geofences', `geofences/${insertedId}`]) {
    const answer = await service.admin('GET', path);
    expect(answer.text).toBe(
      '{"success":false,"code":"500","message":"Internal Server Error","tags":["error_internal"]}',
    );
    expectRefusal(answer, 500);
    const line = service.logLines.find(
      (text) => text.includes(answer.headers['x-request-id'] as string) && text.includes('internal error'),
    );
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      level: expect.anything(),
      err: { stack: expect.stringContaining('BSON type') },
    });
  }
  await service.client.db().collection('geofences').deleteOne({ _id: insertedId });
  expect((await service.admin('GET', 'geofences')).status).toBe(200);
});
