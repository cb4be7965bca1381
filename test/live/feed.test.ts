/** The feed without Socket.IO: server-sent events and polled pages have the same events. */
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { EventSource } from 'eventsource';
import { LIMITS } from '../../src/core/limits.js';
import { isAfter } from '../../src/core/position.js';
import { ADMIN, type Answer, openListener, startTestService, testUri, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

// Beats often, so that tests need not wait for one.
Object.assign(LIMITS, { pingIntervalMs: 300, pollEvents: 50 });

const service = useService();
const endings: (() => unknown)[] = [];
const outsider = { login: 'outsider', password: 'a password of outsider' };
let token: string;

beforeAll(async () => {
  token = await service.tokenOf(ADMIN.login, ADMIN.password);
  for (const id of ['car', 'bus']) await service.admin('POST', 'objects', { id, name: id });
  const { body: group } = await service.admin('POST', 'groups', { name: 'outside' });
  await service.admin('POST', 'users', { ...outsider, group: group._id });
});

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Said {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
  readonly data: any;
  readonly position: string;
}

interface Stream {
  readonly received: Said[];
  readonly source: EventSource;
  /** The last id that came, also without an event. */
  position(): string;
}

/** A real client of server-sent events; resolves when it is live. */
async function open(query = '', { url = service.url, bearer = token, since = '' } = {}): Promise<Stream> {
  const received: Said[] = [];
  let position = '';
  let text = '';
  const source = new EventSource(`${url}/api/v1/events${query}`, {
    fetch: async (input, init) => {
      const headers = { ...init.headers, Authorization: `Bearer ${bearer}`, ...(since && { 'Last-Event-ID': since }) };
      const response = await fetch(input, { ...init, headers });
      const [ours, theirs] = response.body?.tee() ?? [];
      void read(ours, (chunk) => {
        text += chunk;
        position = [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
      });
      return { ...pick(response), body: theirs ?? null };
    },
  });
  endings.push(() => source.close());
  for (const name of ['object-packet', 'object-update', 'gap']) {
    source.addEventListener(name, (event: MessageEvent) =>
      received.push({ name, data: JSON.parse(event.data), position: event.lastEventId }),
    );
  }
  await until(() => text.includes(': live\n'), 'the stream to be live');
  return { received, source, position: () => position };
}

const pick = ({ status, url, redirected, headers }: Response) => ({ status, url, redirected, headers });

async function read(stream: ReadableStream<Uint8Array> | undefined, each: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  try {
    for await (const chunk of stream ?? []) each(decoder.decode(chunk, { stream: true }));
  } catch {
    // It was closed.
  }
}

const poll = (query: string, as = service.admin): Promise<Answer> => as('GET', `events?${query}`);
const post = async (id: string, n: number) =>
  expect((await service.admin('POST', `objects/${id}/packets`, { n })).status).toBe(200);

test('sends a stream the same events, order and positions as a socket', async () => {
  const stream = await open();
  const socket = await service.listen(token);
  await post('car', 1);
  await service.admin('PATCH', 'objects/car', { status: 'grün\n"1"' });
  await post('bus', 2);
  await service.settled();
  const events = socket.take().map(({ name, payload, position }) => ({ name, data: payload, position }));
  await until(() => stream.received.length >= 3);
  expect(stream.received).toEqual(events);
  expect(events.map(({ name, data }) => data.n ?? name)).toEqual([1, 'object-update', 2]);
});

test('resumes a stream at its last id on any instance without loss or duplicates', async () => {
  const other = await startTestService({}, service.mongodbUri);
  endings.push(() => other.service.stop());
  const first = await open();
  await post('car', 1);
  await until(() => first.received.length === 1);
  first.source.close();
  await post('car', 2);
  await service.admin('PATCH', 'objects/car', { status: 'away' });
  const back = await open('', { url: other.url, since: first.received[0]?.position ?? '' });
  await post('car', 3);
  await until(() => back.received.length >= 3);
  expect(back.received.map(({ name, data }) => data.n ?? name)).toEqual([2, 'object-update', 3]);
  await other.client.close();
});

test('sends an idle stream current ids, from which it resumes without duplicates', async () => {
  const stream = await open('?objects=bus');
  const before = stream.position();
  await post('car', 1);
  await until(() => isAfter(stream.position(), before), 'a later position');
  const position = stream.position();
  stream.source.close();
  await post('bus', 2);
  const back = await open(`?objects=bus&since=${position}`);
  await until(() => back.received.length >= 1);
  expect([stream.received, back.received.map(({ data }) => data.n)]).toEqual([[], [2]]);
});

test('filters by objects and events within the permissions of the caller', async () => {
  const narrow = await open('?objects=bus,nothing&events=object-packet');
  const foreign = await open('?objects=bus', { bearer: await service.tokenOf(outsider.login, outsider.password) });
  const all = await open();
  await post('car', 1);
  await service.admin('PATCH', 'objects/bus', { status: `${performance.now()}` });
  await post('bus', 2);
  await until(() => all.received.length >= 3 && narrow.received.length >= 1);
  expect(narrow.received.map(({ data }) => data.n)).toEqual([2]);
  expect(foreign.received).toEqual([]);
});

test('ends a stream when its token is revoked', async () => {
  const { body } = await service.as(null)('POST', 'auth/token', ADMIN);
  const stream = await open('', { bearer: body.token });
  const errors: unknown[] = [];
  stream.source.addEventListener('error', ({ code }) => errors.push(code));
  await service.as(body.token)('DELETE', 'auth');
  // It ends, comes back by itself, and is refused.
  await until(() => errors.includes(401), 'the refusal');
  await post('car', 9);
  await service.settled();
  expect(stream.received).toEqual([]);
});

test('returns an empty page, then missed events, then events during the wait', async () => {
  const { body: now } = await poll('');
  expect(now).toEqual({ events: [], position: expect.stringMatching(/^[\w-]+$/) });
  await post('car', 1);
  await post('car', 2);
  await service.settled();
  const { body: page } = await poll(`since=${now.position}`);
  expect(page.events.map(({ event, data }: { event: string; data: { n: number } }) => [event, data.n])).toEqual([
    ['object-packet', 1],
    ['object-packet', 2],
  ]);
  expect(Object.keys(page.events[0])).toEqual(['event', 'data', 'position']);
  expect((await poll(`since=${page.position}`)).body.events).toEqual([]);
  const waiting = poll(`since=${page.position}&wait=60`);
  await post('car', 3);
  expect((await waiting).body.events.map(({ data }: { data: { n: number } }) => data.n)).toEqual([3]);
});

test('limits pages, and returns each event once over all pages', async () => {
  const { body: start } = await poll('');
  const packets = Array.from({ length: 180 }, (_, n) => ({ n }));
  await service.admin('POST', 'objects/car/packets', packets);
  await service.settled();
  const numbers: number[] = [];
  let position = start.position;
  for (let round = 0; numbers.length < 180 && round < 20; round++) {
    const { body } = await poll(`since=${position}`);
    expect(body.events.length).toBeLessThanOrEqual(50);
    numbers.push(...body.events.map(({ data }: { data: { n: number } }) => data.n));
    position = body.position;
  }
  expect(numbers).toEqual(packets.map(({ n }) => n));
});

test('answers an unknown position with a gap and a position to continue from', async () => {
  const { status, body } = await poll('since=Z0FBQUFBQUFBQUFB&wait=30');
  expect([status, body.events, body.gap]).toEqual([200, [], { reason: 'history gone', from: 'Z0FBQUFBQUFBQUFB' }]);
  await post('car', 7);
  await service.settled();
  expect((await poll(`since=${body.position}`)).body.events).toHaveLength(1);
});

test('ignores unknown event names, and sends nothing if all names are unknown', async () => {
  const { position } = (await poll('')).body;
  await post('car', 8);
  await service.settled();
  const known = await poll(`since=${position}&events=user-signin,object-packet`);
  expect([known.status, known.body.events.length]).toEqual([200, 1]);
  const unknown = await poll(`since=${position}&events=user-signin`);
  expect([unknown.status, unknown.body.events]).toEqual([200, []]);
});

test.each([
  ['wait=61', 'wait: at most 60 seconds'],
  ['wait=x', 'wait: '],
  [`events=${Array(1_001).fill('object-packet').join(',')}`, 'events: expected a list'],
  [`objects=${Array(1_001).fill('x').join(',')}`, 'objects: expected a list'],
  ['since=a&since=b', 'since: '],
])('refuses %s', async (query, message) => {
  const { status, body } = await poll(query);
  expect([status, body.helper.message]).toEqual([400, expect.stringContaining(message)]);
});

test('limits listeners per user and per address with 429, until one disconnects', async () => {
  const env = { LIVE_CONNECTIONS_PER_USER: '2', LIVE_CONNECTIONS_PER_ADDRESS: '3' };
  const small = await startTestService({ env }, testUri());
  endings.push(() => small.stop());
  await small.admin('POST', 'users', outsider);
  const mine = await small.tokenOf(ADMIN.login, ADMIN.password);
  const other = await small.tokenOf(outsider.login, outsider.password);
  const sockets = [await small.listen(mine), await openListener(small.url, mine)] as const;
  endings.push(sockets[1].close);
  await expect(openListener(small.url, mine)).rejects.toThrow('Too Many Requests');
  const { status, headers } = await poll('', small.admin);
  expect([status, headers['retry-after']]).toEqual([429, '1']);
  const third = await openListener(small.url, other);
  endings.push(third.close);
  expect((await poll('', small.as(other))).status).toBe(429);
  sockets[0].close();
  await until(async () => (await poll('', small.admin)).status === 200, 'room for one more');
});
