/** Pipelined requests of a connection are handled one at a time. */
import { once } from 'node:events';
import net from 'node:net';
import { beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
});

function toRequest(method: string, path: string, id: string, body = ''): string {
  const head = `${method} /api/v1/${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nX-Request-Id: ${id}\r\n`;
  return `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** Sends all requests at once; gives what came back when as many answers as requests are there. */
async function pipeline(requests: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(service.url);
  const socket = net.connect(Number(port), hostname);
  let received = '';
  socket.on('data', (data) => {
    received += data;
  });
  socket.write(requests.join(''));
  await until(() => received.split('HTTP/1.1 ').length > requests.length, 'every answer');
  socket.destroy();
  return received;
}

const idsIn = (received: string): string[] =>
  [...received.matchAll(/X-Request-Id: (\S+)/g)].map(([, id]) => id as string);

test('does not start a request before the previous one is answered', async () => {
  const received = await pipeline([
    toRequest('GET', 'objects/car/commands?status=queued&wait=1', 'waits-for-a-command'),
    toRequest('POST', 'objects/car/commands/lock', 'sends-a-command'),
  ]);
  // Had both been under way, the first one would tell of the command.
  expect(received).toMatch(/waits-for-a-command[^[]*\[\n\]\n/);
  expect(idsIn(received)).toEqual(['waits-for-a-command', 'sends-a-command']);
  expect((await service.admin('GET', 'objects/car/commands')).body).toHaveLength(1);
});

test('answers many pipelined requests in order', async () => {
  const requests = Array.from({ length: 20 * LIMITS.requestsHeld }, (_, nth) => ({
    id: `request-number-${nth}`,
    text:
      nth % 3 === 0
        ? toRequest(
            'POST',
            'objects/car/packets',
            `request-number-${nth}`,
            JSON.stringify({ nth, pad: 'x'.repeat(999) }),
          )
        : toRequest('GET', nth % 3 === 1 ? 'objects/car' : 'objects?limit=2', `request-number-${nth}`),
  }));
  const received = await pipeline(requests.map(({ text }) => text));
  expect(idsIn(received)).toEqual(requests.map(({ id }) => id));
  expect(received.split('HTTP/1.1 200').length - 1).toBe(requests.length);
  const stored = (await service.admin('GET', 'objects/car/packets?only=nth')).body as { nth: number }[];
  expect(stored.map(({ nth }) => nth)).toEqual(requests.flatMap((_, nth) => (nth % 3 === 0 ? [nth] : [])));
});

test('drops waiting requests when the client disconnects', async () => {
  entityOf(await service.admin('POST', 'objects', { id: 'left', name: 'Left' }));
  const { hostname, port } = new URL(service.url);
  const socket = net.connect(Number(port), hostname);
  const requests = [
    toRequest('GET', 'objects/left', 'is-answered-at-once'),
    toRequest('GET', 'objects/left/commands?status=queued&wait=60', 'waits-for-a-command'),
    toRequest('POST', 'objects/left/packets', 'comes-too-late', '{"speed":1}'),
  ];
  socket.write(requests.join(''));
  // In one piece, it has all of them now.
  await once(socket, 'data');
  socket.destroy();
  await until(() => service.logLines.some((line) => line.includes('"aborted":true') && line.includes('/commands')));
  expect((await service.admin('GET', 'objects/left/packets')).body).toEqual([]);
});
