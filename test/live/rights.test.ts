/** Open sockets follow permission changes on every instance. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { ADMIN, type Answer, type Call, startTestService, type TestService, testUri } from '../support/fixture.js';
import { cookieOf, openRaw, type Raw, toEvent } from '../support/raw-socket.js';
import { until } from '../support/until.js';

const PASSWORD = 'a password of somebody';

let one: TestService;
let other: TestService;
const opened: Raw[] = [];
let count = 0;

beforeAll(async () => {
  const uri = testUri();
  one = await startTestService({}, uri);
  other = await startTestService({}, uri);
});

afterAll(async () => {
  await other.service.stop();
  await other.client.close();
  await one.stop();
});

afterEach(() => {
  for (const { socket } of opened.splice(0)) socket.terminate();
});

async function must(answer: Promise<Answer>) {
  const { status, body } = await answer;
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body;
}

interface Somebody {
  readonly _id: string;
  readonly login: string;
  readonly password: string;
  readonly role: string;
}

async function makeUser(credentials: string[] = ['GET /*']): Promise<Somebody> {
  const login = `user-${++count}`;
  const role = await must(one.admin('POST', 'roles', { name: login, credentials }));
  const user = await must(one.admin('POST', 'users', { login, password: PASSWORD, role: role._id }));
  return { _id: user._id, login, password: PASSWORD, role: role._id };
}

const newObject = (fields: object = {}) =>
  must(one.admin('POST', 'objects', { id: `object-${++count}`, name: 'O', ...fields }));

async function open(service: TestService, headers: Record<string, string>): Promise<Raw> {
  const raw = await openRaw(service.url, headers);
  opened.push(raw);
  expect(await raw.next('4')).toBe('40');
  return raw;
}

/** A socket of the user on each instance. */
async function openBoth(headers: Record<string, string>): Promise<Raw[]> {
  return [await open(one, headers), await open(other, headers)];
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const tokenOf = (user: Somebody, more: object = {}): Promise<string> =>
  must(one.as(null)('POST', 'auth/token', { login: user.login, password: user.password, ...more })).then(
    ({ token }) => token,
  );

/** The packets that each socket received; none is still under way. */
async function receivedBy(...sockets: Raw[]): Promise<unknown[][]> {
  await Promise.all([one.settled(), other.settled()]);
  await Promise.all(sockets.map((raw) => raw.settled()));
  return sockets.map(({ frames }) =>
    frames.splice(0).flatMap((frame) => (frame.startsWith('42["object-packet"') ? [toEvent(frame)[1].n] : [])),
  );
}

const post = (id: string, n: number) => must(one.admin('POST', `objects/${id}/packets`, { n }));

const closed = (sockets: readonly Raw[]): Promise<void> =>
  until(() => sockets.every(({ closedWith }) => closedWith !== null), 'every socket to be closed');

interface Ending {
  readonly name: string;
  readonly act: (user: Somebody, own: { cookie: Call; token: Call }) => Promise<unknown>;
  /** Which of the user's sockets it ends. */
  readonly ends: ('cookie' | 'token')[];
}

const idOfToken = async (user: Somebody): Promise<string> =>
  (await must(one.admin('GET', `tokens?where.user=${user._id}`)))[0]._id;

const ENDINGS: Ending[] = [
  { name: 'the session ended', act: (_, { cookie }) => must(cookie('DELETE', 'auth')), ends: ['cookie'] },
  { name: 'the token given back', act: (_, { token }) => must(token('DELETE', 'auth')), ends: ['token'] },
  {
    name: 'the token revoked by an administrator',
    act: async (user) => must(one.admin('DELETE', `tokens/${await idOfToken(user)}`)),
    ends: ['token'],
  },
  {
    name: 'the user deleted',
    act: ({ _id }) => must(one.admin('DELETE', `users/${_id}`)),
    ends: ['cookie', 'token'],
  },
  {
    name: 'the user disabled',
    act: ({ _id }) => must(one.admin('PATCH', `users/${_id}`, { active: false })),
    ends: ['cookie', 'token'],
  },
  {
    name: 'another password',
    act: ({ _id }) => must(one.admin('PATCH', `users/${_id}`, { password: 'another password' })),
    ends: ['cookie', 'token'],
  },
];

test.each(ENDINGS)('ends only the affected sockets, on both instances: $name', async ({ act, ends }) => {
  const user = await makeUser(['* /*']);
  const bystander = await openBoth(bearer(await tokenOf(await makeUser())));
  const cookie = await cookieOf(one, user);
  const token = await tokenOf(user);
  const sockets = { cookie: await openBoth({ Cookie: cookie }), token: await openBoth(bearer(token)) };
  const withCookie: Call = (method, path, body) => one.as(null)(method, path, body, { Cookie: cookie });
  await act(user, { cookie: withCookie, token: one.as(token) });
  await closed(ends.flatMap((kind) => sockets[kind]));
  const left = [
    ...bystander,
    ...(['cookie', 'token'] as const).filter((kind) => !ends.includes(kind)).flatMap((kind) => sockets[kind]),
  ];
  const { id } = await newObject();
  await post(id, 1);
  expect(await receivedBy(...left)).toEqual(left.map(() => [1]));
  // And it does not get in again.
  for (const kind of ends) {
    const raw = await openRaw(other.url, kind === 'cookie' ? { Cookie: cookie } : bearer(token));
    opened.push(raw);
    expect(await raw.next('4')).toBe('44"Unauthorized"');
  }
});

test('ends a socket when its session or token expires', async () => {
  let nowMs: number | null = null;
  const timed = await startTestService({ now: () => nowMs ?? Date.now() });
  try {
    const cookie = await cookieOf(timed, ADMIN);
    const { body } = await timed.as(null)('POST', 'auth/token', ADMIN);
    const [session] = await timed.client.db().collection('sessions').find().toArray();
    // The service checks again after the last 100 ms of each, when its clock is at the end.
    const expiresMs = new Date(session?.expires).getTime();
    nowMs = expiresMs - 100;
    const ofSession = await open(timed, { Cookie: cookie });
    nowMs = body.expiresAt - 100;
    const ofToken = await open(timed, bearer(body.token));
    nowMs = Math.max(expiresMs, body.expiresAt) - 50;
    const lasting = await open(timed, bearer(await timed.tokenOf(ADMIN.login, ADMIN.password)));
    nowMs = Math.max(expiresMs, body.expiresAt);
    await closed([ofSession, ofToken]);
    expect(lasting.closedWith).toBeNull();
  } finally {
    await timed.stop();
  }
});

// Nothing waits between a change of rights and the next write: the very next event obeys it.

test('keeps a socket open and updates its events when its role loses and regains the permission', async () => {
  const user = await makeUser();
  const sockets = await openBoth(bearer(await tokenOf(user)));
  const { id } = await newObject();
  await post(id, 1);
  expect(await receivedBy(...sockets)).toEqual([[1], [1]]);
  await must(one.admin('PATCH', `roles/${user.role}`, { credentials: ['GET /models'] }));
  await post(id, 2);
  expect(await receivedBy(...sockets)).toEqual([[], []]);
  await must(other.admin('PATCH', `roles/${user.role}`, { credentials: ['GET /objects/*'] }));
  await post(id, 3);
  expect(await receivedBy(...sockets)).toEqual([[3], [3]]);
  expect(sockets.map(({ closedWith }) => closedWith)).toEqual([null, null]);
});

test('applies the permissions of a newly assigned role', async () => {
  const user = await makeUser();
  const silent = await makeUser(['GET /models']);
  const sockets = await openBoth({ Cookie: await cookieOf(one, user) });
  const { id } = await newObject();
  await must(one.admin('PATCH', `users/${user._id}`, { role: silent.role }));
  await post(id, 1);
  expect(await receivedBy(...sockets)).toEqual([[], []]);
});

test('takes the names of a narrowed role for the objects that have them by then', async () => {
  const user = await makeUser(['GET /*', '* /tokens/*']);
  const own = await newObject({ id: 'former-name' });
  const next = await newObject();
  await must(one.admin('PATCH', `users/${user._id}`, { object: own._id }));
  const scopes = [`GET /objects/${own._id}`, `GET /objects/${own._id}/*`];
  const scoped = await tokenOf(user, { scopes });
  const sockets = [...(await openBoth(bearer(await tokenOf(user)))), ...(await openBoth(bearer(scoped)))];
  await must(one.admin('PATCH', `objects/${own._id}`, { id: 'later-name' }));
  await must(one.admin('PATCH', `objects/${next._id}`, { id: 'former-name' }));
  const credentials = ['GET /objects/former-name', 'GET /objects/former-name/*'];
  await must(one.admin('PATCH', `roles/${user.role}`, { credentials }));
  await post(own._id, 1);
  await post(next._id, 2);
  expect(await receivedBy(...sockets)).toEqual([[2], [2], [], []]);
});

test('applies the last permissions after repeated changes during subscribe', async () => {
  const user = await makeUser();
  const first = await newObject();
  const second = await newObject();
  const sockets = await openBoth(bearer(await tokenOf(user)));
  for (let round = 0; round < 10; round++) {
    const last = round === 9;
    for (const { socket } of sockets)
      socket.send(`42["subscribe",{"objects":["${round % 2 ? first.id : second.id}"]}]`);
    const credentials = [last ? `GET /objects/${first.id}` : round % 2 ? 'GET /*' : 'GET /models'];
    await must(one.admin('PATCH', `roles/${user.role}`, { credentials }));
  }
  await post(first._id, 1);
  await post(second._id, 2);
  expect(await receivedBy(...sockets)).toEqual([[1], [1]]);
});

test('ends sockets that connect while their token is being revoked', async () => {
  const user = await makeUser(['* /*']);
  for (let round = 0; round < 10; round++) {
    const scopes = ['GET /objects/none', '* /tokens/*'];
    const token = await tokenOf(user, round % 2 ? {} : { scopes });
    const coming = Array.from({ length: 6 }, (_, at) => openRaw((at % 2 ? one : other).url, bearer(token)));
    const leaving = one.as(token)('DELETE', 'auth');
    const sockets = await Promise.all(coming);
    opened.push(...sockets);
    await must(leaving);
    await until(
      () =>
        sockets.every(
          ({ closedWith, frames }) => closedWith !== null || frames.some((frame) => frame.startsWith('44')),
        ),
      'every socket to be refused or closed',
    );
  }
});

test('applies sharing and unsharing from the next event on', async () => {
  const group = await must(one.admin('POST', 'groups', { name: 'outside' }));
  const role = await must(one.admin('POST', 'roles', { name: 'reader', credentials: ['GET /*'] }));
  const login = { login: 'outsider', password: PASSWORD };
  const user = await must(one.admin('POST', 'users', { ...login, role: role._id, group: group._id }));
  const sockets = await openBoth({ Cookie: await cookieOf(one, login) });
  const { _id } = await newObject();
  await post(_id, 1);
  await must(one.admin('POST', `objects/${_id}/access`, { user: user._id }));
  await post(_id, 2);
  await must(other.admin('DELETE', `objects/${_id}/access/${user._id}`));
  await post(_id, 3);
  await must(one.admin('PATCH', `objects/${_id}`, { status: 'unseen' }));
  await Promise.all([one.settled(), other.settled()]);
  for (const raw of sockets) {
    await raw.settled();
    const events = raw.frames.filter((frame) => frame.startsWith('42')).map(toEvent);
    expect(events.map(([name, payload]) => [name, payload.n ?? payload.object?.access ?? payload])).toEqual([
      ['object-created', [user._id]],
      ['object-packet', 2],
      ['object-removed', { id: _id }],
    ]);
  }
});

test('sends events to the new parent groups of a moved group from the next event on, on both instances', async () => {
  const north = await must(one.admin('POST', 'groups', { name: 'north' }));
  const south = await must(one.admin('POST', 'groups', { name: 'south' }));
  const team = await must(one.admin('POST', 'groups', { name: 'team', parent: north._id }));
  const socketsOf = async (group: string): Promise<Raw[]> => {
    const login = `user-${++count}`;
    await must(one.admin('POST', 'users', { login, password: PASSWORD, group }));
    return openBoth({ Cookie: await cookieOf(one, { login, password: PASSWORD }) });
  };
  const sockets = [...(await socketsOf(north._id)), ...(await socketsOf(south._id)), ...(await socketsOf(team._id))];
  const { _id } = await newObject({ group: team._id });
  for (const [n, place, by] of [
    [1, south, other],
    [2, north, one],
    [3, south, one],
    [4, north, other],
  ] as const) {
    await must(by.admin('PATCH', `groups/${team._id}`, { parent: place._id }));
    await post(_id, n);
    const received = (await receivedBy(...sockets)).map((packets) => packets.filter((packet) => packet !== undefined));
    const yes = [n];
    const no: unknown[] = [];
    expect(received).toEqual(place === south ? [no, no, yes, yes, yes, yes] : [yes, yes, no, no, yes, yes]);
  }
});

const SCOPED: [name: string, scopes: (first: { _id: string; id: string }) => string[], received: number[]][] = [
  ['every object', () => ['GET /objects/*'], [1, 2]],
  ['everything', () => ['* /*'], [1, 2]],
  ['one object by its _id', ({ _id }) => [`GET /objects/${_id}`], [1]],
  ['one object by its own id', ({ id }) => [`GET /objects/${id}`], [1]],
  ['an object that does not exist', () => ['GET /objects/nothing'], []],
  ['writing to objects', () => ['POST /objects/*', 'PATCH /objects/*'], []],
  ['other stores', () => ['GET /models/*'], []],
  ['the list of objects alone', () => ['GET /objects'], []],
  ['nothing', () => [], []],
];

test.each(SCOPED)('restricts events to a token scoped to %s', async (_name, scopes, received) => {
  const user = await makeUser(['* /*']);
  const first = await newObject();
  const second = await newObject();
  const sockets = await openBoth(bearer(await tokenOf(user, { scopes: scopes(first) })));
  await post(first._id, 1);
  await post(second._id, 2);
  expect(await receivedBy(...sockets)).toEqual([received, received]);
});
