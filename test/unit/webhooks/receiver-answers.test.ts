/** Answers of receivers that are no HTTP, or other HTTP than was asked for: each request ends, and says how. */
import { EventEmitter } from 'node:events';
import type { request } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { parseNetworks } from '../../../src/webhooks/address-policy.js';
import { createResolve } from '../../../src/webhooks/names.js';
import { createSender, exchange } from '../../../src/webhooks/request.js';

const NO_ANSWER = /no answer within/;

let server: Server | null = null;
const sockets: Socket[] = [];
// Only what never ends is given up soon: a busy machine may take a second for an answer.
const { webhookAnswerMs } = LIMITS;
afterEach(() => {
  Object.assign(LIMITS, { webhookAnswerMs });
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
});

/** Sends one request to a receiver that answers it with these bytes, and leaves the connection open. */
async function sendTo(answer: (socket: Socket) => void) {
  const receiver = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined).once('data', () => answer(socket));
  });
  server = receiver;
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  const sender = createSender(parseNetworks('127.0.0.1/32') ?? [], createResolve());
  const { signal } = new AbortController();
  const url = new URL(`http://127.0.0.1:${port}/`);
  const outcome = await sender.send({ url, headers: {}, body: Buffer.from('{}'), signal });
  sender.close();
  return outcome;
}

const head = (status: string, more = 'Content-Length: 0\r\n'): string => `HTTP/1.1 ${status}\r\n${more}\r\n`;

test.each<[name: string, bytes: string, status: number | null, error: RegExp | null]>([
  ['another protocol', head('101 Switching', 'Upgrade: x\r\nConnection: upgrade\r\n'), 101, /another protocol/],
  [
    'another protocol with bytes behind',
    `${head('101 X', 'Upgrade: h2c\r\nConnection: upgrade\r\n')}abc`,
    101,
    /protocol/,
  ],
  ['hints, then an answer', `HTTP/1.1 103 Early\r\n\r\n${head('200 OK')}`, 200, null],
  ['hints alone', 'HTTP/1.1 103 Early\r\n\r\n', null, NO_ANSWER],
  ['no bytes', '', null, NO_ANSWER],
  ['half a head', 'HTTP/1.1 200 OK\r\nContent-Le', null, NO_ANSWER],
  ['less than announced', `${head('200 OK', 'Content-Length: 200\r\n')}ok`, null, NO_ANSWER],
  ['no HTTP', 'hello\r\n', null, /./],
  ['a large header', head('200 OK', `X: ${'x'.repeat(200_000)}\r\nContent-Length: 0\r\n`), null, /./],
  ['a wrong chunk', `${head('200 OK', 'Transfer-Encoding: chunked\r\n')}zz\r\nok\r\n`, null, /./],
  ['a status of four digits', head('1000 X'), null, /./],
  ['a redirect to nowhere', head('302 X'), 302, /redirects to another address/],
  ['another status', head('500 X'), 500, null],
])('end, and say how: %s', async (_, bytes, status, error) => {
  if (error === NO_ANSWER) Object.assign(LIMITS, { webhookAnswerMs: 1_000 });
  const outcome = await sendTo((socket) => socket.write(bytes));
  expect(outcome.status).toBe(status);
  if (error === null) expect(outcome.error).toBeNull();
  else expect(outcome.error).toMatch(error);
});

test.each<[name: string, answer: (socket: Socket) => void]>([
  ['at once', (socket) => socket.destroy()],
  ['with a reset', (socket) => socket.resetAndDestroy()],
  ['within its head', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le')],
  ['within its body', (socket) => socket.end(`${head('200 OK', 'Content-Length: 200\r\n')}ok`)],
  ['without HTTP', (socket) => socket.end('bye\r\n')],
])('end when the receiver closes the connection: %s', async (_, answer) => {
  expect(await sendTo(answer)).toMatchObject({ status: null, error: expect.stringMatching(/./) });
});

test('end when Node.js closes a request, and says nothing else of it', async () => {
  const silent = Object.assign(new EventEmitter(), { end: () => void setImmediate(() => silent.emit('close')) });
  const send = (() => silent) as unknown as typeof request;
  const settled = exchange(send, new URL('http://127.0.0.1/'), {}, Buffer.from('{}'));
  await expect(settled).rejects.toThrow('the connection ended before an answer');
});
