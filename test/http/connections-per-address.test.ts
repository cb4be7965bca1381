/** Connections of one client address: a bound before that of the process, which does not count a proxy's clients together. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.js';
import { refusal } from '../support/answers.js';
import { ADMIN, startTestService, type TestService } from '../support/fixture.js';
import { sendHttp } from '../support/http-call.js';
import { connectRaw, createObject } from '../support/mqtt-device.js';
import { proxyHeader } from '../support/proxy-header.js';
import { until } from '../support/until.js';

const MAX = 5;
const GREETING = 'GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n';
const sockets: Socket[] = [];
const services: TestService[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => Promise.all(services.map((service) => service.stop())));

async function start(env: Record<string, string>): Promise<TestService> {
  const service = await startTestService({ env: { CONNECTIONS_PER_ADDRESS: String(MAX), ...env } });
  services.push(service);
  return service;
}

/** Opens a connection from an address of this machine. */
async function openFrom(localAddress: string, url: string, bytes: string | Buffer = ''): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), localAddress });
  sockets.push(socket);
  socket.on('error', () => undefined).on('data', () => undefined);
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

/** Whether the service serves a new connection from there. */
async function isServed(localAddress: string, url: string, headers = ''): Promise<boolean> {
  const socket = await openFrom(
    localAddress,
    url,
    `GET /api/v1 HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`,
  );
  let received = '';
  socket.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  await until(() => socket.destroyed, 'the connection to end');
  return received.startsWith('HTTP/1.1 200 ');
}

const isOpen = (socket: Socket): boolean => !socket.destroyed && !socket.readableEnded;

describe('without a proxy', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await start({ OPS_PORT: '0' });
    await createObject(service.admin, 'truck');
  });

  test.each([
    ['nothing', ''],
    ['a part of a request', 'GET /'],
    ['a request', GREETING],
    ['a request that claims another address', GREETING.replace('Host', 'X-Forwarded-For: 192.0.2.1\r\nHost')],
  ])('are bounded for an address, and not for others: %s', async (_, bytes) => {
    const held = [];
    for (let at = 0; at < MAX; at++) held.push(await openFrom('127.0.0.9', service.url, bytes));
    expect(await isServed('127.0.0.9', service.url)).toBe(false);
    expect(held.map(isOpen)).toEqual(Array(MAX).fill(true));
    expect(await isServed('127.0.0.10', service.url)).toBe(true);
    held[0]?.destroy();
    await until(() => isServed('127.0.0.9', service.url), 'a place for another connection');
  });

  test('are bounded for devices over MQTT', async () => {
    const url = service.service.mqttUrl as string;
    const held = [];
    for (let at = 0; at < MAX; at++) held.push(await openFrom('127.0.0.9', url));
    const further = await openFrom('127.0.0.9', url);
    await until(() => further.destroyed, 'the further connection to end');
    expect(held.map(isOpen)).toEqual(Array(MAX).fill(true));
    const other = await connectRaw(url);
    sockets.push(other.socket);
    expect(other.isClosed()).toBe(false);
  });

  test('are counted and reported where they are refused', async () => {
    const metrics = await (await fetch(`${service.service.opsUrl}/metrics`)).text();
    const countOf = (transport: string): number =>
      Number(new RegExp(`^vigil_connections_refused_total{transport="${transport}"} (\\d+)`, 'm').exec(metrics)?.[1]);
    // One at least by each of the tests before.
    expect(countOf('http')).toBeGreaterThanOrEqual(4);
    expect(countOf('mqtt')).toBe(1);
    const reports = service.logLines
      .filter((line) => line.includes('"refused connections of an address'))
      .map((line) => JSON.parse(line));
    expect(reports.find(({ transport }) => transport === 'http')).toMatchObject({ network: '127.0.0.9', refused: 1 });
    expect(reports.filter(({ transport }) => transport === 'mqtt')).toMatchObject([
      { network: '127.0.0.9', refused: 1 },
    ]);
  });
});

test.each(['127.0.0.0/8', '1', 'loopback'])('are counted by the client of a trusted proxy (%s)', async (trusted) => {
  const service = await start({ TRUST_PROXY: trusted });
  const { token } = (
    await sendHttp(service.url, {
      method: 'POST',
      path: '/api/v1/auth/token',
      headers: { 'Content-Type': 'application/json' },
      text: JSON.stringify(ADMIN),
    })
  ).body;
  const wait = (client: string) =>
    `GET /api/v1/events?wait=30 HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${client}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const proxy = '127.0.0.20';
  // Idle connections of the proxy, and those with requests of many clients, are more than one address may have.
  const kept = [];
  for (let at = 0; at < 3 * MAX; at++) {
    const socket = await openFrom(proxy, service.url, GREETING);
    await once(socket, 'data');
    kept.push(socket);
  }
  for (let at = 0; at < MAX; at++) {
    kept.push(await openFrom(proxy, service.url, wait(`192.0.2.${at}`)));
    kept.push(await openFrom(proxy, service.url, wait('198.51.100.7')));
  }
  const ask = (client: string) =>
    sendHttp(service.url, { method: 'GET', path: '/api/v1', headers: { 'X-Forwarded-For': client } });
  await until(async () => (await ask('198.51.100.7')).status === 429, 'the client to be at its bound');
  const refused = await ask('198.51.100.7');
  expect(refused.body).toMatchObject(refusal(429));
  expect(refused.headers['retry-after']).toBe('1');
  expect((await ask('203.0.113.1, 198.51.100.7')).status).toBe(429);
  expect((await ask('192.0.2.1')).status).toBe(200);
  expect((await ask('198.51.100.8')).status).toBe(200);
  expect(kept.map(isOpen)).toEqual(Array(kept.length).fill(true));
  kept.at(-1)?.destroy();
  await until(async () => (await ask('198.51.100.7')).status === 200, 'a place for another request of the client');
});

test('are not counted for a trusted proxy that carries the long polling of many clients', async () => {
  const service = await start({ TRUST_PROXY: '1' });
  const proxy = '127.0.0.20';
  for (let at = 0; at < 3 * MAX; at++) {
    const poll = `GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.${at}\r\n\r\n`;
    const [answer] = await once(await openFrom(proxy, service.url, poll), 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 /);
  }
  expect(await isServed(proxy, service.url)).toBe(true);
});

test('are bounded for a trusted proxy whose connections send nothing', async () => {
  const service = await start({ TRUST_PROXY: '1' });
  for (let at = 0; at < MAX; at++) await openFrom('127.0.0.20', service.url);
  expect(await isServed('127.0.0.20', service.url)).toBe(false);
  expect(await isServed('127.0.0.21', service.url)).toBe(true);
});

test('are counted by the clients that a TCP balancer names', async () => {
  const service = await start({ MQTT_PROXY: '1' });
  const url = service.service.mqttUrl as string;
  const from = (source: string) => openFrom('127.0.0.20', url, proxyHeader({ source }));
  const held = [];
  for (let at = 0; at < MAX; at++) held.push(await from('192.0.2.7'), await from(`198.51.100.${at}`));
  const further = await from('192.0.2.7');
  await until(() => further.destroyed, 'the further connection to end');
  const other = await from('192.0.2.8');
  expect([...held, other].map(isOpen)).toEqual(Array(2 * MAX + 1).fill(true));
});

test('have a bound below that of the process, and more than live connections that are permitted', () => {
  expect(parseConfig({}).connectionsPerAddress).toBe(5_000);
  expect(parseConfig({ LIVE_CONNECTIONS_PER_ADDRESS: '9000' }).connectionsPerAddress).toBe(10_000);
  const both = { LIVE_CONNECTIONS_PER_ADDRESS: '9000', CONNECTIONS_PER_ADDRESS: '7' };
  expect(parseConfig(both).connectionsPerAddress).toBe(7);
  expect(() => parseConfig({ CONNECTIONS_PER_ADDRESS: '0' })).toThrow('CONNECTIONS_PER_ADDRESS');
});
