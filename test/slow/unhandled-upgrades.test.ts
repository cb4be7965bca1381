/** An `Upgrade` that is not a WebSocket of Socket.IO's is ignored, whatever comes with it, before it and after it. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.js';
import { createEntry } from '../../src/platform/http/server/entry.js';
import { entityOf } from '../support/answers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { fc, runsOf } from '../support/runs.js';
import { until } from '../support/until.js';
import { openWire, type Wire } from '../support/wire.js';

const service = useService();
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
  // An answer of which a few fill what Node lets wait.
  const items = Array.from({ length: 20 }, (_, nth) => ({ name: `Label ${nth}`, text: 'x'.repeat(1_000) }));
  for (const item of items) entityOf(await service.admin('POST', 'labels', item));
});

const H2C =
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';

function request(line: string, more = '', body = ''): string {
  return `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${more}\r\n${body}`;
}

const withLength = (body: string): string => `${JSON_TYPE}Content-Length: ${body.length}\r\n`;

/** Requests of each kind, and what their answers say; `mark` is in both. */
const KINDS: Record<string, (mark: string) => { bytes: string; status: number; holds: string }> = {
  'h2c, no body': (mark) => ({
    bytes: request('GET /api/v1/objects/car', `${H2C}X-Request-Id: request-${mark}\r\n`),
    status: 200,
    holds: '"id":"car"',
  }),
  'h2c, a body': (mark) => {
    const body = `{"name":"${mark}"}`;
    return { bytes: request('POST /api/v1/geofences', H2C + withLength(body), body), status: 200, holds: mark };
  },
  'h2c, a body in chunks': (mark) => {
    const body = `{"name":"${mark}"}`;
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const head = `${H2C}${JSON_TYPE}Transfer-Encoding: chunked\r\n`;
    return { bytes: request('POST /api/v1/geofences', head, chunks), status: 200, holds: mark };
  },
  'h2c, many bytes': () => ({ bytes: request('GET /api/v1/labels', H2C), status: 200, holds: 'Label 19' }),
  'a WebSocket elsewhere': (mark) => ({
    bytes: request(`GET /api/v1/nowhere/${mark}/x`, 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
    status: 404,
    holds: 'error_not_found',
  }),
  'no upgrade': (mark) => {
    const body = `{"name":"${mark}"}`;
    return { bytes: request('POST /api/v1/geofences', withLength(body), body), status: 200, holds: mark };
  },
};

const nextMark = (() => {
  let made = 0;
  return () => `m${(made++).toString(36).padStart(6, '0')}`;
})();

async function withWire<T>(use: (wire: Wire) => Promise<T>, url = service.url): Promise<T> {
  const wire = await openWire(url);
  try {
    return await use(wire);
  } finally {
    wire.socket.destroy();
  }
}

/** Sends the bytes in the given pieces and holds the answers to what each request is to be told. */
async function expectAnswers(names: readonly string[], cut: (bytes: string) => string[]): Promise<void> {
  const asked = names.map((name) => (KINDS[name] as (typeof KINDS)[string])(nextMark()));
  await withWire(async (wire) => {
    const sent = wire.send(...cut(asked.map(({ bytes }) => bytes).join('')));
    const answers = await wire.hasAnswers(asked.length);
    await sent;
    expect(answers.map(({ status }) => status)).toEqual(asked.map(({ status }) => status));
    for (const [at, { holds }] of asked.entries()) expect(answers[at]?.text).toContain(holds);
    expect(wire.received().match(/HTTP\/1\.1 \d/g)).toHaveLength(asked.length);
  });
}

test.each(Object.keys(KINDS))(
  'answers a request of the kind "%s", and the next one on the same connection',
  async (kind) => {
    await expectAnswers([kind, 'no upgrade', kind], (bytes) => [bytes]);
    const { bytes, status } = (KINDS[kind] as (typeof KINDS)[string])(nextMark());
    await withWire(async (wire) => {
      for (const count of [1, 2, 3]) {
        await wire.send(bytes);
        expect((await wire.hasAnswers(count)).at(-1)?.status).toBe(status);
      }
    });
  },
);

test('answers all of any requests in their order, cut into any pieces', async () => {
  const names = fc.array(fc.constantFrom(...Object.keys(KINDS)), { minLength: 1, maxLength: 8 });
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 });
  const property = fc.asyncProperty(names, cuts, (some, places) =>
    expectAnswers(some, (bytes) => {
      const at = [0, ...places.map((place) => Math.floor(place * bytes.length)).sort((a, b) => a - b), bytes.length];
      return at
        .slice(1)
        .map((end, nth) => bytes.slice(at[nth], end))
        .filter((piece) => piece !== '');
    }),
  );
  await fc.assert(property, { numRuns: runsOf(100) });
});

test('answers a request at every place where it can be cut', async () => {
  const { bytes } = (KINDS['h2c, a body'] as (typeof KINDS)[string])('whole');
  for (let at = 1; at < bytes.length; at += 7) {
    await expectAnswers(['h2c, a body', 'no upgrade'], (all) => [all.slice(0, at), all.slice(at)]);
  }
});

test('answers more requests than Node lets wait for their answers', async () => {
  await expectAnswers(Array(60).fill('h2c, many bytes'), (bytes) => [bytes]);
});

describe('behind a request whose upgrade was ignored', () => {
  const first = () => request('GET /api/v1/objects/car', H2C);

  test.each([
    ['at once', (noise: string) => [first() + noise]],
    ['later', (noise: string) => [first(), noise]],
  ])('refuses what is no HTTP with 400 and ends the connection, where it comes %s', async (_when, cut) => {
    for (const noise of ['?', 'noise\r\n\r\n', '\x16\x03\x01\x02\x00', 'FETCH / HTTP/1.1\r\nHost: x\r\n\r\n']) {
      await withWire(async (wire) => {
        const [head = '', ...more] = cut(noise);
        await wire.send(head);
        if (more.length > 0) await wire.hasAnswers(1);
        await wire.send(...more);
        await wire.ended();
        expect(wire.answers().map(({ status }) => status)).toEqual([200, 400]);
      });
    }
  });

  test('reads no more where the request asked for the end of the connection', async () => {
    await withWire(async (wire) => {
      const closing = request('GET /api/v1/objects/car', 'Connection: close, Upgrade\r\nUpgrade: h2c\r\n');
      await wire.send(closing + request('GET /api/v1/objects'));
      await wire.ended();
      expect(wire.answers().map(({ status }) => status)).toEqual([200]);
    });
  });

  test.each(['/socket.io/', 'http://x/socket.io/'])('opens a WebSocket at %s', async (path) => {
    await withWire(async (wire) => {
      const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
      const upgrade = `Connection: Upgrade\r\nUpgrade: WebSocket\r\n${key}`;
      await wire.send(first() + request(`GET ${path}?EIO=3&transport=websocket`, upgrade));
      await wire.hasAnswers(1);
      await until(() => wire.received().includes('pingInterval'), 'the WebSocket says what Engine.IO says first');
      expect(wire.received()).toContain('HTTP/1.1 101 Switching Protocols');
    });
  });
});

describe('at the path of Socket.IO', () => {
  const polling = '/socket.io/?EIO=4&transport=polling';

  test('answers long polling that asks for h2c', async () => {
    await withWire(async (wire) => {
      await wire.send(request(`GET ${polling}`, H2C) + request(`GET ${polling}`, H2C));
      const answers = await wire.hasAnswers(2);
      expect(answers.map(({ status, text }) => [status, text.slice(0, 8)])).toEqual(Array(2).fill([200, '0{"sid":']));
    });
  });

  test.each([
    ['a method that opens none', 'POST /socket.io/?EIO=4&transport=websocket', 'Content-Length: 0\r\n', ''],
    ['a body', 'GET /socket.io/?EIO=4&transport=websocket', 'Content-Length: 2\r\n', '{}'],
    ['two protocols', 'GET /socket.io/?EIO=4&transport=websocket', 'Upgrade: h2c\r\n', ''],
  ])('refuses a WebSocket with %s, and answers what follows', async (_what, line, more, body) => {
    await withWire(async (wire) => {
      const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\n${more}`;
      await wire.send(request(line, upgrade, body) + request('GET /api/v1/objects/car'));
      expect((await wire.hasAnswers(2)).map(({ status }) => status)).toEqual([400, 200]);
    });
  });
});

test('answers CONNECT, which is no upgrade, and what follows', async () => {
  await withWire(async (wire) => {
    await wire.send(
      `CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n${request('GET /api/v1/objects/car')}`,
    );
    expect((await wire.hasAnswers(2)).map(({ status }) => status)).toEqual([404, 200]);
  });
});

test('is answered 503 while there is no database, whatever the path', async () => {
  const door = createEntry({
    ...parseConfig({ PORT: '0' }).http,
    connectionsPerAddress: 10,
    onConnectionRefused: () => undefined,
    stopDelayMs: 0,
  });
  try {
    const url = await door.refuse();
    await withWire(async (wire) => {
      const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
      await wire.send(request('GET /socket.io/', upgrade) + request('GET /api/v1', H2C) + request('GET /api/v1'));
      expect((await wire.hasAnswers(3)).map(({ status }) => status)).toEqual([503, 503, 503]);
    }, url);
  } finally {
    await door.close();
  }
});
