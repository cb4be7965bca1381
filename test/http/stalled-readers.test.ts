/** Clients that do not read their answers: their connections are ended, and the bytes that wait for them are bounded. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { createExpressClasses } from '../../src/platform/http/server/express-classes.js';
import { cutStalledReaders } from '../../src/platform/http/server/stalled-readers.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { undisturbed } from '../support/undisturbed.js';
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

  /** Reads the whole answer, with a pause after each piece; resolves with the bytes and pieces that came before the connection ended. */
  async function read(socket: Socket, pauseMs = 0): Promise<{ bytes: number; pieces: number }> {
    let bytes = 0;
    let pieces = 0;
    for await (const piece of socket.iterator({ destroyOnReturn: false })) {
      bytes += (piece as Buffer).length;
      pieces++;
      if (bytes >= body.length) break;
      if (pauseMs > 0) await wait(pauseMs);
    }
    return { bytes, pieces };
  }

  /** Requests the answer and does not read it; resolves when the server has closed the connection. */
  async function stall(): Promise<Socket> {
    const before = new Set(sockets);
    const socket = ask().pause();
    const added = () => [...sockets].find((one) => !before.has(one));
    await until(() => (added()?.writableLength ?? 0) > 0, 'the answer is under way');
    await until(() => added()?.destroyed, 'the end of the connection');
    return socket;
  }

  test('is cut off if its client does not read it', async () => {
    expect((await read(await stall())).bytes).toBeLessThan(body.length);
  });

  test('reaches a client that reads it slowly, for longer than the limit', () =>
    undisturbed(limits.stallMs / 2, async () => {
      const pauseMs = 8;
      const { bytes, pieces } = await read(ask(), pauseMs);
      expect(bytes).toBeGreaterThanOrEqual(body.length);
      expect(pieces * pauseMs).toBeGreaterThan(limits.stallMs);
    }));

  test('leaves the connection open when it was read, for longer than the limit', () =>
    undisturbed(limits.stallMs / 2, async () => {
      const idle = ask();
      expect((await read(idle)).bytes).toBeGreaterThanOrEqual(body.length);
      await stall();
      idle.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect((await read(idle)).bytes).toBeGreaterThanOrEqual(body.length);
      idle.destroy();
    }));
});

describe('pages that are not read', () => {
  const service = useService();
  let token: string;

  beforeAll(async () => {
    const object = entityOf(await service.admin('POST', 'objects', { id: 'long', name: 'Long' }));
    const oid = new ObjectId(object._id);
    const gid = new ObjectId(object.group as string);
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

  /** Requests the page, and reads no more than its beginning. */
  async function ask(): Promise<Socket> {
    const { hostname, port } = new URL(service.url);
    const socket = net.connect(Number(port), hostname).on('error', () => undefined);
    socket.write(`GET /api/v1/objects/long/packets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    await once(socket, 'readable');
    return socket;
  }

  test('keep the next pages of their caller waiting until they are closed, and no other caller', async () => {
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
