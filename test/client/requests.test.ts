/** The client's requests against the real service: stores, objects, packets, commands, lists, errors, tokens. */
import { beforeAll, expect, test } from '@jest/globals';
import { createClient, type VigilClient, VigilError } from '../../src/client/client.js';
import { ADMIN, useService } from '../support/fixture.js';

const service = useService();
let vigil: VigilClient;

beforeAll(() => {
  vigil = createClient({ url: service.url, login: ADMIN });
});

/** What a promise was rejected with. */
const errorOf = async (promise: Promise<unknown>): Promise<VigilError> => {
  const error = await promise.then(() => null).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(VigilError);
  return error as VigilError;
};

test('creates, reads, changes, shares and removes entities', async () => {
  const created = await vigil.geofences.create({ name: 'Depot' });
  expect(await vigil.geofences.get(created._id)).toEqual(created);
  expect((await vigil.geofences.update(created._id, { name: 'Yard' })).name).toBe('Yard');
  expect(await vigil.geofences.get(created._id, { only: ['name'] })).toEqual({
    _id: created._id,
    name: 'Yard',
    success: true,
  });
  const user = await vigil.users.create({ login: 'driver', password: 'long enough' });
  expect((await vigil.geofences.share(created._id, user._id)).access).toEqual([user._id]);
  expect((await vigil.geofences.unshare(created._id, user._id)).access).toEqual([]);
  await vigil.geofences.remove(created._id);
  expect(await vigil.geofences.find(created._id)).toBeNull();
});

test('finds an object by its own id, whatever characters it has', async () => {
  const { _id } = await vigil.objects.create({ id: 'a b?c%2F', name: 'Odd' });
  expect((await vigil.objects.get('a b?c%2F'))._id).toBe(_id);
  await expect(vigil.objects.get('..')).rejects.toThrow(TypeError);
});

test('tells which packets are refused, and which are stored without some fields', async () => {
  await vigil.objects.create({ id: 'partial', name: 'Partial' });
  expect(await vigil.objects.addPackets('partial', [{ n: 1 }, { n: 2, $x: 1 }, { $x: 1 }])).toEqual({
    count: 2,
    refused: [{ index: 2, reason: expect.stringContaining('"$x"') }],
    incomplete: [{ index: 1, reason: expect.stringContaining('"$x"') }],
  });
  expect((await vigil.objects.packets('partial').all()).map(({ n }) => n)).toEqual([1, 2]);
});

test('stores packets, and lists them page by page until there are no more', async () => {
  await vigil.objects.create({ id: 'truck', name: 'Truck' });
  const packets = Array.from({ length: 25 }, (_, n) => ({ time: 1_700_000_000_000 + n, n }));
  expect(await vigil.objects.addPackets('truck', packets)).toEqual({ count: 25, refused: [], incomplete: [] });
  const sizes: number[] = [];
  for await (const page of vigil.objects.packets('truck', { pageSize: 10 }).pages()) sizes.push(page.length);
  expect(sizes).toEqual([10, 10, 5]);
  const growing: number[] = [];
  const pageSize = (read: number): number => (read === 0 ? 5 : read + 4);
  for await (const page of vigil.objects.packets('truck', { pageSize }).pages()) growing.push(page.length);
  expect(growing).toEqual([5, 9, 11]);
  const numbers = async (query: object) => (await vigil.objects.packets('truck', query).all()).map(({ n }) => n);
  expect(await numbers({ pageSize: 7, limit: 16 })).toEqual(packets.slice(0, 16).map(({ n }) => n));
  expect(await numbers({ pageSize: 10, sortBy: '-n', only: ['n'] })).toEqual(packets.map(({ n }) => n).reverse());
  expect(await numbers({ from: new Date(1_700_000_000_020), to: 1_700_000_000_022 })).toEqual([20, 21, 22]);
  const { count, last } = await vigil.objects.packetsMeta('truck', { only: ['n'] });
  expect([count, last?.n]).toEqual([25, 24]);
});

test.each([
  ['text that looks like a number', { 'config.code': '007' }, ['text']],
  ['a number', { 'config.code': 7 }, ['number']],
  ['one of several values', { 'config.code': ['007', 7, true] }, ['text', 'number', 'boolean']],
  ['text with a comma', { name: 'Truck, red' }, ['comma']],
  ['nothing', { name: 'missing' }, []],
])('filters by %s', async (_, where, ids) => {
  for (const [id, fields] of Object.entries({
    text: { name: 'T', config: { code: '007' } },
    number: { name: 'N', config: { code: 7 } },
    boolean: { name: 'B', config: { code: true } },
    comma: { name: 'Truck, red' },
  })) {
    if ((await vigil.objects.find(id)) === null) await vigil.objects.create({ id, ...fields });
  }
  const found: string[] = [];
  for await (const { id } of vigil.objects.list({ where, only: ['id'] })) found.push(String(id));
  expect(found).toEqual(ids);
});

test('sends a command, and reads what became of it', async () => {
  await vigil.objects.create({ id: 'lamp', name: 'Lamp' });
  const { _id } = await vigil.objects.send('lamp', 'blink', { times: 3 }, { ttl: '10 min' });
  const command = { _id, command: 'blink', params: { times: 3 }, status: 'queued' };
  expect(await vigil.commands.get(_id)).toMatchObject(command);
  expect(await vigil.objects.commands('lamp', { status: ['queued'] }).all()).toMatchObject([command]);
  const ended = await vigil.request('POST /api/v1/objects/{id}/commands/{commandID}/result', {
    path: { id: 'lamp', commandID: _id },
    body: { status: 'done' },
  });
  expect(ended.status).toBe('done');
});

test('reads stores that an administrator added', async () => {
  await vigil.stores.create({ name: 'drivers', schema: { type: 'object', properties: { name: { type: 'string' } } } });
  const drivers = vigil.store<{ name: string; licence?: string }>('drivers');
  const { _id, name } = await drivers.create({ name: 'Ada' });
  expect(name).toBe('Ada');
  expect(await drivers.meta()).toMatchObject({ count: 1, first: { _id } });
});

test('reports what the service answered: status, tags, explanation, request id', async () => {
  const missing = await errorOf(vigil.objects.get('missing'));
  expect(missing).toMatchObject({ status: 404, tags: ['error_not_found'], message: '404 Not Found' });
  expect(service.logLines.some((line) => line.includes(missing.requestId as string))).toBe(true);
  const invalid = await errorOf(vigil.objects.create({ id: '', name: 'x' }));
  expect([invalid.status, invalid.helper]).toEqual([400, expect.stringContaining('id')]);
});

test('reports an address without a server, after all attempts of requests that are safe to repeat', async () => {
  const waits: number[] = [];
  const away = createClient({
    url: 'http://127.0.0.1:1',
    token: 't',
    attempts: 3,
    retryMs: 1,
    onRetry: (_, waitMs) => waits.push(waitMs),
  });
  expect((await errorOf(away.auth.whoAmI())).status).toBe(0);
  expect(waits).toHaveLength(2);
  expect((await errorOf(away.objects.create({ id: 'a', name: 'a' }))).status).toBe(0);
  await errorOf(away.objects.addPackets('a', [{ n: 1 }]));
  expect(waits).toHaveLength(2);
  await errorOf(away.objects.addPackets('a', [{ _id: '65a00000000000000000000a' }]));
  expect(waits).toHaveLength(4);
});

test('ends a request when its signal aborts', async () => {
  await vigil.objects.create({ id: 'quiet', name: 'Quiet' });
  const stop = new AbortController();
  const waiting = vigil.request('GET /api/v1/objects/{id}/commands', {
    path: { id: 'quiet' },
    query: { wait: 30 },
    signal: stop.signal,
  });
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

test('gives up after the time for an answer', async () => {
  const hasty = createClient({ url: service.url, login: ADMIN, attempts: 1 });
  const request = { path: { id: 'quiet' }, query: { wait: 30 }, timeoutMs: 50 };
  const error = await errorOf(hasty.request('GET /api/v1/objects/{id}/commands', request));
  expect(error.message).toContain('no answer within 0.05 s');
});

test('uses a renewed token after the old one ended, and logs in once for many requests', async () => {
  let logins = 0;
  const counting: typeof fetch = (input, init) => {
    if (String(input).endsWith('/auth/token')) logins++;
    return fetch(input, init);
  };
  const fresh = createClient({ url: service.url, login: ADMIN, fetch: counting });
  await Promise.all([fresh.auth.whoAmI(), fresh.auth.whoAmI(), fresh.objects.list({ limit: 1 }).all()]);
  expect(logins).toBe(1);
  await fresh.auth.logOut();
  await fresh.auth.whoAmI();
  expect(logins).toBe(2);
});

test('asks for the current token before every request and after a 401', async () => {
  const tokens = ['no token', await service.tokenOf(ADMIN.login, ADMIN.password)];
  const client = createClient({
    url: service.url,
    token: () => (tokens.length > 1 ? tokens.shift() : tokens[0]) ?? null,
  });
  expect((await client.auth.whoAmI()).login).toBe(ADMIN.login);
  const wrong = createClient({ url: service.url, token: 'no token' });
  expect((await errorOf(wrong.auth.whoAmI())).status).toBe(401);
});

test('opens and ends a session as a page does, with the cookie of the browser', async () => {
  let cookie = '';
  const withCookies: typeof fetch = async (input, init) => {
    const response = await fetch(input, { ...init, headers: { ...init?.headers, ...(cookie && { cookie }) } });
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie;
    return response;
  };
  const page = createClient({ url: service.url, fetch: withCookies });
  expect((await errorOf(page.auth.whoAmI())).status).toBe(401);
  await page.auth.logIn(ADMIN.login, ADMIN.password);
  expect((await page.auth.whoAmI()).login).toBe(ADMIN.login);
  await page.auth.logOut();
  expect((await errorOf(page.auth.whoAmI())).status).toBe(401);
});
