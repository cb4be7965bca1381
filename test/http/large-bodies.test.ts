/** Large bodies of requests: how they are read, when they are refused, and the requests after them. */
import { request } from 'node:http';
import net from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const MOST = LIMITS.packetsBodyBytes;
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
});

interface Sent {
  readonly status: number | undefined;
  readonly body: { success: boolean; count?: number; helper?: { message: string } };
}

/** Sends packets; in chunks without a length where `isChunked`. */
function post(text: string | Buffer, isChunked = false, object = 'car'): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const bytes = Buffer.from(text);
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const length = isChunked ? {} : { 'Content-Length': bytes.length };
    const asked = request(
      `${service.url}/api/v1/objects/${object}/packets`,
      { method: 'POST', headers: { ...headers, ...length }, agent: false },
      async (res) => {
        let answer = '';
        for await (const part of res) answer += part;
        resolve({ status: res.statusCode, body: JSON.parse(answer) });
      },
    );
    asked.on('error', reject).end(bytes);
  });
}

const FIRST_MS = Date.UTC(2026, 0);
const packetsOf = (count: number, pad: string) =>
  Array.from({ length: count }, (_, nth) => ({ time: FIRST_MS + nth, nth, pad }));

describe.each([
  ['with its length', false],
  ['in chunks', true],
])('a large body that is sent %s', (how, isChunked) => {
  test('is stored whole, in order', async () => {
    const object = `long-${isChunked}`;
    entityOf(await service.admin('POST', 'objects', { id: object, name: how }));
    const packets = packetsOf(9_000, 'ä"]},'.repeat(40));
    expect(await post(`\ufeff${JSON.stringify(packets, null, 1)}\n`, isChunked, object)).toEqual({
      status: 200,
      body: { success: true, count: packets.length },
    });
    const { body: stored } = await service.admin('GET', `objects/${object}/packets?only=time,nth,pad`);
    expect((stored as typeof packets).map(({ time, nth, pad }) => ({ time, nth, pad }))).toEqual(packets);
  });

  test.each([
    ['an extra comma at its end', (text: string) => text.replace(/\]$/, ',]')],
    ['an extra comma in its middle', (text: string) => `${text.slice(0, -1)},,${text.slice(1)}`],
    ['no end', (text: string) => text.slice(0, -1)],
    ['another list after it', (text: string) => `${text}[]`],
    ['a word before it', (text: string) => `x${text}`],
    ['the wrong bracket', (text: string) => text.replace(/\]$/, '}')],
  ])('is refused with %s', async (_, spoil) => {
    const text = JSON.stringify(packetsOf(3_000, 'x'.repeat(300)));
    expect(await post(spoil(text), isChunked)).toMatchObject({
      status: 400,
      body: { helper: { message: 'the body is not valid JSON' } },
    });
  });

  test('is refused if it is not UTF-8', async () => {
    const bytes = Buffer.from(JSON.stringify(packetsOf(3_000, 'x'.repeat(300))));
    bytes[bytes.indexOf('xx')] = 0xff;
    expect(await post(bytes, isChunked)).toMatchObject({
      status: 400,
      body: { helper: { message: 'the body is not UTF-8' } },
    });
  });

  test('names the value that is not permitted, and stores the others', async () => {
    const packets = packetsOf(3_000, 'x'.repeat(300)).map((packet) => (packet.nth === 2_345 ? { $a: 1 } : packet));
    expect(await post(JSON.stringify(packets), isChunked)).toMatchObject({
      status: 200,
      body: { count: 2_999, refused: [{ index: 2_345, reason: expect.stringContaining('"$a": ') }] },
    });
  });

  test.each([
    ['501 fields', Object.fromEntries(Array.from({ length: 501 }, (_, nth) => [`f${nth}`, 1])), 'more than 500 fields'],
    ['a list of 10,001 items', { a: Array(10_001).fill(1) }, '"a": more than 10000 items'],
    ['a value that is too deep', { a: JSON.parse('['.repeat(500) + ']'.repeat(500)) }, 'nested more than 20 deep'],
  ])('stores the other packets beside one with %s', async (_, packet, reason) => {
    for (const pad of ['', 'x'.repeat(300)]) {
      const packets: unknown[] = packetsOf(300, pad);
      packets.splice(123, 0, packet);
      expect(await post(JSON.stringify(packets), isChunked)).toMatchObject({
        status: 200,
        body: { count: 300, refused: [{ index: 123, reason: expect.stringContaining(reason) }] },
      });
    }
  });

  test('is refused if it exceeds the limit', async () => {
    expect((await post(Buffer.alloc(MOST + 1, ' '), isChunked)).status).toBe(413);
  });
});

describe('a body of 16 MiB', () => {
  test.each([
    ['objects', `[${'{},'.repeat(MOST / 3 - 2)}{}]`],
    ['lists', `[${'[],'.repeat(MOST / 3 - 2)}[]]`],
    ['lists in lists', '['.repeat(MOST / 2) + ']'.repeat(MOST / 2)],
    ['objects in objects', '{"a":'.repeat(MOST / 6) + '1'.padEnd(MOST / 6, '}')],
    ['numbers', `[{"a":[${'1,'.repeat(MOST / 2 - 10)}1]}]`],
    ['fields', `[{${'"a":1,'.repeat(MOST / 6 - 2)}"a":1}]`],
  ])('is refused before it has arrived: %s', async (_, text) => {
    const { hostname, port } = new URL(service.url);
    const socket = net.connect(Number(port), hostname);
    let answer = '';
    socket.on('data', (data) => {
      answer += data;
    });
    const head = `POST /api/v1/objects/car/packets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
    const half = text.slice(0, text.length / 2);
    socket.write(`${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${half}`);
    await until(() => answer.includes('"code":"400"'), 'the answer to half a body');
    expect(answer).toContain('the body: ');
    // The rest is read all the same, and the connection serves the next request.
    answer = '';
    socket.write(text.slice(text.length / 2));
    socket.write('GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => answer.includes('"name":"Vigil"'), 'the next answer');
    socket.destroy();
  });
});

describe('many large bodies at once', () => {
  test('are all stored in turn', async () => {
    const text = JSON.stringify(packetsOf(1_500, 'x'.repeat(200)));
    expect(text.length).toBeGreaterThan(LIMITS.bigBodyBytes);
    const sent = await Promise.all(Array.from({ length: 10 }, () => post(text)));
    expect(sent.map(({ status }) => status)).toEqual(Array(10).fill(200));
  });

  test('are refused with 429 if one user has too many of them under way, while small ones are stored', async () => {
    const { hostname, port } = new URL(service.url);
    const count = Math.floor(LIMITS.bodyBytesPerCaller / MOST);
    const head = `POST /api/v1/objects/car/packets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
    const begun = Array.from({ length: count }, () => {
      const socket = net.connect(Number(port), hostname).on('error', () => undefined);
      // The rest never comes.
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: ${MOST}\r\n\r\n[{"a":`);
      return socket;
    });
    const large = JSON.stringify(packetsOf(400, 'x'.repeat(200)));
    try {
      await until(async () => (await post(large)).status === 429, 'one is refused');
      expect((await post('{"speed":1}')).status).toBe(200);
    } finally {
      for (const socket of begun) socket.destroy();
    }
    await until(async () => (await post(large)).status === 200, 'there is room again');
  });
});
