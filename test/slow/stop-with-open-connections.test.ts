/** The process ends by itself while clients leave their connections open. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, expect, test } from '@jest/globals';
import { ADMIN, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Process, startProcess } from '../support/process.js';

const sockets: Socket[] = [];
let service: Process;

afterAll(() => {
  for (const socket of sockets) socket.destroy();
  service?.child.kill('SIGKILL');
});

/** Opens connections that send the bytes, read nothing and never end by themselves. */
async function leaveOpen(port: number, bytes: string, count = 1): Promise<Socket[]> {
  const made = Array.from({ length: count }, () => connect({ port, host: '127.0.0.1', allowHalfOpen: true }));
  sockets.push(...made);
  for (const socket of made) socket.on('error', () => undefined);
  await Promise.all(made.map((socket) => once(socket, 'connect')));
  for (const socket of made) await new Promise((done) => socket.write(bytes, done));
  return made;
}

async function openToken(url: string): Promise<string> {
  const headers = { 'Content-Type': 'application/json' };
  const answer = await fetch(`${url}/api/v1/auth/token`, { method: 'POST', headers, body: JSON.stringify(ADMIN) });
  return ((await answer.json()) as { token: string }).token;
}

test('ends while clients leave connections of every kind open', async () => {
  const port = await findFreePort();
  const opsPort = await findFreePort();
  const mqttPort = await findFreePort();
  service = await startProcess({
    PORT: String(port),
    OPS_PORT: String(opsPort),
    MQTT_PORT: String(mqttPort),
    MONGODB_URI: testUri(),
    SECRET: 'test-secret-0123456789-abcdefghijklmnop',
    ADMIN_PASSWORD: ADMIN.password,
    STOP_DELAY: '0',
  });
  const token = await openToken(service.url);
  const head = `Host: x\r\nAuthorization: Bearer ${token}\r\n`;
  const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  const upgrade = (protocol: string) => `Connection: Upgrade\r\nUpgrade: ${protocol}\r\n${key}`;
  const webSocket = `GET /socket.io/?EIO=3&transport=websocket HTTP/1.1\r\n${head}${upgrade('websocket')}\r\n`;
  const ending = [
    ...(await leaveOpen(port, `GET /api/v1/objects HTTP/1.1\r\n${head}${upgrade('h2c')}\r\n`, 5)),
    ...(await leaveOpen(port, `GET /nowhere HTTP/1.1\r\n${head}${upgrade('websocket')}\r\n`, 5)),
    ...(await leaveOpen(port, webSocket, 5)),
  ];
  for (const socket of ending) socket.end();
  await leaveOpen(port, '');
  await leaveOpen(port, webSocket, 5);
  await leaveOpen(port, `GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\n${head}\r\n`, 5);
  await leaveOpen(port, `POST /api/v1/objects HTTP/1.1\r\n${head}Content-Length: 100\r\n\r\n{`, 5);
  await leaveOpen(port, `GET /api/v1/events HTTP/1.1\r\n${head}Accept: text/event-stream\r\n\r\n`, 5);
  await leaveOpen(opsPort, 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n', 5);
  await leaveOpen(mqttPort, '', 5);
  await leaveOpen(mqttPort, '\x10\x7f', 5);
  const { code } = await service.stop();
  expect({ code, said: service.said() }).toEqual({ code: 0, said: expect.stringContaining('Stopped') });
});
