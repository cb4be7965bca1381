/** Socket.IO clients of three generations change from polling to WebSocket while events arrive. */
import { createRequire } from 'node:module';
import { afterEach, expect, test } from '@jest/globals';
import { io as io4 } from 'socket.io-client';
import { ADMIN, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

interface AnySocket {
  on(name: string, listener: (...args: { n: number; position: string }[]) => void): void;
  disconnect(): void;
  io: { engine: { transport: { name: string } } };
}
type Connect = (url: string, options: object) => AnySocket;

const require = createRequire(import.meta.url);
const GENERATIONS = [
  require('socket.io-client-1') as Connect,
  require('socket.io-client-2') as Connect,
  io4 as unknown as Connect,
];

const MOST_CLIENTS = 150;

const service = useService();
const endings: (() => void)[] = [];

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

test('receives every event once and in order while polling becomes a WebSocket', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  await service.admin('POST', 'objects', { id: 'busy', name: 'Busy' });
  let sent = 0;
  let isOver = false;
  const writing = (async () => {
    while (!isOver) {
      const packets = Array.from({ length: 10 }, () => ({ n: sent++, note: 'ü ☂ 𝄞 \u2028' }));
      expect((await service.admin('POST', 'objects/busy/packets', packets)).status).toBe(200);
    }
  })();
  const openOne = (connect: Connect) => {
    const extraHeaders = { Authorization: `Bearer ${token}` };
    const socket = connect(service.url, { forceNew: true, reconnection: false, timeout: 60_000, extraHeaders });
    const received: [n: number, position: string][] = [];
    let polled = 0;
    socket.on('object-packet', ({ n } = { n: -1, position: '' }, { position } = { n: -1, position: '' }) => {
      received.push([n, position]);
      if (socket.io.engine.transport.name === 'polling') polled++;
    });
    endings.push(() => socket.disconnect());
    return { received, isUpgraded: () => socket.io.engine.transport.name === 'websocket', polled: () => polled };
  };
  const clients: ReturnType<typeof openOne>[] = [];
  const areUpgraded = () => clients.every(({ received, isUpgraded }) => isUpgraded() && received.length > 50);
  // Without events before the upgrade this test would show nothing: where all were upgraded first, more clients are opened.
  const havePolled = () => clients.some(({ polled }) => polled() > 0);
  while (!havePolled() && clients.length < MOST_CLIENTS) {
    clients.push(...GENERATIONS.flatMap((connect) => Array.from({ length: 5 }, () => openOne(connect))));
    await until(areUpgraded, 'every client to be upgraded and to receive events');
  }
  expect(havePolled()).toBe(true);
  isOver = true;
  await writing;
  const haveLast = () => clients.every(({ received }) => received.at(-1)?.[0] === sent - 1);
  await until(haveLast, 'every client to receive the last event');
  for (const { received } of clients) {
    const first = received[0]?.[0] ?? -1;
    expect(received.map(([n]) => n)).toEqual(Array.from({ length: sent - first }, (_, at) => first + at));
    expect(new Set(received.map(([, position]) => position)).size).toBe(received.length);
  }
});
