/** Request bodies: the fast path agrees with the parser, and the service stores nothing of an incomplete body. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import { toApiError } from '../../src/core/errors.js';
import { createFairness } from '../../src/platform/fairness.js';
import { jsonBody, parseJson } from '../../src/platform/http/body.js';
import { ADMIN, useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';

const LIMIT_BYTES = 200;
const service = useService();
const server = createServer();
let port: number;

beforeAll(async () => {
  const app = express();
  const answer: RequestHandler = (req, res) => void res.json({ body: req.body ?? 'none' });
  const refuse: ErrorRequestHandler = (error, _req, res, _next) => {
    const { status, help } = toApiError(error);
    res.json({ status, help });
  };
  const admit: RequestHandler = (_req, res, next) => {
    res.locals.caller = { userId: 'somebody' };
    next();
  };
  app.post('/short', admit, jsonBody(LIMIT_BYTES, createFairness(), answer));
  app.post('/parser', parseJson(LIMIT_BYTES), answer);
  app.use(refuse);
  server.on('request', app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});

afterAll(() => void server.close());

interface Sent {
  readonly type: string;
  readonly bytes: Buffer;
  /** The length of the first of two writes. */
  readonly cut: number;
}

async function send(path: string, { type, bytes, cut }: Sent): Promise<unknown> {
  const socket = net.connect(port, '127.0.0.1').setNoDelay(true);
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\n`;
  socket.write(`${head}Content-Length: ${bytes.length}\r\n\r\n`);
  socket.write(bytes.subarray(0, cut));
  setImmediate(() => socket.write(bytes.subarray(cut)));
  let received = '';
  for await (const chunk of socket) received += chunk;
  return JSON.parse(received.slice(received.indexOf('\r\n\r\n')));
}

const ODD = ['', ' ', '\ufeff{"a":1}', ' [1]', 'null', '1', '"x"', '{"a":1', '{"a":1}}', '{"__proto__":1}', '\u0000{}'];
const text = fc.oneof(
  fc.json({ maxDepth: 2 }),
  fc.constantFrom(...ODD),
  fc.string({ unit: 'grapheme', maxLength: 80 }),
  fc.string({ minLength: LIMIT_BYTES - 12, maxLength: LIMIT_BYTES + 3 }).map((value) => JSON.stringify([value])),
);
const TYPES = ['application/json', 'application/json; charset=utf-8', 'application/json;charset=UTF-8'];
const sent: fc.Arbitrary<Sent> = fc
  .record({
    type: fc.constantFrom(...TYPES, 'application/json; charset=utf-16le', 'application/vnd.x+json'),
    bytes: fc.oneof(
      text.map((value) => Buffer.from(value)),
      fc.uint8Array({ maxLength: 20 }).map((value) => Buffer.from(value)),
    ),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ type, bytes, share }) => ({ type, bytes, cut: Math.floor(bytes.length * share) }));

test('reads every body as the parser does', async () => {
  await fc.assert(
    fc.asyncProperty(sent, async (one) => {
      expect(await send('/short', one)).toEqual(await send('/parser', one));
    }),
    { numRuns: runsOf(300) },
  );
});

test.each(['application/json', 'application/vnd.x+json'])(
  'stores nothing of an incomplete body of %s',
  async (type) => {
    const { body: object } = await service.admin('POST', 'objects', { id: type.replace(/\W/g, '-'), name: 'Car' });
    const packets = `objects/${object._id}/packets`;
    const { hostname, port } = new URL(service.url);
    for (let round = 0; round < 20; round++) {
      // A new token: the service asks the database for its user while the connection closes.
      const token = await service.tokenOf(ADMIN.login, ADMIN.password);
      const head = `POST /api/v1/${packets} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
      const socket = net.connect(Number(port), hostname).resume();
      socket.write(`${head}Content-Type: ${type}\r\nContent-Length: 100\r\n\r\n{"speed": 1`, () => {
        if (round % 2 === 0) socket.destroy();
        else socket.end();
      });
      await once(socket, 'close');
    }
    // A packet of an earlier request would be stored before this one.
    await service.admin('POST', packets, { speed: 2 });
    const { body: stored } = await service.admin('GET', packets);
    expect(stored).toEqual([expect.objectContaining({ speed: 2 })]);
  },
);
