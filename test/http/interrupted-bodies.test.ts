/** Bodies: the short way of plain ones is the parser's; of a body whose sender goes before its end nothing is stored. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import fc from 'fast-check';
import { toApiError } from '../../src/errors.js';
import { createFairness } from '../../src/fairness/fairness.js';
import { jsonBody, parseJson } from '../../src/http/middleware/body.js';
import { ADMIN, useService } from '../support/fixture.js';
import { runsOf } from '../support/runs.js';

const LIMIT_BYTES = 200;
const service = useService();
const server = createServer();
let port: number;

beforeAll(async () => {
  const app = express();
  const tell: RequestHandler = (req, res) => void res.json({ body: req.body ?? 'none' });
  const refuse: ErrorRequestHandler = (error, _req, res, _next) => {
    const { status, help } = toApiError(error);
    res.json({ status, help });
  };
  const admit: RequestHandler = (_req, res, next) => {
    res.locals.caller = { userId: 'somebody' };
    next();
  };
  app.post('/short', admit, jsonBody(LIMIT_BYTES, createFairness(), tell));
  app.post('/parser', parseJson(LIMIT_BYTES), tell);
  app.use(refuse);
  server.on('request', app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});

afterAll(() => void server.close());

interface Sent {
  readonly type: string;
  readonly bytes: Buffer;
  /** Where the body is cut into two writes. */
  readonly cut: number;
}

async function send(path: string, { type, bytes, cut }: Sent): Promise<unknown> {
  const socket = net.connect(port, '127.0.0.1').setNoDelay(true);
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\n`;
  socket.write(`${head}Content-Length: ${bytes.length}\r\n\r\n`);
  socket.write(bytes.subarray(0, cut));
  setImmediate(() => socket.write(bytes.subarray(cut)));
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
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

test('property: a body is read as the parser reads it', async () => {
  await fc.assert(
    fc.asyncProperty(sent, async (one) => {
      expect(await send('/short', one)).toEqual(await send('/parser', one));
    }),
    { numRuns: runsOf(300) },
  );
});

test.each(['application/json', 'application/vnd.x+json'])('a sender of %s who goes before its end', async (type) => {
  const { body: object } = await service.admin('POST', 'objects', { id: type.replace(/\W/g, '-'), name: 'Car' });
  const packets = `objects/${object._id}/packets`;
  const { hostname, port } = new URL(service.url);
  for (let round = 0; round < 20; round++) {
    // Nobody has asked with this one yet: the database is asked who that is, while the sender goes.
    const token = await service.tokenOf(ADMIN.login, ADMIN.password);
    const head = `POST /api/v1/${packets} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
    const socket = net.connect(Number(port), hostname).resume();
    socket.write(`${head}Content-Type: ${type}\r\nContent-Length: 100\r\n\r\n{"speed": 1`, () => {
      if (round % 2 === 0) socket.destroy();
      else socket.end();
    });
    await once(socket, 'close');
  }
  // What would have been stored is, when one that came later is.
  await service.admin('POST', packets, { speed: 2 });
  const { body: stored } = await service.admin('GET', packets);
  expect(stored).toEqual([expect.objectContaining({ speed: 2 })]);
});
