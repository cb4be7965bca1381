/**
 * Protection of browsers against pages of foreign origins that use the cookie, read answers or listen. Long because requests,
 * logins and every transport of live events are held to the same pages.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import WebSocket from 'ws';
import { openSession, setCookiesOf, withCookie } from '../support/callers.js';
import { ADMIN, type Answer, startTestService, type TestService, useService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';
import { isSoak } from '../support/runs.js';
import { openWire } from '../support/wire.js';

const service = useService();
const FOREIGN: Record<string, string>[] = [
  { Origin: 'https://evil.example' },
  { Origin: 'null' },
  { Origin: '' },
  { Origin: 'file://' },
  { Origin: 'http://localhost' },
  { Origin: 'http://127.0.0.1' },
  { Origin: 'http://127.0.0.1.evil.example' },
  { Origin: 'not an origin' },
  { 'Sec-Fetch-Site': 'cross-site' },
  { 'Sec-Fetch-Site': 'same-site' },
  { 'Sec-Fetch-Site': 'same-origin, same-site' },
  { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'same-origin', Referer: 'http://127.0.0.1/' },
];

describe('a request with the cookie', () => {
  let cookie: string;
  let objectId: string;
  let shared: string;
  beforeAll(async () => {
    objectId = (await service.admin('POST', 'objects', { id: 'target', name: 'Target' })).body._id;
    shared = (await service.admin('GET', 'auth')).body._id;
    await service.admin('POST', `objects/${objectId}/access`, { user: shared });
  });
  beforeEach(async () => {
    cookie = await openSession(service, ADMIN);
  });

  const routes = (): [string, string, object | undefined][] => [
    ['POST', 'labels', { name: 'planted' }],
    ['PATCH', `objects/${objectId}`, { status: 'planted' }],
    ['DELETE', `objects/${objectId}`, undefined],
    ['POST', `objects/${objectId}/packets`, { planted: true }],
    ['POST', `objects/${objectId}/commands/stop`, {}],
    ['POST', `/objects/${objectId}/commands/stop`, {}],
    ['POST', `objects/${objectId}/commands/stop`, undefined],
    ['POST', `/objects/${objectId}/commands/stop`, undefined],
    ['POST', `objects/${objectId}/access`, { user: shared }],
    ['DELETE', `objects/${objectId}/access/${shared}`, undefined],
    ['POST', 'users', { login: 'planted', password: 'planted planted' }],
    ['POST', 'tokens', { name: 'planted' }],
    ['DELETE', 'auth', undefined],
  ];

  /** Everything that is stored, but for what counts logins and what tells of refusals. */
  async function everything(): Promise<string> {
    const db = service.client.db();
    const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name).sort();
    // Signs of life, positions, counts and records are written all the time.
    const written = ['attempts', 'audit', 'instances', 'partitions', 'processors'];
    const kept = names.filter((name) => !written.includes(name));
    // As are the leases of who looks after old packets, once a minute.
    const isLasting = { _id: { $not: /^lease: / } } as object;
    const all = kept.map((name) => db.collection(name).find(isLasting).sort({ _id: 1 }));
    return JSON.stringify(await Promise.all(all.map((cursor) => cursor.toArray())));
  }

  test.each(FOREIGN.map((headers) => [JSON.stringify(headers), headers] as const))(
    'is refused from a foreign page without writing anything: %s',
    async (_, headers) => {
      const before = await everything();
      for (const [method, path, body] of routes()) {
        const answer = await withCookie(service, cookie)(method, path, body, headers);
        expect([method, path, answer.status, answer.body.tags]).toEqual([
          method,
          path,
          403,
          ['error_credentials', 'error_forbidden'],
        ]);
      }
      expect(await everything()).toBe(before);
      // Reading changes nothing; the page cannot see the answer.
      const read = await withCookie(service, cookie)('GET', 'objects', undefined, headers);
      expect([read.status, read.headers['access-control-allow-origin']]).toEqual([200, undefined]);
    },
  );

  test('is refused if a form could have sent it, even without an origin', async () => {
    const before = await everything();
    const boundary = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n';
    const kinds: [string, string][] = [
      ['application/x-www-form-urlencoded', 'name=planted'],
      ['text/plain', '{"name":"planted","x":"="}'],
      ['text/plain; charset=application/json', '{"name":"planted"}'],
      ['text/plain;application/json', '{"name":"planted"}'],
      ['multipart/form-data; boundary=x', boundary],
      ['application/jsonp', '{"name":"planted"}'],
    ];
    const origins = [{}, ...FOREIGN];
    for (const [at, [type, body]] of kinds.entries()) {
      // Every kind from a page of one's own and from a foreign one; in the slow project from each of those.
      for (const headers of isSoak ? origins : [{}, origins[1 + (at % FOREIGN.length)] as object]) {
        for (const [method, path, given] of routes().filter(([method]) => method !== 'DELETE')) {
          const sent = { ...headers, 'Content-Type': type };
          const { status } = await withCookie(service, cookie)(method, path, body, sent);
          const isForeign = Object.keys(headers).length > 0;
          expect([type, method, path, given, status]).toEqual([type, method, path, given, isForeign ? 403 : 415]);
        }
      }
    }
    expect(await everything()).toBe(before);
  });

  test('is accepted from an own page, and from clients without pages', async () => {
    for (const headers of [
      {},
      { Origin: service.url },
      { Origin: service.url, 'Sec-Fetch-Site': 'same-origin' },
      { 'Sec-Fetch-Site': 'none' },
      { 'Sec-Fetch-Site': 'same-origin' },
    ] as Record<string, string>[]) {
      const call = withCookie(service, cookie);
      expect((await call('POST', 'labels', { name: 'mine' }, headers)).status).toBe(200);
      expect((await call('POST', `/objects/${objectId}/commands/stop`, undefined, headers)).status).toBe(200);
    }
  });

  test('is accepted from any page with a token instead', async () => {
    const answer = await service.admin('POST', 'labels', { name: 'x' }, { Origin: 'https://evil.example' });
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([200, undefined]);
  });

  test('is refused for a login from a foreign page, which could log the user in to a different account', async () => {
    const form = new URLSearchParams(ADMIN).toString();
    for (const headers of FOREIGN) {
      for (const path of ['auth', 'auth/token']) {
        for (const [body, type] of [
          [ADMIN, 'application/json'],
          [form, 'application/x-www-form-urlencoded'],
        ] as const) {
          const answer = await service.as(null)('POST', path, body, { ...headers, 'Content-Type': type });
          expect([answer.status, setCookiesOf(answer)]).toEqual([403, []]);
        }
      }
    }
    expect((await service.as(null)('POST', 'auth', ADMIN, { Origin: service.url })).status).toBe(200);
  });

  test.each(['capacitor://localhost', 'ionic://localhost', 'tauri://localhost', 'app://com.example.field-service'])(
    'is refused for a login from %s, which may have a token that sets no cookie',
    async (origin) => {
      const sent = { Origin: origin, 'Sec-Fetch-Site': 'cross-site' };
      expect((await service.as(null)('POST', 'auth', ADMIN, sent)).status).toBe(403);
      const answer = await service.as(null)('POST', 'auth/token', ADMIN, sent);
      expect([answer.status, setCookiesOf(answer)]).toEqual([200, []]);
      expect((await service.as(answer.body.token)('POST', 'labels', { name: 'mine' }, sent)).status).toBe(200);
    },
  );
});

describe('with listed origins', () => {
  const GOOD = 'https://good.example';
  let listed: TestService;
  let cookie: string;
  beforeAll(async () => {
    listed = await startTestService({
      env: { CORS_ORIGINS: `${GOOD}, https://other.example:8443, capacitor://localhost` },
    });
    cookie = await openSession(listed, ADMIN);
  });
  afterAll(() => listed.stop());
  const corsOf = ({ headers }: Answer) => [
    headers['access-control-allow-origin'],
    headers['access-control-allow-credentials'],
  ];
  const preflight = (origin: string) =>
    listed.as(null)('OPTIONS', 'labels', undefined, {
      Origin: origin,
      'Access-Control-Request-Method': 'PATCH',
      'Access-Control-Request-Headers': 'content-type',
    });

  test('accepts reads and writes of their pages with the cookie', async () => {
    for (const origin of [GOOD, 'https://other.example:8443', 'capacitor://localhost']) {
      const answer = await withCookie(listed, cookie)('POST', 'labels', { name: 'x' }, { Origin: origin });
      expect([answer.status, corsOf(answer)]).toEqual([200, [origin, 'true']]);
      expect(answer.headers.vary).toMatch(/\bOrigin\b/);
      const asked = await preflight(origin);
      expect(corsOf(asked)).toEqual([origin, 'true']);
      expect(asked.headers['access-control-allow-methods']).toMatch(/PATCH/);
      // A page has to see why it was refused, too.
      expect(corsOf(await listed.as(null)('GET', 'labels', undefined, { Origin: origin }))).toEqual([origin, 'true']);
    }
  });

  test.each([
    'https://good.example.evil',
    'https://evilgood.example',
    'https://sub.good.example',
    'http://good.example',
    'https://good.example:444',
    'https://good.example:8443',
    'https://good.example/',
    'https://good.example@evil.example',
    'https://GOOD.example.evil',
    'https://good.example, https://evil.example',
    'https://good_example',
    'null',
    '*',
  ])('refuses %s', async (origin) => {
    const written = await withCookie(listed, cookie)('POST', 'labels', { name: 'x' }, { Origin: origin });
    expect([written.status, corsOf(written)[0]]).toEqual([403, undefined]);
    expect(corsOf(await preflight(origin))[0]).toBeUndefined();
    expect(corsOf(await withCookie(listed, cookie)('GET', 'labels', undefined, { Origin: origin }))[0]).toBeUndefined();
    expect(await handshake(listed.url, { Origin: origin, Cookie: cookie })).toMatch(/^refused/);
  });

  test('accepts live events of their pages', async () => {
    expect(await handshake(listed.url, { Origin: GOOD, Cookie: cookie })).toBe('open');
  });
});

describe('the scheme of an origin', () => {
  let behind: TestService;
  let host: string;
  const facts = { Host: 'vigil.example' };
  beforeAll(async () => {
    behind = await startTestService({ env: { TRUST_PROXY: '1' } });
    ({ host } = new URL(service.url));
  });
  afterAll(() => behind.stop());

  /** What becomes of a change, a login, a WebSocket and a long poll of a page. */
  async function tryAll(asked: TestService, headers: Record<string, string>): Promise<boolean[]> {
    const cookie = await openSession(asked, ADMIN);
    const written = await withCookie(asked, cookie)('POST', 'labels', { name: 'x' }, headers);
    const login = await asked.as(null)('POST', 'auth', ADMIN, headers);
    const socket = await handshake(asked.url, { ...headers, Cookie: cookie });
    const path = '/socket.io/?EIO=4&transport=polling';
    const sent = Object.entries({ Host: new URL(asked.url).host, ...headers, Cookie: cookie, Connection: 'close' });
    const wire = await openWire(asked.url);
    await wire.send(`GET ${path} HTTP/1.1\r\n${sent.map((field) => `${field.join(': ')}\r\n`).join('')}\r\n`);
    await wire.ended();
    wire.socket.destroy();
    return [written.status === 200, login.status === 200, socket === 'open', wire.received().includes('HTTP/1.1 200 ')];
  }
  const ALL = Array(4).fill(true);
  const NONE = Array(4).fill(false);

  test('refuses pages over TLS without TLS, whatever an untrusted header claims', async () => {
    expect(await tryAll(service, { Origin: `http://${host}` })).toEqual(ALL);
    expect(await tryAll(service, { Origin: `https://${host}` })).toEqual(NONE);
    expect(await tryAll(service, { Origin: `https://${host}`, 'X-Forwarded-Proto': 'https' })).toEqual(NONE);
  });

  test.each(['https', 'wss'])('refuses pages without TLS behind a proxy that terminates TLS (%s)', async (scheme) => {
    const headers = { ...facts, 'X-Forwarded-Proto': scheme };
    const [written, login, ...live] = await tryAll(behind, { ...headers, Origin: 'https://vigil.example' });
    // A proxy names the scheme of a WebSocket only for one.
    expect(scheme === 'https' ? [written, login, ...live] : [...live, ...live]).toEqual(ALL);
    expect(await tryAll(behind, { ...headers, Origin: 'http://vigil.example' })).toEqual(NONE);
    expect(await tryAll(behind, { ...headers, Origin: 'https://vigil.example:444' })).toEqual(NONE);
  });

  test('asks browsers to stay with TLS only where they use it', async () => {
    const object = (await behind.admin('POST', 'objects', { id: 'seen', name: 'x' })).body._id;
    const ask = async (asked: TestService, proto: string) => {
      const headers = { 'X-Forwarded-Proto': proto };
      const answers = await Promise.all([
        asked.as(null)('GET', '/', undefined, headers),
        asked.as(null)('GET', '/nothing', undefined, headers),
        asked.admin('GET', `objects/${object}`, undefined, headers),
      ]);
      return answers.map((answer) => answer.headers['strict-transport-security']);
    };
    expect(await ask(behind, 'https')).toEqual(Array(3).fill(expect.stringMatching(/^max-age=\d+/)));
    expect(await ask(behind, 'http')).toEqual([undefined, undefined, undefined]);
    expect(await ask(service, 'https')).toEqual([undefined, undefined, undefined]);
  });

  test('ignores the default port of the scheme', async () => {
    const headers = { Host: 'vigil.example:443', 'X-Forwarded-Proto': 'https', Origin: 'https://vigil.example' };
    expect(await tryAll(behind, headers)).toEqual(ALL);
  });

  test('refuses origins with other schemes', async () => {
    const headers = { ...facts, 'X-Forwarded-Proto': 'foo' };
    for (const Origin of ['file://', 'foo://vigil.example', 'null']) {
      expect(await tryAll(behind, { ...headers, Origin })).toEqual(NONE);
    }
  });
});

/** How a WebSocket handshake of an old client ends: `open` when the server sends its first message, or `refused`. */
function handshake(
  url: string,
  headers: Record<string, string>,
  path = '/socket.io/?EIO=3&transport=websocket',
): Promise<string> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers });
  return new Promise((resolve) => {
    socket.once('message', (data) => {
      socket.terminate();
      resolve(String(data).startsWith('0{') ? 'open' : `odd ${data}`);
    });
    socket.once('unexpected-response', (_, { statusCode }) => {
      resolve(`refused ${statusCode}`);
      socket.terminate();
    });
    socket.once('error', () => resolve('refused'));
  });
}

describe('live events', () => {
  test('refuses WebSockets and long polling from pages of foreign origins', async () => {
    const cookie = await openSession(service, ADMIN);
    for (const headers of FOREIGN) {
      expect(await handshake(service.url, { ...headers, Cookie: cookie })).toMatch(/^refused/);
      for (const version of [3, 4]) {
        const path = `/socket.io/?EIO=${version}&transport=polling`;
        const answer = await service.as(null)('GET', path, undefined, { ...headers, Cookie: cookie });
        expect([version, answer.status >= 400, answer.text.includes('"sid"')]).toEqual([version, true, false]);
        expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      }
    }
    expect(await handshake(service.url, { Origin: service.url, Cookie: cookie })).toBe('open');
    expect(await handshake(service.url, { Cookie: cookie })).toBe('open');
  });

  const poll = (method: string, path: string, headers: Record<string, string>, text?: string) =>
    sendHttp(service.url, { method, path, headers, text });
  const OWN: Record<string, string>[] = [{}, { 'Sec-Fetch-Site': 'same-origin' }, { 'Sec-Fetch-Site': 'none' }];

  test.each([3, 4])('are no script for a page that has the cookie, whatever its site (EIO=%i)', async (version) => {
    const cookie = await openSession(service, ADMIN);
    // The plain HTTP page of another port sends no header that tells it from our own.
    for (const headers of [...OWN, ...FOREIGN]) {
      for (const name of ['j=0', 'j=', 'j', '%6A=7', 'j=1&j=2', 'j=0&b64=1', 't=1&j=___eio']) {
        const path = `/socket.io/?EIO=${version}&transport=polling&${name}`;
        const answer = await poll('GET', path, { ...headers, Cookie: `x=1; ${cookie}` });
        expect([name, headers, answer.status, answer.text.includes('sid')]).toEqual([name, headers, 403, false]);
      }
    }
  });

  test.each(['authorization', 'none'])('are a script for those who send no cookie (%s)', async (kind) => {
    const { token } = (await service.as(null)('POST', 'auth/token', ADMIN)).body;
    const headers: Record<string, string> = kind === 'none' ? {} : { Authorization: `Bearer ${token}` };
    const path = '/socket.io/?EIO=3&transport=polling&j=0';
    const answer = await poll('GET', path, headers);
    expect([answer.status, answer.text.startsWith('___eio[0](')]).toEqual([200, true]);
  });

  test('are refused in every further request of a foreign page, and stay with the own one', async () => {
    const cookie = await openSession(service, ADMIN);
    const path = '/socket.io/?EIO=4&transport=polling';
    const call = (method: string, sid: string, headers: Record<string, string>, body?: string) =>
      poll(method, `${path}&sid=${sid}`, { ...headers, Cookie: cookie, 'Content-Type': 'text/plain' }, body);
    const opened = await poll('GET', path, { Cookie: cookie });
    const { sid } = JSON.parse(opened.text.slice(1));
    for (const headers of FOREIGN) {
      expect([headers, (await call('GET', sid, headers)).status]).toEqual([headers, 403]);
      expect([headers, (await call('POST', sid, headers, '40')).status]).toEqual([headers, 403]);
      const upgrade = `${service.url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket&sid=${sid}`;
      expect(await handshake(upgrade, { ...headers, Cookie: cookie }, '')).toMatch(/^refused/);
    }
    expect((await call('GET', `${sid}&j=0`, {})).status).toBe(403);
    expect((await call('POST', sid, {}, '40')).text).toBe('ok');
    expect((await call('GET', sid, {})).text).toMatch(/^40\{"sid"/);
  });

  test('are refused over /events for scripts of another port or host of the site', async () => {
    const cookie = await openSession(service, ADMIN);
    for (const headers of FOREIGN) {
      for (const accept of ['application/json', 'text/event-stream']) {
        const { status } = await withCookie(service, cookie)('GET', 'events', undefined, {
          ...headers,
          Accept: accept,
        });
        expect([headers, accept, status]).toEqual([headers, accept, 403]);
      }
    }
    for (const headers of OWN)
      expect((await withCookie(service, cookie)('GET', 'events', undefined, headers)).status).toBe(200);
  });

  test.each(['capacitor://localhost', 'ionic://localhost', 'file://', 'null', 'https://crm.example'])(
    'accepts a token from pages of %s, which send no cookie',
    async (origin) => {
      const { token } = (await service.as(null)('POST', 'auth/token', ADMIN)).body;
      const balancer = 'AWSALB=of-a-load-balancer';
      expect(await handshake(service.url, { Origin: origin, Authorization: `Bearer ${token}` })).toBe('open');
      expect(await connectWithToken(service.url, { Origin: origin, Cookie: balancer }, token)).toMatch(/^40\{"sid"/);
      expect(await connectWithToken(service.url, { Origin: origin }, 'wrong')).toMatch(/^44\{/);
    },
  );
});

/** What a newer client receives that sends its token after the handshake, as pages do, which cannot set headers. */
function connectWithToken(url: string, headers: Record<string, string>, token: string): Promise<string> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket`, { headers });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.on('message', (data) => {
      if (String(data).startsWith('0')) return socket.send(`40${JSON.stringify({ token })}`);
      socket.terminate();
      resolve(String(data));
    });
  });
}

describe('headers', () => {
  test('sets the security headers on every answer, and hides the server software', async () => {
    const object = (await service.admin('POST', 'objects', { id: 'plain', name: 'x' })).body._id;
    const answers = [
      await service.as(null)('GET', '/'),
      await service.as(null)('GET', 'auth'),
      await service.as(null)('GET', '/nothing'),
      await service.as(null)('POST', 'auth', ADMIN),
      await service.as(null)('POST', 'auth', '{'),
      await service.admin('GET', 'objects'),
      await service.admin('GET', `objects/${object}`),
      await service.admin('GET', `objects/${object}/packets`),
      await service.admin('HEAD', `objects/${object}`),
      await service.admin('PUT', 'objects'),
      await service.admin('GET', 'objects/%'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 200, 400, 200, 200, 200, 200, 405, 400]);
    for (const { headers } of answers) {
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': expect.any(String),
        'referrer-policy': 'no-referrer',
        'content-type': 'application/json; charset=utf-8',
      });
      expect(headers['content-security-policy']).toMatch(/object-src 'none'/);
      expect(headers['content-security-policy']).toMatch(/frame-ancestors/);
      // This service is not behind TLS.
      expect(headers['content-security-policy']).not.toContain('upgrade-insecure-requests');
      for (const name of [
        'strict-transport-security',
        'etag',
        'last-modified',
        'x-powered-by',
        'server',
        'access-control-allow-origin',
      ]) {
        expect(headers[name]).toBeUndefined();
      }
    }
  });

  test('answers 200 also to conditional requests', async () => {
    const headers = { 'If-None-Match': '*', 'If-Modified-Since': new Date(2e12).toUTCString() };
    expect((await service.admin('GET', 'roles', undefined, headers)).status).toBe(200);
  });
});
