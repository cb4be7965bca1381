/** Requests without a valid token at the balancer, and the errors that it answers itself. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { entityOf } from '../support/answers.js';
import { type Balancer, HAS_NGINX, startBalancer } from '../support/balancer.js';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';
import { openWire, type Wire } from '../support/wire.js';

/** More than the burst that scripts/ops/nginx.conf permits. */
const REQUESTS = 600;

let balancer: Balancer;
let service: TestService;
let token: string;

beforeAll(async () => {
  if (!HAS_NGINX) return;
  service = await startTestService({ env: { TRUST_PROXY: '1', MQTT_PROXY: '1' } }, testUri());
  balancer = await startBalancer([service]);
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
});

afterAll(async () => {
  await balancer?.stop();
  await service?.stop();
});

async function withWire<T>(use: (wire: Wire) => Promise<T>): Promise<T> {
  const wire = await openWire(balancer.url);
  try {
    return await use(wire);
  } finally {
    wire.socket.destroy();
  }
}

const errorOf = (code: number, message: string, tag: string) =>
  `{"success":false,"code":"${code}","message":"${message}","tags":["${tag}"]}`;

(HAS_NGINX ? describe : describe.skip)('behind nginx', () => {
  test('refuses a request without a token before its body has arrived, and stores none of it', async () => {
    await withWire(async (wire) => {
      const head = 'Host: x\r\nContent-Type: application/json\r\nContent-Length: 16000000\r\n\r\n';
      await wire.send(`POST /api/v1/objects/car/packets HTTP/1.1\r\n${head}`, 'x'.repeat(1_000_000));
      expect((await wire.hasAnswers(1))[0]?.status).toBe(401);
      expect(await readdir(join(balancer.folder, 'run', 'client'))).toEqual([]);
    });
  });

  test('passes on a body while it arrives', async () => {
    await withWire(async (wire) => {
      const head = `Host: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`;
      await wire.send(`POST /api/v1/objects/car/packets HTTP/1.1\r\n${head}`);
      await wire.send('{"speed":');
      expect(await readdir(join(balancer.folder, 'run', 'client'))).toEqual([]);
      await wire.send(`7${' '.repeat(989)}}`);
      expect((await wire.hasAnswers(1))[0]?.status).toBe(200);
    });
  });

  test('passes on upgrades to Socket.IO only, and answers other requests that ask for one', async () => {
    const h2c = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
    const request = (path: string, upgrade: string) =>
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${upgrade}\r\n`;
    await withWire(async (wire) => {
      for (let asked = 0; asked < 20; asked++) await wire.send(request('/api/v1/objects/car', h2c));
      await wire.send(request('/api/v1/objects', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'));
      await wire.send(request('/socket.io/?EIO=4&transport=polling', h2c));
      const statuses = (await wire.hasAnswers(22)).map(({ status }) => status);
      expect(statuses).toEqual(Array(22).fill(200));
    });
    await withWire(async (wire) => {
      const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
      const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}`;
      await wire.send(request('/socket.io/?EIO=3&transport=websocket', upgrade));
      await until(() => wire.received().includes('pingInterval'), 'the WebSocket opens');
    });
    expect(balancer.said()).not.toMatch(/upstream prematurely closed/);
  });

  test.each<[what: string, bytes: string, error: string]>([
    ['a line of noise', 'noise\r\n\r\n', errorOf(400, 'Bad Request', 'error_bad_request')],
    ['no host', 'GET / HTTP/1.1\r\n\r\n', errorOf(400, 'Bad Request', 'error_bad_request')],
    [
      'a body too large',
      'POST /api/v1/objects HTTP/1.1\r\nHost: x\r\nContent-Length: 17000000\r\n\r\n',
      errorOf(413, 'Payload Too Large', 'error_too_large'),
    ],
    [
      'a line too long',
      `GET /${'x'.repeat(10_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      errorOf(414, 'URI Too Long', 'error_too_large'),
    ],
    [
      'a header too large',
      `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(10_000)}\r\n\r\n`,
      errorOf(431, 'Request Header Fields Too Large', 'error_too_large'),
    ],
    [
      'an unknown transfer coding',
      'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n',
      errorOf(501, 'Not Implemented', 'error_not_implemented'),
    ],
    [
      'another version of HTTP',
      'GET / HTTP/3.0\r\nHost: x\r\n\r\n',
      errorOf(505, 'HTTP Version Not Supported', 'error_not_implemented'),
    ],
  ])('refuses %s with the error format of the service', async (_what, bytes, error) => {
    await withWire(async (wire) => {
      await wire.send(bytes);
      const [answer] = await wire.hasAnswers(1);
      expect(answer?.text).toBe(error);
      expect(answer?.status).toBe(Number(JSON.parse(error).code));
      expect(answer?.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-request-id': expect.stringMatching(/^[\w-]{8,}$/),
      });
    });
  });

  test('limits the rate of requests without a token, and of no others', async () => {
    const ask = (headers: Record<string, string> = {}) => fetch(`${balancer.url}/api/v1`, { headers });
    let refused: Response | undefined;
    // A busy machine may send so slowly that the rate permits many.
    const isRefused = async () => {
      const answers = await Promise.all(Array.from({ length: REQUESTS }, () => ask()));
      refused = answers.find(({ status }) => status === 429);
      return refused !== undefined;
    };
    await until(isRefused, 'a refused request');
    expect(refused?.headers.get('retry-after')).toBe('1');
    expect(await refused?.text()).toBe(errorOf(429, 'Too Many Requests', 'error_too_many_requests'));
    const headers = { Authorization: `Bearer ${token}` };
    const known = await Promise.all(Array.from({ length: REQUESTS }, () => ask(headers)));
    expect(new Set(known.map(({ status }) => status))).toEqual(new Set([200]));
  });
});
