/** Clients that disconnect at inconvenient moments leave no listeners and block no later client. */
import net from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { beforeAll, expect, test } from '@jest/globals';
import { TEST_SECRET } from '../support/callers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { startProcess } from '../support/process.js';
import { until } from '../support/until.js';

const service = useService({ env: { LIVE_CONNECTIONS_PER_USER: '12' } });
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  await service.admin('POST', 'objects', { id: 'car', name: 'Car' });
});

/** Sends requests one after the other without waiting for answers, and goes as soon as `isEnough`. */
async function sendAndGo(
  paths: readonly string[],
  isEnough: (answer: string) => boolean,
  accept = 'text/event-stream',
  url = service.url,
): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  let answer = '';
  socket.on('data', (data) => {
    answer += data;
  });
  const head = `Host: x\r\nAuthorization: Bearer ${token}\r\nAccept: ${accept}\r\n\r\n`;
  await new Promise<void>((resolve) => {
    socket.write(paths.map((path) => `GET /api/v1/${path} HTTP/1.1\r\n${head}`).join(''), () => resolve());
  });
  while (!isEnough(answer)) await turn();
  socket.destroy();
}

const listensAgain = async (): Promise<void> => {
  await until(async () => (await service.admin('GET', 'events')).status === 200, 'room for one more');
};

test('ends streams whose clients disconnect before the answer begins', async () => {
  // Each disconnects some turns of the event loop later than the one before: some of them while the service admits them.
  for (let round = 0; round < 80; round++) {
    let turns = round;
    await sendAndGo(['events?objects=car'], () => turns-- === 0);
  }
  await listensAgain();
});

test('ends streams that wait for an earlier answer of their connection', async () => {
  const answers = (text: string): number => text.split('HTTP/1.1 200').length - 1;
  for (let round = 0; round < 2; round++) {
    await sendAndGo(
      ['events', ...Array<string>(9).fill('events')],
      (text) => answers(text) === 1 && /: live/.test(text),
    );
    await listensAgain();
  }
});

test('ends polls that wait for an earlier answer of their connection', async () => {
  for (let round = 0; round < 2; round++) {
    const paths = ['auth', ...Array<string>(10).fill('events?wait=60')];
    await sendAndGo(paths, (text) => text.includes('HTTP/1.1 200'), 'application/json');
    await listensAgain();
  }
});

test('reports no listener leak for more than ten pipelined requests', async () => {
  const port = await findFreePort();
  const opsPort = await findFreePort();
  const process = await startProcess({
    PORT: String(port),
    OPS_PORT: String(opsPort),
    MONGODB_URI: service.mongodbUri,
    SECRET: TEST_SECRET,
    STOP_DELAY: '0',
  });
  try {
    const paths = Array<string>(12).fill('events');
    await sendAndGo(paths, (text) => text.split('HTTP/1.1 200').length > paths.length, 'application/json', process.url);
  } finally {
    await process.stop();
  }
  expect(process.said()).not.toContain('Warning');
});
