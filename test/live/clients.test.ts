/** Published Socket.IO clients of three generations receive exactly the events of visible objects. */
import { createRequire } from 'node:module';
import { afterEach, expect, test } from '@jest/globals';
import { io as io4 } from 'socket.io-client';
import { ADMIN, useService } from '../support/fixture.js';
import { cookieOf } from '../support/raw-socket.js';
import { until } from '../support/until.js';

/** What the three have in common. */
interface OldSocket {
  on(name: string, listener: (...args: unknown[]) => void): void;
  disconnect(): void;
  io: { engine: { transport: { name: string } } };
}
type Connect = (url: string, options: object) => OldSocket;

const require = createRequire(import.meta.url);
const CLIENTS: Record<string, Connect> = {
  'socket.io-client 1.7.4': require('socket.io-client-1') as Connect,
  'socket.io-client 2.5.0': require('socket.io-client-2') as Connect,
  'socket.io-client 4': io4 as unknown as Connect,
};
const TRANSPORTS: Record<string, string[]> = {
  'polling, then WebSocket': ['polling', 'websocket'],
  'WebSocket only': ['websocket'],
  'polling only': ['polling'],
};

const service = useService();
const endings: (() => void)[] = [];
const stranger = { login: 'stranger', password: 'a password of a stranger' };

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

async function makeStranger(): Promise<string> {
  const { body: group } = await service.admin('POST', 'groups', { name: 'elsewhere' });
  const { body: roles } = await service.admin('GET', 'roles?where.name=administrator');
  const wanted = { ...stranger, group: group._id, role: roles[0]?._id };
  const { body: user } = await service.admin('POST', 'users', wanted);
  if (user.success !== true && user.code !== '409') throw new Error(JSON.stringify(user));
  return service.tokenOf(stranger.login, stranger.password);
}

interface Ears {
  readonly received: unknown[][];
  readonly transport: () => string;
}

async function listen(connect: Connect, options: object): Promise<Ears> {
  const socket = connect(service.url, { forceNew: true, reconnection: false, timeout: 60_000, ...options });
  endings.push(() => socket.disconnect());
  const received: unknown[][] = [];
  for (const name of ['object-packet', 'object-update', 'gap']) {
    socket.on(name, (...args) => received.push([name, ...args]));
  }
  await new Promise<void>((resolve, reject) => {
    socket.on('connect', () => resolve());
    for (const name of ['connect_error', 'error']) {
      socket.on(name, (error) => reject(error instanceof Error ? error : new Error(String(error))));
    }
  });
  return { received, transport: () => socket.io.engine.transport.name };
}

const cases = Object.keys(CLIENTS).flatMap((client) =>
  Object.keys(TRANSPORTS).flatMap((transports) => ['cookie', 'token'].map((proof) => ({ client, transports, proof }))),
);

let made = 0;

test.each(cases)(
  'sends $client only events of visible objects ($transports, $proof)',
  async ({ client, transports, proof }) => {
    const connect = CLIENTS[client] as Connect;
    const extraHeaders =
      proof === 'cookie'
        ? { Cookie: await cookieOf(service, ADMIN) }
        : { Authorization: `Bearer ${await service.tokenOf(ADMIN.login, ADMIN.password)}` };
    const { received, transport } = await listen(connect, { transports: TRANSPORTS[transports], extraHeaders });
    const wanted = TRANSPORTS[transports]?.at(-1);
    await until(() => transport() === wanted, `the transport ${wanted}`);
    const outsider = await listen(connect, {
      transports: TRANSPORTS[transports],
      extraHeaders: { Authorization: `Bearer ${await makeStranger()}` },
    });

    const id = `client-${++made}`;
    const { body: object } = await service.admin('POST', 'objects', { id, name: 'Ünï ☂ 𝄞' });
    const packets = [];
    for (const speed of [1, 2, 3]) {
      const { success, ...packet } = (await service.admin('POST', `objects/${id}/packets`, { speed, note: '☂ 𝄞' }))
        .body;
      packets.push(packet);
    }
    await service.admin('PATCH', `objects/${id}`, { status: 'ü ☂ 𝄞' });
    const position = { position: expect.stringMatching(/^[\w-]+$/) };
    const update = { id: object._id, before: { status: '' }, after: { status: 'ü ☂ 𝄞' } };
    await until(() => received.length >= 4);
    expect(received).toEqual([
      ...packets.map((packet) => ['object-packet', packet, position]),
      ['object-update', update, position],
    ]);

    // The outsider received the event of its own, later object: no earlier event is still under way.
    const own = service.as(await service.tokenOf(stranger.login, stranger.password));
    await own('POST', 'objects', { id: `${id}-own`, name: 'own' });
    const { body: last } = await own('POST', `objects/${id}-own/packets`, {});
    await until(() => outsider.received.length > 0);
    expect(outsider.received).toEqual([['object-packet', expect.objectContaining({ _id: last._id }), position]]);
  },
);

test.each(Object.keys(CLIENTS))('refuses %s without credentials with Unauthorized', async (client) => {
  const attempt = listen(CLIENTS[client] as Connect, { transports: ['websocket'] });
  await expect(attempt).rejects.toThrow('Unauthorized');
});

test('accepts the token of socket.io-client 4 in auth', async () => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const { received } = await listen(CLIENTS['socket.io-client 4'] as Connect, { auth: { token } });
  await service.admin('POST', 'objects', { id: 'auth', name: 'auth' });
  await service.admin('PATCH', 'objects/auth', { status: 'on' });
  await until(() => received.length > 0);
  expect(received).toMatchObject([['object-update', { after: { status: 'on' } }, {}]]);
});
