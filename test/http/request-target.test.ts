/** `POST http://host/api/…` is handled like `POST /api/…` everywhere. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { createPerson, openSession } from '../support/callers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { until } from '../support/until.js';
import { openWire, type WireAnswer } from '../support/wire.js';

const service = useService();
let token: string;
let asked = 0;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
});

interface Asked {
  readonly headers?: Record<string, string>;
  readonly body?: object;
}

/** The answer to a request line; `requestId` names the request. */
async function ask(line: string, { headers = {}, body }: Asked = {}): Promise<WireAnswer & { requestId: string }> {
  const requestId = `target-${asked++}-request`;
  const text = body === undefined ? '' : JSON.stringify(body);
  const sent = {
    Host: 'x',
    Connection: 'close',
    'X-Request-Id': requestId,
    ...(body !== undefined && { 'Content-Type': 'application/json', 'Content-Length': String(text.length) }),
    ...headers,
  };
  const head = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`);
  const wire = await openWire(service.url);
  await wire.send(`${line} HTTP/1.1\r\n${head.join('')}\r\n${text}`);
  await wire.ended();
  wire.socket.destroy();
  return { ...(wire.answers()[0] as WireAnswer), requestId };
}

const bearer = () => ({ Authorization: `Bearer ${token}` });

describe.each(['http://x', 'HTTP://elsewhere:8080', 'https://x', 'http://user:word@x', 'wss://x'])(
  'a request line with the origin %s',
  (origin) => {
    test.each([
      ['/api/v1/objects/car', 200],
      ['/api/v1/objects/none', 404],
      ['/api/v1/objects?limit=1', 200],
      ['/api/v1/users', 200],
      ['', 200],
      ['?x=1', 200],
      ['/nowhere', 404],
      ['/socket.io/?EIO=4&transport=polling', 200],
    ])('is answered like the path alone: %s', async (path, status) => {
      const answer = await ask(`GET ${origin}${path}`, { headers: bearer() });
      expect(answer.status).toBe(status);
      if (path.startsWith('/socket.io/')) return;
      const route = () =>
        service.logLines.find((line) => line.includes(answer.requestId) && line.includes('"msg":"request"'));
      const plain = await ask(`GET ${path.startsWith('/') ? path : `/${path}`}`, { headers: bearer() });
      expect(plain.text).toBe(answer.text);
      const plainRoute = () =>
        service.logLines.find((line) => line.includes(plain.requestId) && line.includes('"msg":"request"'));
      await until(() => route() !== undefined && plainRoute() !== undefined, 'both lines of the log');
      expect(JSON.parse(route() as string).route).toBe(JSON.parse(plainRoute() as string).route);
    });
  },
);

describe('security events', () => {
  const auditEventOf = async (requestId: string) => {
    const find = () => service.client.db().collection('audit').findOne({ requestId });
    await until(find, 'the event');
    return find();
  };

  test('record logins, failed logins and changes of permissions', async () => {
    const login = await ask('POST http://x/api/v1/auth/token', { body: ADMIN });
    expect([login.status, await auditEventOf(login.requestId)]).toMatchObject([
      200,
      { action: 'login', path: '/auth/token' },
    ]);
    const failed = await ask('POST http://x/api/v1/auth', { body: { ...ADMIN, password: 'wrong' } });
    expect([failed.status, await auditEventOf(failed.requestId)]).toMatchObject([
      401,
      { action: 'login failed', path: '/auth' },
    ]);
    const made = await ask('POST http://x/api/v1/roles', { headers: bearer(), body: { name: 'r', credentials: [] } });
    expect([made.status, await auditEventOf(made.requestId)]).toMatchObject([
      200,
      { action: 'rights changed', path: '/roles' },
    ]);
    const person = await createPerson(service);
    const cookie = await openSession(service, person);
    const left = await ask('DELETE http://x/api/v1/auth', { headers: { Cookie: cookie } });
    expect([left.status, await auditEventOf(left.requestId)]).toMatchObject([200, { action: 'logout', path: '/auth' }]);
  });

  test('record forbidden requests with a shortened path', async () => {
    const viewer = await createPerson(service);
    const headers = { Authorization: `Bearer ${await service.tokenOf(viewer.login, viewer.password)}` };
    const answer = await ask(`DELETE http://x/api/v1/labels/${'y'.repeat(3_000)}`, { headers });
    const event = await auditEventOf(answer.requestId);
    expect([answer.status, event]).toMatchObject([403, { action: 'forbidden' }]);
    expect(event?.path).toBe(`/labels/${'y'.repeat(256 - '/labels/'.length)}`);
  });
});

test('takes the host from the target, but still requires the header', async () => {
  const person = await createPerson(service);
  const cookie = await openSession(service, person);
  const change = (line: string, host: string, origin: string) =>
    ask(line, { headers: { Cookie: cookie, Host: host, Origin: origin }, body: { login: 'x', password: 'y' } });
  const line = 'POST http://vigil.example/api/v1/auth/token';
  expect((await change(line, 'other.example', 'http://vigil.example')).status).toBe(401);
  expect((await change(line, 'other.example', 'http://other.example')).status).toBe(403);
  const wire = await openWire(service.url);
  await wire.send('GET http://vigil.example/api/v1 HTTP/1.1\r\nConnection: close\r\n\r\n');
  await wire.ended();
  expect(wire.answers()[0]?.status).toBe(400);
});
