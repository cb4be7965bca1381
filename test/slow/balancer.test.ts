/** The balancer that docker-compose.yml runs, nginx with the same script and configuration, before two instances. */
import { type EventEmitter, once } from 'node:events';
import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connect } from 'mqtt';
import { io } from 'socket.io-client';
import { entityOf } from '../support/answers.js';
import { type Balancer, HAS_NGINX, HAS_STREAMS, startBalancer } from '../support/balancer.js';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

let balancer: Balancer;
let url = '';
let tlsPort = 0;
let mqttUrl = '';
let instances: TestService[];
let token: string;

beforeAll(async () => {
  if (!HAS_NGINX) return;
  const uri = testUri();
  const env = { TRUST_PROXY: '1', MQTT_PROXY: '1' };
  instances = [await startTestService({ env }, uri)];
  instances.push(await startTestService({ env }, uri));
  balancer = await startBalancer(instances);
  ({ url, tlsPort, mqttUrl } = balancer);
  token = (await instances[0]?.tokenOf(ADMIN.login, ADMIN.password)) as string;
});

afterAll(async () => {
  await balancer?.stop();
  for (const instance of instances ?? []) await instance.stop();
});

const call = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${url}${path}`, {
    ...init,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
  });

interface Stream {
  readonly received: { speed: unknown; position: string }[];
  close(): Promise<void>;
}

/**
 * Opens a stream of server-sent events through the balancer; resolves when it is live. It has the packets of one object: an instance
 * may send those of the test before to clients that connect a moment later.
 */
async function openStream(mark: string, since: string): Promise<Stream> {
  const stop = new AbortController();
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream', 'X-Request-Id': mark };
  const response = await fetch(`${url}/api/v1/events?events=object-packet&objects=streamed`, {
    headers: { ...headers, ...(since !== '' && { 'Last-Event-ID': since }) },
    signal: stop.signal,
  });
  const received: Stream['received'] = [];
  let text = '';
  let isLive = false;
  const reading = (async () => {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        isLive ||= block.startsWith(': live');
        const [, data] = /^data: (.*)$/m.exec(block) ?? [];
        const [, position = ''] = /^id: (.*)$/m.exec(block) ?? [];
        if (data !== undefined) received.push({ speed: JSON.parse(data).speed, position });
      }
    }
  })().catch(() => undefined);
  await until(() => isLive, 'the stream is live');
  return {
    received,
    async close() {
      stop.abort();
      await reading;
    },
  };
}

(HAS_NGINX ? describe : describe.skip)('behind nginx', () => {
  test('distributes requests over all instances', async () => {
    const marks = Array.from({ length: 20 }, (_, at) => `balanced-${at}`);
    for (const mark of marks) {
      const headers = { Authorization: `Bearer ${token}`, 'X-Request-Id': mark };
      expect((await fetch(`${url}/api/v1/objects`, { headers })).status).toBe(200);
    }
    for (const { logLines } of instances) {
      expect(logLines.some((line) => line.includes('"balanced-'))).toBe(true);
    }
  });

  test.each(['websocket', 'polling'])('sends events over %s', async (transport) => {
    const socket = io(url, {
      transports: [transport],
      auth: { token },
      extraHeaders: { Authorization: `Bearer ${token}` },
      forceNew: true,
    });
    const received: unknown[] = [];
    const id = `car-${transport}`;
    socket.on('object-packet', (packet) => packet.id === id && received.push(packet.speed));
    socket.on('connect_error', (error) => received.push(error.message));
    await until(() => socket.connected || received.length > 0, 'it is connected');
    entityOf((await instances[0]?.admin('POST', 'objects', { id, name: id })) as never);
    for (const speed of [1, 2, 3]) {
      const sent = await call(`/api/v1/objects/${id}/packets`, { method: 'POST', body: JSON.stringify({ speed }) });
      expect(sent.status).toBe(200);
    }
    await until(() => received.length >= 3, 'all three are received');
    expect(received).toEqual([1, 2, 3]);
    socket.disconnect();
  });

  test('sends server-sent events as they happen, and resumes at the other instance without a gap or a duplicate', async () => {
    entityOf((await instances[0]?.admin('POST', 'objects', { id: 'streamed', name: 'Streamed' })) as never);
    const send = async (speed: number): Promise<void> => {
      const sent = await call('/api/v1/objects/streamed/packets', { method: 'POST', body: JSON.stringify({ speed }) });
      expect(sent.status).toBe(200);
    };
    const first = await openStream('stream-first', '');
    await send(1);
    await until(() => first.received.length === 1, 'the first is received');
    const since = first.received[0]?.position as string;
    await send(2);
    await until(() => first.received.length === 2, 'the second is received');
    // While the first one is still open, nginx sends the next one to the instance with fewer.
    const second = await openStream('stream-second', since);
    await first.close();
    await send(3);
    await until(() => second.received.length === 2, 'what was missed, and the third');
    await second.close();
    await send(4);
    const third = await openStream('stream-third', second.received.at(-1)?.position as string);
    await send(5);
    await until(() => third.received.length === 2, 'the missed event, and the fifth');
    await third.close();
    const speeds = [first, second, third].map(({ received }) => received.map(({ speed }) => speed));
    expect(speeds).toEqual([
      [1, 2],
      [2, 3],
      [4, 5],
    ]);
    const placeOf = (mark: string): number =>
      instances.findIndex(({ logLines }) => logLines.some((line) => line.includes(`"${mark}"`)));
    const places = () => ['stream-first', 'stream-second'].map(placeOf);
    await until(() => !places().includes(-1), 'their ends are in the log');
    expect(new Set(places()).size).toBe(2);
  });

  test('passes on the largest permitted body, and refuses a larger one', async () => {
    const pad = 'x'.repeat(60_000);
    const packets = Array.from({ length: 250 }, (_, at) => ({ time: 1_700_000_000_000 + at, pad }));
    entityOf((await instances[0]?.admin('POST', 'objects', { id: 'big', name: 'big' })) as never);
    const sent = await call('/api/v1/objects/big/packets', { method: 'POST', body: JSON.stringify(packets) });
    expect({ status: sent.status, body: await sent.json() }).toEqual({
      status: 200,
      body: { success: true, count: 250 },
    });
    const large = await call('/api/v1/objects/big/packets', {
      method: 'POST',
      body: 'x'.repeat(17 * 1_024 ** 2),
    }).catch(() => null);
    expect(large?.status ?? 413).toBe(413);
    const read = await call('/api/v1/objects/big/packets');
    expect(JSON.parse(await read.text())).toHaveLength(250);
  });

  (HAS_STREAMS ? test : test.skip)('passes on MQTT connections of devices', async () => {
    const options = { username: 'unknown', password: 'wrong', reconnectPeriod: 0, protocolVersion: 4 } as const;
    const device = connect(mqttUrl, options);
    const [{ code }] = await once(device as unknown as EventEmitter, 'error');
    // Refused by the service itself, which found no such device.
    expect([4, 5]).toContain(code);
    device.end(true);
  });

  test('makes cookies Secure over TLS, and ignores X-Forwarded headers of clients', async () => {
    const body = JSON.stringify(ADMIN);
    const headers = {
      'Content-Type': 'application/json',
      'X-Forwarded-For': '203.0.113.7',
      'X-Forwarded-Proto': 'http',
    };
    const cookie = await new Promise<string>((resolve, reject) => {
      const options = {
        port: tlsPort,
        host: '127.0.0.1',
        path: '/api/v1/auth',
        method: 'POST',
        headers,
        rejectUnauthorized: false,
      };
      request(options, (answer) => {
        answer.resume();
        resolve(String(answer.headers['set-cookie']));
      })
        .on('error', reject)
        .end(body);
    });
    expect(cookie).toMatch(/^sid=.*Secure/);
    const written = () =>
      instances.flatMap(({ logLines }) => logLines).filter((line) => line.includes('"action":"login"'));
    await until(() => written().length > 0, 'the login is in the log of security events');
    expect(written().join()).not.toContain('203.0.113.7');
  });

  test('sends requests to the remaining instance, and answers with the error of the service without one', async () => {
    const [first, second] = instances as [TestService, TestService];
    await second.service.stop();
    const statuses = await Promise.all(
      Array.from({ length: 30 }, () => call('/api/v1/objects').then(({ status }) => status)),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
    await first.service.stop();
    const away = await call('/api/v1/objects');
    expect(away.status).toBe(503);
    expect(away.headers.get('retry-after')).toBe('1');
    expect(away.headers.get('content-type')).toContain('application/json');
    expect(await away.json()).toEqual({
      success: false,
      code: '503',
      message: 'Service Unavailable',
      tags: ['error_unavailable'],
    });
    expect(balancer.said()).not.toMatch(/\[(emerg|alert|crit)\]/);
  });
});
