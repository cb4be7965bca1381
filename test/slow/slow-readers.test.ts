/** Clients that do not read what they asked for: they are cut, and what waits for them is bounded. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { createExpressClasses } from '../../src/http/server/express-classes.js';
import { cutStalledReaders } from '../../src/http/server/stalled-readers.js';
import { LIMITS } from '../../src/model/limits.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const MIB = 1_024 * 1_024;

describe('an answer', () => {
  const body = Buffer.alloc(24 * MIB);
  const server = createServer(createExpressClasses(), (_req, res) => void res.end(body));
  const sockets = new Set<Socket>();
  const limits = { stallMs: 1_500, checkMs: 20, progressBytes: 64 * 1_024 };
  let port: number;

  beforeAll(async () => {
    server.on('connection', (socket) => sockets.add(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
    server.once('close', cutStalledReaders(sockets, limits));
  });

  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });

  const ask = (): Socket => {
    const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return socket;
  };

  /** Reads all of it, with a pause after each piece; gives how many bytes came before the connection ended. */
  async function read(socket: Socket, pauseMs: number): Promise<number> {
    let bytes = 0;
    for await (const piece of socket) {
      bytes += (piece as Buffer).length;
      if (bytes >= body.length) break;
      if (pauseMs > 0) await wait(pauseMs);
    }
    return bytes;
  }

  test('is cut when its client does not read it', async () => {
    const socket = ask().pause();
    await until(() => [...sockets].some(({ writableLength }) => writableLength > 0), 'the answer is under way');
    await until(() => [...sockets].every(({ destroyed }) => destroyed), 'the connection was ended');
    expect(await read(socket, 0)).toBeLessThan(body.length);
  });

  test('reaches a client that reads it slowly, however long that takes', async () => {
    const startMs = performance.now();
    expect(await read(ask(), 8)).toBeGreaterThanOrEqual(body.length);
    expect(performance.now() - startMs).toBeGreaterThan(limits.stallMs);
  });

  test('that left whole does not end the connection, however long nothing is asked', async () => {
    const socket = ask();
    expect(await read(socket.setKeepAlive(true), 0)).toBeGreaterThanOrEqual(body.length);
    const other = net.connect(port, '127.0.0.1');
    await once(other, 'connect');
    const startMs = performance.now();
    while (performance.now() - startMs < 2 * limits.stallMs && !other.destroyed) await wait(limits.checkMs);
    other.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await read(other, 0)).toBeGreaterThanOrEqual(body.length);
  });
});

describe('pages that are not read', () => {
  const service = useService();
  let token: string;

  beforeAll(async () => {
    const object = entityOf(await service.admin('POST', 'objects', { id: 'long', name: 'Long' }));
    const [oid, gid] = [new ObjectId(object._id), new ObjectId(object.group as string)];
    const text = 'y'.repeat(3_000);
    const count = Math.ceil(LIMITS.answerBytesWait / 2 / text.length);
    const packet = (at: number) => ({ _oid: oid, _gid: gid, id: 'long', _ts: at, time: at, online: true, text });
    const packets = service.client.db().collection('packets');
    await packets.insertMany(Array.from({ length: count }, (_, at) => packet(at)));
    token = await service.tokenOf(ADMIN.login, ADMIN.password);
    const role = entityOf(await service.admin('POST', 'roles', { name: 'other', credentials: ['* /*'] }));
    const group = entityOf(await service.admin('POST', 'groups', { name: 'other' }));
    const other = { login: 'other', password: 'a long enough password', role: role._id, group: group._id };
    entityOf(await service.admin('POST', 'users', { ...other, name: 'Other' }));
  });

  /** Asks for the page, reads no more than its beginning. */
  async function ask(): Promise<Socket> {
    const { hostname, port } = new URL(service.url);
    const socket = net.connect(Number(port), hostname).on('error', () => undefined);
    socket.write(`GET /api/v1/objects/long/packets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await once(socket, 'readable');
    return socket;
  }

  test('keep the next ones of their caller waiting, and nobody else; until they are gone', async () => {
    const unread = [await ask(), await ask()];
    let isAnswered = false;
    const next = service.admin('GET', 'objects/long/packets').then((answer) => {
      isAnswered = true;
      return answer;
    });
    const other = service.as(await service.tokenOf('other', 'a long enough password'));
    for (let nth = 0; nth < 20; nth++) expect((await other('GET', 'groups')).status).toBe(200);
    expect((await service.admin('GET', 'objects/long')).status).toBe(200);
    expect(isAnswered).toBe(false);
    for (const socket of unread) socket.destroy();
    expect((await next).status).toBe(200);
  });
});
