/** The limit of messages of one device that are being stored. */
import { once } from 'node:events';
import net, { type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { limitPackets, type PacketLimiter } from '../../src/devices/mqtt/packet-limiter.js';
import { bytesOf, CONNECT, PUBLISH } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

let server: Server;
let client: Socket;
let limiter: PacketLimiter;
let passedBytes = 0;

beforeAll(async () => {
  server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  limiter = limitPackets(socket, () => performance.now(), {
    onPacket: ({ bytes }) => {
      passedBytes += bytes.length;
    },
    onOversized: () => undefined,
    onFault: () => undefined,
  });
  limiter.open();
});

afterAll(() => {
  client.destroy();
  server.close();
});

test('limits the bytes of messages in progress, and continues when one is stored', async () => {
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
    limiter.release();
    await pass(atOnce + stored);
  }
  expect(passedBytes).toBe(hello.length + count * message.length);
});
