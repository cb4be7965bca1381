/** What of one device's messages is being stored at a time. */
import { once } from 'node:events';
import net, { type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Guard, guardSocket } from '../../src/gateway/guard.js';
import { LIMITS } from '../../src/model/limits.js';
import { bytesOf, CONNECT, PUBLISH } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

let server: Server;
let client: Socket;
let guard: Guard;
let passedBytes = 0;

beforeAll(async () => {
  server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  guard = guardSocket(socket, () => performance.now());
  guard.stream.on('data', (chunk: Buffer) => {
    passedBytes += chunk.length;
  });
});

afterAll(() => {
  client.destroy();
  server.close();
});

test('lets no more bytes of messages pass than are to be stored at once, and the next when one is', async () => {
  const message = bytesOf(PUBLISH('base/state', `{"text":"${'x'.repeat(60_000)}"}`));
  const count = 3 * Math.ceil(LIMITS.mqttStoringBytesPerDevice / message.length);
  const hello = bytesOf(CONNECT('x'));
  client.write(Buffer.concat([hello, ...Array<Buffer>(count).fill(message)]));
  const pass = (messages: number) => until(() => passedBytes >= hello.length + messages * message.length);
  const atOnce = Math.ceil(LIMITS.mqttStoringBytesPerDevice / message.length);
  await pass(atOnce);
  for (let stored = 1; stored <= count - atOnce; stored++) {
    // One more than there is room for would be here by now.
    expect(passedBytes).toBe(hello.length + (atOnce + stored - 1) * message.length);
    guard.release();
    await pass(atOnce + stored);
  }
  expect(passedBytes).toBe(hello.length + count * message.length);
});
