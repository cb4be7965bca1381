/** Clients that never end their side of a connection, over HTTP, MQTT and TLS: the service does not hold them for longer. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { destroyHalfClosed } from '../../src/platform/half-closed.js';
import { createCertificate, hasOpenssl } from '../support/certificate.js';
import { startTestService, type TestService, useService } from '../support/fixture.js';
import { bytesOf, CONNECT, createObject } from '../support/mqtt-device.js';
import { undisturbed } from '../support/undisturbed.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, {
  headersTimeoutMs: 300,
  requestTimeoutMs: 600,
  mqttConnectMs: 300,
  halfClosedMs: 100,
  connectionCheckMs: 50,
});
const service = useService({ env: { OPS_PORT: '0' } });
const sockets: Socket[] = [];

beforeAll(() => createObject(service.admin, 'truck'));
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface Held {
  received(): string;
  /** Returns when the service has let go of the connection: the kernel then refuses what is sent. */
  released(): Promise<void>;
}

/** Sends the bytes and never an end, whatever comes back. */
function hold(socket: Socket, bytes: string | Buffer): Held {
  sockets.push(socket);
  let received = '';
  let isEnded = false;
  socket.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  socket
    .on('error', () => undefined)
    .on('end', () => {
      isEnded = true;
    });
  socket.write(bytes);
  return {
    received: () => received,
    released: () =>
      until(() => {
        if (isEnded && socket.writable) socket.write('x');
        return socket.destroyed;
      }, 'the service to release the connection'),
  };
}

const open = (url: string): Socket => {
  const { hostname, port } = new URL(url);
  return connect({ host: hostname, port: Number(port), allowHalfOpen: true });
};

const POST = 'POST /api/v1/labels HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
const HTTP: [kind: string, bytes: string, status: string][] = [
  ['nothing', '', '400'],
  ['a part of a line', 'GET /api', '400'],
  ['a part of the headers', 'GET /api/v1 HTTP/1.1\r\nHost: x\r\nX-A', '400'],
  ['a malformed line', 'hello\r\n\r\n', '400'],
  ['a malformed header', 'GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n', '400'],
  ['the first bytes of TLS', '\x16\x03\x01\x02\x00\x01\x00', '400'],
  ['headers that are too large', `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, '400'],
  ['no body', `${POST}Content-Length: 100\r\n\r\n`, '401'],
  ['a part of a body', `${POST}Content-Length: 100000\r\n\r\n{"name":`, '401'],
  ['a malformed chunk', `${POST}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, '400'],
  ['a body without end', `${POST}Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n`, '401'],
  ['a request and a malformed line', 'GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\nhello\r\n\r\n', '200'],
  ['a request that ends the connection', 'GET /api/v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', '200'],
  ['a handshake of a WebSocket of an unknown session', websocket('/socket.io/?EIO=4&transport=websocket&sid=x'), '400'],
];

function websocket(path: string): string {
  const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
  return `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`;
}

describe('over HTTP', () => {
  // A process that stood still after a connection has come takes what was sent on it for late.
  test.each(HTTP)('are released after %s', (_, bytes, status) =>
    undisturbed(LIMITS.headersTimeoutMs / 2, async () => {
      const held = hold(open(service.url), bytes);
      await until(() => held.received().includes('\r\n'), 'an answer');
      expect(held.received()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      await held.released();
    }),
  );

  test('are released at the address of health checks', async () => {
    for (const bytes of [
      '',
      'GET /hea',
      'hello\r\n\r\n',
      'POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n',
    ]) {
      await hold(open(service.service.opsUrl as string), bytes).released();
    }
  });
});

const CONNECT_BYTES = bytesOf(CONNECT('truck'));
/** A CONNECT with another protocol level, which is the byte after the name (MQTT 3.1.1, 3.1.2.2). */
function withLevel(level: number): Buffer {
  const bytes = Buffer.from(CONNECT_BYTES);
  bytes[bytes.indexOf('MQTT') + 4] = level;
  return bytes;
}

const MQTT: [kind: string, bytes: Buffer][] = [
  ['nothing', Buffer.alloc(0)],
  ['a part of a CONNECT', CONNECT_BYTES.subarray(0, 10)],
  ['a length without end', Buffer.from([0x10, 0xff, 0xff, 0xff, 0xff, 0xff])],
  ['a packet that is no CONNECT', Buffer.from([0xc0, 0])],
  ['a request of HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['a CONNECT of an unknown version', withLevel(9)],
  ['a CONNECT with the wrong password', bytesOf(CONNECT('truck', { password: Buffer.from('wrong') }))],
  ['two CONNECTs', Buffer.concat([CONNECT_BYTES, CONNECT_BYTES])],
  ['a DISCONNECT', Buffer.concat([CONNECT_BYTES, Buffer.from([0xe0, 0])])],
  ['a malformed packet', Buffer.concat([CONNECT_BYTES, Buffer.from([0x30, 3, 0, 9, 1])])],
];

describe('over MQTT', () => {
  test.each(MQTT)('are released after %s', async (_, bytes) => {
    await hold(open(service.service.mqttUrl as string), bytes).released();
  });
});

(hasOpenssl ? describe : describe.skip)('over MQTT with TLS', () => {
  const certificate = hasOpenssl ? createCertificate() : null;
  let secure: TestService;
  beforeAll(async () => {
    const env = { MQTT_TLS_KEY: certificate?.keyFile ?? '', MQTT_TLS_CERT: certificate?.certFile ?? '' };
    secure = await startTestService({ env });
    await createObject(secure.admin, 'truck');
  });
  afterAll(async () => {
    await secure.stop();
    certificate?.remove();
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['a part of a handshake', Buffer.from([0x16, 3, 1, 2, 0, 1, 0])],
    ['a CONNECT without TLS', CONNECT_BYTES],
    ['bytes that are no handshake', Buffer.alloc(100, 0x16)],
  ])('are released after %s instead of a handshake', async (_, bytes) => {
    await hold(open(secure.service.mqttUrl as string), bytes).released();
  });

  test.each(MQTT)('are released after the handshake and %s', async (_, bytes) => {
    const { hostname, port } = new URL(secure.service.mqttUrl as string);
    const ca = readFileSync(certificate?.certFile ?? '');
    // A client of TLS ends with its peer; the connection below it stays open.
    const below = open(secure.service.mqttUrl as string);
    sockets.push(below);
    const socket = connectTls({ socket: below, host: hostname, port: Number(port), ca, servername: 'localhost' });
    await hold(socket, bytes).released();
  });
});

test('are not cut while they still take what was sent before the end', async () => {
  const bytes = 16 * 1024 * 1024;
  const held = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    held.add(socket);
    socket.on('error', () => undefined).end(Buffer.alloc(bytes));
  });
  const stopChecks = destroyHalfClosed(held);
  try {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = open(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
    sockets.push(socket);
    await once(socket, 'connect');
    // More than its time passes for a connection that has taken everything.
    await hold(open(service.url), 'hello\r\n\r\n').released();
    let received = 0;
    for await (const piece of socket) received += piece.length;
    expect(received).toBe(bytes);
    await until(() => [...held].every(({ destroyed }) => destroyed), 'the server to release the connection');
  } finally {
    stopChecks();
    server.close();
  }
});
