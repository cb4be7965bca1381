/** The frames of live connections (docs/reference/live-events.md), as a client without a library sees them. */
import { afterEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, useService } from '../support/fixture.js';
import { cookieOf, openRaw, type Raw, toEvent } from '../support/raw-socket.js';
import { until } from '../support/until.js';

// Refused clients stay connected for longer than a test lasts.
Object.assign(LIMITS, { socketAuthMs: 3_600_000 });

const service = useService();
const opened: Raw[] = [];

afterEach(() => {
  for (const { socket } of opened.splice(0)) socket.terminate();
});

async function open(headers: Record<string, string>, query?: string): Promise<Raw> {
  const raw = await openRaw(service.url, headers, query);
  opened.push(raw);
  return raw;
}

const bearer = async () => ({ Authorization: `Bearer ${await service.tokenOf(ADMIN.login, ADMIN.password)}` });

/** A socket that was accepted. */
async function enter(query?: string): Promise<Raw> {
  const raw = await open(await bearer(), query);
  await raw.next('40');
  return raw;
}

/** Whether the service still serves: a packet sent now is received by this socket. */
async function expectReceives(raw: Raw): Promise<void> {
  const id = `alive-${performance.now()}`;
  await service.admin('POST', 'objects', { id, name: id });
  const { body } = await service.admin('POST', `objects/${id}/packets`, {});
  const [name, packet] = toEvent(await raw.next('42["object-packet"'));
  expect([name, packet._id]).toEqual(['object-packet', body._id]);
}

test('sends 0, 40 and 42: connection parameters, the namespace, events with their position', async () => {
  const raw = await open({ Cookie: await cookieOf(service, ADMIN) });
  await raw.next('40');
  const { body: object } = await service.admin('POST', 'objects', { id: 'wire', name: 'Wire' });
  const { body } = await service.admin('POST', 'objects/wire/packets', { speed: 1 });
  const { success, ...packet } = body;
  const detail = { position: expect.stringMatching(/^[\w-]+$/) };
  const { success: _, ...created } = object;
  const payload = { id: created._id, object: created };
  expect(toEvent(await raw.next('42'))).toEqual(['object-created', payload, detail]);
  expect(toEvent(await raw.next('42'))).toEqual(['object-packet', packet, detail]);
});

test('sends the parameters that old clients read first, and then 40', async () => {
  const raw = await open(await bearer());
  await until(() => raw.frames.length >= 2);
  const [first, second] = raw.frames;
  expect(first?.[0]).toBe('0');
  const parameters = JSON.parse(String(first).slice(1));
  // `maxPayload` is Engine.IO's own; clients of EIO=3 do not look at it.
  expect(Object.keys(parameters)).toEqual(['sid', 'upgrades', 'pingInterval', 'pingTimeout', 'maxPayload']);
  expect(parameters).toMatchObject({
    sid: expect.stringMatching(/^[\w-]{20}$/),
    upgrades: [],
    pingInterval: 25_000,
    pingTimeout: 60_000,
  });
  expect(second).toBe('40');
});

test('answers 2 with 3', async () => {
  const raw = await enter();
  raw.socket.send('2');
  raw.socket.send('2');
  await until(() => raw.frames.length >= 2);
  expect(raw.frames).toEqual(['3', '3']);
});

const spoiled = (cookie: string): string => `${cookie.slice(0, -1)}${cookie.endsWith('A') ? 'B' : 'A'}`;

const REFUSED: [name: string, headers: () => Promise<Record<string, string>>][] = [
  ['no login', async () => ({})],
  ['an invalid token', async () => ({ Authorization: 'Bearer nonsense' })],
  ['an unsigned cookie', async () => ({ Cookie: 'sid=abc' })],
  ['a cookie with a wrong signature', async () => ({ Cookie: spoiled(await cookieOf(service, ADMIN)) })],
  [
    'an invalid token beside a valid cookie',
    async () => ({ Authorization: 'Bearer x', Cookie: await cookieOf(service, ADMIN) }),
  ],
];

test.each(REFUSED)('refuses %s with 44"Unauthorized", and sends no event', async (_name, headers) => {
  const raw = await open(await headers());
  expect(await raw.next('4')).toBe('44"Unauthorized"');
  await service.admin('POST', 'objects', { id: `refused-${performance.now()}`, name: 'x' });
  await service.settled();
  await raw.settled();
  expect(raw.frames).toEqual(['3']);
});

test('waits for 40 in EIO=4, refuses with a connect_error, and takes a token as auth', async () => {
  const refused = await open({}, 'EIO=4');
  expect(JSON.parse((await refused.next('0')).slice(1))).toMatchObject({ upgrades: [], pingInterval: 25_000 });
  expect(refused.frames).toEqual([]);
  refused.socket.send('40');
  expect(JSON.parse((await refused.next('44')).slice(2))).toEqual({ message: 'Unauthorized' });

  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const raw = await open({}, 'EIO=4');
  raw.socket.send(`40${JSON.stringify({ token })}`);
  expect(JSON.parse((await raw.next('40')).slice(2))).toEqual({ sid: expect.any(String) });
  await expectReceives(raw);
});

test.each(['Bearer ', 'bearer ', ''])('accepts Authorization with "%s" before the token', async (scheme) => {
  const token = await service.tokenOf(ADMIN.login, ADMIN.password);
  const raw = await open({ Authorization: `${scheme}${token}` });
  expect(await raw.next('4')).toBe('40');
});

test('accepts a Cookie header with other cookies and attributes', async () => {
  const cookie = await cookieOf(service, ADMIN);
  const raw = await open({ Cookie: `a=1; ${cookie}; Path=/; Expires=Wed, 21 Oct 2099 07:28:00 GMT; HttpOnly` });
  expect(await raw.next('4')).toBe('40');
});

test.each(['https://evil.example', 'null', 'http://127.0.0.1.evil.example', 'http://127.0.0.1:1'])(
  'refuses a page of %s before it sends anything',
  async (Origin) => {
    const headers = { Origin, Cookie: await cookieOf(service, ADMIN) };
    await expect(openRaw(service.url, headers)).rejects.toThrow(/refused: 40\d/);
    const polled = await fetch(`${service.url}/socket.io/?EIO=3&transport=polling`, { headers });
    expect(Math.floor(polled.status / 100)).toBe(4);
    expect(await polled.text()).not.toMatch(/sid/);
  },
);

test('accepts a page of its own origin', async () => {
  const raw = await open({ Origin: service.url, Cookie: await cookieOf(service, ADMIN) });
  expect(await raw.next('4')).toBe('40');
});

const GARBAGE: (string | Buffer)[] = [
  '',
  'x',
  '4',
  '4x',
  '42',
  '42[',
  '42{}',
  '42[]',
  '42[1]',
  '42[null]',
  '42["a"',
  '42[{}]',
  '4"',
  '42["unknown",1,2]',
  '42["connect"]',
  '42["disconnect"]',
  '42["error"]',
  '42["connection"]',
  '42["newListener"]',
  '42["__proto__",{}]',
  '42["constructor"]',
  '42["subscribe"]',
  '42["subscribe",null]',
  '421["subscribe"]',
  '42["object-packet",{"_id":"forged"}]',
  '43[]',
  '430[]',
  '43999["x"]',
  '44"mine"',
  '40{"token":"x"}',
  '45-["a",{"_placeholder":true,"num":0}]',
  '451-["a",{"_placeholder":true,"num":0}]',
  '4599999999999-["a"]',
  '46',
  '47',
  '49["x"]',
  '40/admin',
  '40/admin,',
  '40/__proto__,',
  '40//,',
  '42/admin,["x"]',
  '41/admin,',
  '0',
  '0{}',
  '1',
  '3',
  '3probe',
  '5',
  '6',
  '7',
  '2probe',
  'b4AAAA',
  '\u0000',
  '42["\ud800"]',
  Buffer.alloc(0),
  Buffer.from([0]),
  Buffer.from([4, 1, 2, 3]),
  Buffer.alloc(1_000, 255),
  Buffer.from('42["x"]'),
  `42["subscribe",${'['.repeat(5_000)}`,
];

test.each(['EIO=3', 'EIO=4'])('survives garbage of one client with %s, and serves the others', async (query) => {
  const watcher = await enter();
  for (const frame of GARBAGE) {
    const raw = await open(await bearerOnce(), query);
    await raw.next('0');
    if (query === 'EIO=4') raw.socket.send('40');
    await raw.next('40');
    raw.socket.send(frame);
    // Either it is closed, or it goes on as before.
    raw.socket.send(query === 'EIO=4' ? '421["subscribe",{}]' : '2');
    const answer = query === 'EIO=4' ? '431' : '3';
    await until(
      () => raw.closedWith !== null || raw.frames.some((one) => one.startsWith(answer)),
      `an end or an answer after ${JSON.stringify(frame)}`,
    );
    expect(raw.frames.filter((one) => one.includes('forged'))).toEqual([]);
    raw.socket.terminate();
  }
  expect(watcher.closedWith).toBeNull();
  expect(watcher.frames).toEqual([]);
  await expectReceives(watcher);
  expect(service.logLines.filter((line) => /"level":(50|60)/.test(line))).toEqual([]);
});

let headers: Record<string, string> | undefined;
async function bearerOnce(): Promise<Record<string, string>> {
  headers ??= await bearer();
  return headers;
}

test('closes a socket that sends a frame over the limit with 1009, and no other', async () => {
  const watcher = await enter();
  const raw = await enter();
  raw.socket.send(`42["subscribe",{"objects":["${'x'.repeat(16 * 1_024)}"]}]`);
  await until(() => raw.closedWith !== null);
  expect(raw.closedWith).toBe(1009);
  await expectReceives(watcher);
});

test('disconnects a client that sends too many frames, and no other', async () => {
  const watcher = await enter();
  const raw = await enter();
  for (let at = 0; at < 1_000; at++) raw.socket.send('42["noise"]');
  await until(() => raw.closedWith !== null);
  await expectReceives(watcher);
});

test('refuses other namespaces', async () => {
  const raw = await enter();
  raw.socket.send('40/admin,');
  expect(await raw.next('44/admin,')).toBe('44/admin,{"message":"Invalid namespace"}');
  await expectReceives(raw);
});

test('offers the WebSocket in the polling handshake, and sends events by polling', async () => {
  const base = `${service.url}/socket.io/?EIO=3&transport=polling`;
  const poll = async (more = '') => {
    const answer = await fetch(`${base}${more}`, { headers: { ...(await bearerOnce()) } });
    expect(answer.status).toBe(200);
    return answer.text();
  };
  const first = await poll();
  // EIO=3 writes `<length>:<packet>` one after the other.
  const [, length, rest] = /^(\d+):0(.*)$/s.exec(first) as unknown as [string, string, string];
  const parameters = JSON.parse(rest.slice(0, Number(length) - 1));
  expect(parameters).toMatchObject({ upgrades: ['websocket'], pingInterval: 25_000, pingTimeout: 60_000 });
  const sid = `&sid=${parameters.sid}`;
  const said = rest.includes('2:40') ? rest : await poll(sid);
  expect(said).toContain('2:40');
  const next = poll(sid);
  await service.admin('POST', 'objects', { id: 'polled', name: 'Polled' });
  expect(await next).toMatch(/^\d+:42\["object-created",\{"id":"[0-9a-f]{24}","object":\{/);
  const after = poll(sid);
  await service.admin('PATCH', 'objects/polled', { status: 'seen' });
  expect(await after).toMatch(/^\d+:42\["object-update",\{"id":"[0-9a-f]{24}","before":\{"status":""\},/);
});

test('refuses a polling handshake without a login as Unauthorized', async () => {
  const base = `${service.url}/socket.io/?EIO=3&transport=polling`;
  const first = await (await fetch(base)).text();
  const { sid } = JSON.parse(/\{.*?\}/.exec(first)?.[0] ?? '{}');
  const said = first.includes('44"') ? first : await (await fetch(`${base}&sid=${sid}`)).text();
  expect(said).toContain('44"Unauthorized"');
});
