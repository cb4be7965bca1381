/** Cookie sessions: when they begin, exactly when they end, and that nothing brings an ended one back. */
import { createHmac, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { createSessions } from '../../src/accounts/sessions.js';
import { LIMITS } from '../../src/core/limits.js';
import { createPerson, openSession, setCookiesOf, TEST_SECRET, UNAUTHORIZED, withCookie } from '../support/callers.js';
import { openLine } from '../support/cuttable-connection.js';
import { ADMIN, startTestService, type TestService, testUri, useService } from '../support/fixture.js';
import { openRaw } from '../support/raw-socket.js';
import { until } from '../support/until.js';

const service = useService();
const sessions = () => service.client.db().collection<{ _id: string; expires: Date }>('sessions');
const statusWith = async (cookie: string, at: Pick<TestService, 'as'> = service): Promise<number> =>
  (await withCookie(at, cookie)('GET', 'auth')).status;

/** The signed cookie of a session id, as the service makes it. */
const sign = (id: string, secret: string): string => {
  const signature = createHmac('sha256', secret).update(id).digest('base64').replace(/=+$/, '');
  return `sid=${encodeURIComponent(`s:${id}.${signature}`)}`;
};
const idOf = (cookie: string): string =>
  decodeURIComponent(cookie.slice('sid='.length)).slice(2).split('.')[0] as string;

test('writes a session once, so that nothing brings back one that ended during its login', async () => {
  const changes = sessions().watch([], { maxAwaitTimeMS: 100 });
  await changes.tryNext();
  const id = idOf(await openSession(service, ADMIN));
  await sessions().insertOne({ _id: 'last', expires: new Date() });
  const seen: unknown[] = [];
  for await (const change of changes) {
    if (change.operationType !== 'insert' || change.documentKey._id !== 'last') seen.push(change);
    else break;
  }
  expect(seen).toEqual([expect.objectContaining({ operationType: 'insert', documentKey: { _id: id } })]);
  await sessions().deleteOne({ _id: 'last' });
});

describe('with a replaced clock', () => {
  let nowMs: number | null = null;
  const timed = useService({ now: () => nowMs ?? Date.now(), env: { SESSION_LIFETIME: '1h' } });

  test('ends at its Expires to the millisecond, however much it is used, even before the database removes it', async () => {
    const beforeMs = Date.now();
    const answer = await timed.as(null)('POST', 'auth', ADMIN);
    const [setCookie = ''] = setCookiesOf(answer);
    const expiresMs = Date.parse(/Expires=([^;]+)/.exec(setCookie)?.[1] ?? '');
    // A date in a cookie has no milliseconds.
    expect(expiresMs).toBeGreaterThan(beforeMs + 3_599_000);
    expect(expiresMs).toBeLessThanOrEqual(Date.now() + 3_600_000);
    const cookie = setCookie.split(';')[0] as string;
    for (let usedMs = expiresMs - 3_600_000; usedMs < expiresMs; usedMs += 360_000) {
      nowMs = usedMs;
      const { status, headers } = await withCookie(timed, cookie)('GET', 'auth');
      expect([status, headers['set-cookie']]).toEqual([200, undefined]);
    }
    for (const [atMs, status] of [
      [expiresMs - 1, 200],
      [expiresMs, 401],
      [expiresMs + 1, 401],
      [expiresMs - 1, 200],
    ] as const) {
      nowMs = atMs;
      expect([atMs - expiresMs, await statusWith(cookie, timed)]).toEqual([atMs - expiresMs, status]);
    }
    expect(await timed.client.db().collection('sessions').countDocuments()).toBe(1);
    nowMs = expiresMs;
    expect((await withCookie(timed, cookie)('GET', 'auth')).body).toEqual(UNAUTHORIZED);
    nowMs = null;
    expect(await statusWith(await openSession(timed, ADMIN), timed)).toBe(200);
  });
});

describe('the Cookie header', () => {
  let cookie: string;
  beforeAll(async () => {
    cookie = await openSession(service, ADMIN);
  });

  test.each([
    ['alone', (sid: string) => sid],
    ['other cookies before it', (sid: string) => `a=1; theme=dark; ${sid}`],
    ['other cookies behind it', (sid: string) => `${sid}; a=1; xsid=2`],
    [
      'the attributes of Set-Cookie',
      (sid: string) => `${sid}; Path=/; Expires=Fri, 01 Jan 2100 00:00:00 GMT; HttpOnly`,
    ],
    ['no space between', (sid: string) => `a=1;${sid};b=2`],
    ['not encoded', (sid: string) => decodeURIComponent(sid)],
    ['a broken cookie beside it', (sid: string) => `%%%=%; =; ;; ${sid}`],
  ])('accepts a Cookie header with %s', async (_, write) => {
    expect(await statusWith(write(cookie))).toBe(200);
  });

  const id = () => idOf(cookie);
  test.each([
    ['nothing', () => 'sid='],
    ['the id, not signed', () => `sid=${id()}`],
    ['the id, marked as signed', () => `sid=s%3A${id()}`],
    ['an empty signature', () => `sid=s%3A${id()}.`],
    ['the signature of another secret', () => sign(id(), 'another-secret-0123456789-abcdefghij')],
    ['the signature of another id', () => cookie.replace(id(), randomBytes(24).toString('base64url'))],
    ['a changed signature', () => `${cookie.slice(0, -1)}${cookie.endsWith('A') ? 'B' : 'A'}`],
    ['a rightly signed id of no session', () => sign('no-such-session', TEST_SECRET)],
    ['a rightly signed empty id', () => sign('', TEST_SECRET)],
    ['an object', () => `sid=j%3A${encodeURIComponent('{"$ne":null}')}`],
    ['a signed object', () => sign('j:{"$ne":null}', TEST_SECRET)],
    ['another name', () => cookie.replace('sid', 'SID')],
    ['another name that ends so', () => `x${cookie}`],
    ['a forged one before it', () => `${sign('no-such-session', TEST_SECRET)}; ${cookie}`],
    ['a NUL', () => `${cookie}%00`],
    ['broken encoding', () => 'sid=%E0%A4%A'],
    ['a prototype', () => '__proto__=x; constructor=y'],
  ])('refuses a Cookie header with %s', async (_, write) => {
    const answer = await withCookie(service, write())('GET', 'auth');
    expect([answer.status, answer.body]).toEqual([401, UNAUTHORIZED]);
  });
});

describe('when a session begins', () => {
  test('creates a new id at login and ends the session it was sent with', async () => {
    const first = await openSession(service, ADMIN);
    const second = await openSession(service, ADMIN, { Cookie: first });
    expect(second).not.toBe(first);
    expect([await statusWith(first), await statusWith(second)]).toEqual([401, 200]);
  });

  test('rejects an invented id, signed or not', async () => {
    for (const planted of ['sid=planted', sign('planted', TEST_SECRET)]) {
      const given = await openSession(service, ADMIN, { Cookie: planted });
      expect(idOf(given)).toMatch(/^[\w-]{32,}$/);
      expect(await statusWith(planted)).toBe(401);
      expect(await sessions().countDocuments({ _id: 'planted' })).toBe(0);
    }
  });

  test('keeps the session and sets no cookie at a failed login', async () => {
    const cookie = await openSession(service, ADMIN);
    const before = await sessions().findOne({ _id: idOf(cookie) });
    const wrong = { login: ADMIN.login, password: 'not the password' };
    const failed = await withCookie(service, cookie)('POST', 'auth', wrong);
    expect([failed.status, setCookiesOf(failed)]).toEqual([401, []]);
    // Nor does it make the session last longer.
    expect(await sessions().findOne({ _id: idOf(cookie) })).toEqual(before);
    expect(await statusWith(cookie)).toBe(200);
  });

  test('stores a session only at login, not at use', async () => {
    const cookie = await openSession(service, ADMIN);
    const stored = await sessions().findOne({ _id: idOf(cookie) });
    await service.settled();
    const count = await sessions().countDocuments();
    const changes = service.changes.length;
    const call = withCookie(service, cookie);
    const anonymous = service.as(null);
    for (let round = 0; round < 20; round++) {
      await Promise.all([
        call('GET', 'auth'),
        call('GET', 'objects'),
        call('GET', 'objects/missing'),
        anonymous('GET', 'auth'),
        anonymous('GET', 'objects'),
        anonymous('POST', 'auth', { login: ADMIN.login }),
        withCookie(service, 'sid=planted')('GET', 'objects'),
        withCookie(service, sign('planted', TEST_SECRET))('DELETE', 'auth'),
        service.admin('GET', 'auth'),
      ]);
    }
    await anonymous('POST', 'auth', { login: ADMIN.login, password: 'not the password' });
    await anonymous('POST', 'auth/token', ADMIN);
    await service.settled();
    expect(await sessions().findOne({ _id: idOf(cookie) })).toEqual(stored);
    expect(await sessions().countDocuments()).toBe(count);
    expect(service.changes.slice(changes).filter(({ store }) => store === 'sessions')).toEqual([]);
  });

  test('stores only user, begin, origin and expiry', async () => {
    const cookie = await openSession(service, ADMIN);
    const stored = await sessions().findOne({ _id: idOf(cookie) });
    expect(Object.keys(stored ?? {}).sort()).toEqual(['_id', 'expires', 'session']);
    expect(Object.keys((stored as unknown as { session: object }).session).sort()).toEqual([
      'address',
      'cookie',
      'openedMs',
      'user',
    ]);
  });
});

describe('logout', () => {
  test('ends only this session and clears the cookie', async () => {
    const leaving = await openSession(service, ADMIN);
    const staying = await openSession(service, ADMIN);
    const answer = await withCookie(service, leaving)('DELETE', 'auth');
    expect([answer.status, answer.text]).toEqual([200, '{"success":true}']);
    expect(setCookiesOf(answer)).toEqual([
      'sid=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax',
    ]);
    expect([await statusWith(leaving), await statusWith(staying)]).toEqual([401, 200]);
    expect((await withCookie(service, leaving)('DELETE', 'auth')).status).toBe(401);
  });
});

describe('the number of sessions per user', () => {
  test('ends the oldest session of the same user, with its sockets, beyond the limit', async () => {
    const person = await createPerson(service);
    const bystander = await createPerson(service);
    const other = await openSession(service, bystander);
    const oldest = await openSession(service, person);
    const socket = await openRaw(service.url, { Cookie: oldest });
    const next = await openSession(service, person);
    // As if by as many logins more, each with the store's own form.
    const like = await sessions().findOne({ _id: idOf(next) });
    if (like === null) throw new Error('no session');
    const expires = new Date(like.expires.getTime() + 1);
    const many = Array.from({ length: LIMITS.sessionsPerUser - 2 }, (_, at) => ({
      ...like,
      _id: `made-${person.id}-${at}`,
      expires,
    }));
    await sessions().insertMany(many);
    expect([await statusWith(oldest), await statusWith(next)]).toEqual([200, 200]);
    const newest = await openSession(service, person);
    expect([await statusWith(oldest), await statusWith(next), await statusWith(newest)]).toEqual([401, 200, 200]);
    await until(() => socket.closedWith !== null, 'the oldest session’s socket to end');
    await openSession(service, person);
    expect([await statusWith(next), await statusWith(newest), await statusWith(other)]).toEqual([401, 200, 200]);
    const ofPerson = { 'session.user': person.id } as object;
    expect(await sessions().countDocuments(ofPerson)).toBe(LIMITS.sessionsPerUser);
  });

  test('distinguishes the sessions of one second: lists the newest first, and ends the oldest', async () => {
    const person = await createPerson(service);
    const inOneSecond = (count: number, userId: string, expires: Date) =>
      Array.from({ length: count }, (_, nth) => ({
        _id: `${userId}-${nth}`,
        expires,
        session: { user: userId, openedMs: nth, cookie: { expires } },
      }));
    const expiresMs = Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000;
    // With those of others, the database does not read sessions by when they end.
    await sessions().insertMany(inOneSecond(3_000, 'others', new Date(expiresMs + 1_000)));
    await sessions().insertMany(inOneSecond(LIMITS.sessionsPerUser, person.id, new Date(expiresMs)));
    const { body } = await withCookie(service, await openSession(service, person))('GET', 'account/sessions');
    const kept = Array.from({ length: LIMITS.sessionsPerUser - 1 }, (_, nth) => nth + 1);
    expect(body.map(({ time }: { time: number }) => time)).toEqual([expect.any(Number), ...kept.toReversed()]);
    await sessions().deleteMany({ 'session.user': 'others' } as object);
  });

  test('counts concurrent logins', async () => {
    const person = await createPerson(service);
    const logins = LIMITS.sessionsPerUser + 10;
    await Promise.all(Array.from({ length: logins }, () => openSession(service, person)));
    expect(await sessions().countDocuments({ 'session.user': person.id } as object)).toBe(LIMITS.sessionsPerUser);
  });
});

describe('with several secrets', () => {
  const old = 'old-secret-0123456789-abcdefghijklmnop';
  const fresh = 'new-secret-0123456789-abcdefghijklmnop';
  const uri = testUri();
  const instances: TestService[] = [];
  const start = async (SECRET: string): Promise<TestService> => {
    const instance = await startTestService({ env: { SECRET } }, uri);
    instances.push(instance);
    return instance;
  };
  afterAll(async () => {
    for (const instance of instances) await instance.stop();
  });

  test('signs with the first secret, verifies with all, and rejects a removed one', async () => {
    const before = await start(old);
    const rotating = await start(`${fresh}, ${old}`);
    const after = await start(fresh);
    const oldProofs = {
      cookie: await openSession(before, ADMIN),
      token: await before.tokenOf(ADMIN.login, ADMIN.password),
    };
    const newProofs = {
      cookie: await openSession(rotating, ADMIN),
      token: await rotating.tokenOf(ADMIN.login, ADMIN.password),
    };
    const statusesAt = async (at: TestService, { cookie, token }: { cookie: string; token: string }) => [
      await statusWith(cookie, at),
      (await at.as(token)('GET', 'auth')).status,
    ];
    expect(await statusesAt(before, oldProofs)).toEqual([200, 200]);
    expect(await statusesAt(rotating, oldProofs)).toEqual([200, 200]);
    expect(await statusesAt(after, oldProofs)).toEqual([401, 401]);
    expect(await statusesAt(before, newProofs)).toEqual([401, 401]);
    expect(await statusesAt(rotating, newProofs)).toEqual([200, 200]);
    expect(await statusesAt(after, newProofs)).toEqual([200, 200]);
  });
});

test('recovers a session store that was created while the database was unavailable', async () => {
  const cookie = await openSession(service, ADMIN);
  const line = await openLine(service.mongodbUri);
  // The time after which it says that there is none: a machine that is busy may need longer to find it.
  const client = new MongoClient(line.uri, { serverSelectionTimeoutMS: 100 });
  await until(() => client.connect().catch(() => null), 'a connection');
  await line.cut();
  const store = createSessions({ client, secrets: [TEST_SECRET], lifetimeMs: 60_000, cookiePath: '/', now: Date.now });
  await expect(store.find(cookie)).rejects.toMatchObject({ status: 503 });
  await line.mend();
  await until(async () => (await store.find(cookie).catch(() => null))?.id === idOf(cookie));
  await client.close();
  await line.cut();
});

test('removes expired sessions', async () => {
  const [expiry] = (await sessions().indexes()).filter(({ expireAfterSeconds }) => expireAfterSeconds === 0);
  expect(expiry).toMatchObject({ key: { expires: 1 } });
});
