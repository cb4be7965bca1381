/** Bearer tokens: which are good, until when, for what, and how they end. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import jwt from 'jsonwebtoken';
import { LIMITS } from '../../src/core/limits.js';
import {
  createPerson,
  ended,
  openSession,
  type Person,
  TEST_SECRET,
  UNAUTHORIZED,
  withCookie,
} from '../support/callers.js';
import { ADMIN, openListener, startTestService, type TestService, testUri, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const statusOf = async (token: string): Promise<number> => (await service.as(token)('GET', 'auth')).status;
const openToken = (fields: object) => service.as(null)('POST', 'auth/token', { ...ADMIN, ...fields });

describe('the validity of tokens', () => {
  let good: string;
  let claims: jwt.JwtPayload;
  beforeAll(async () => {
    good = await service.tokenOf(ADMIN.login, ADMIN.password);
    claims = jwt.decode(good) as jwt.JwtPayload;
  });

  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = (change: object, options: jwt.SignOptions = {}, secret: jwt.Secret = TEST_SECRET): string =>
    jwt.sign(JSON.parse(JSON.stringify({ ...claims, ...change })), secret, { algorithm: 'HS256', ...options });
  const payloadOf = (): string => good.split('.')[1] as string;
  const NOW_S = Math.floor(Date.now() / 1_000);
  const signatureOf = (): string => good.split('.')[2] as string;

  test('contains only our claims and header, without data of the user', () => {
    const { header, payload } = jwt.decode(good, { complete: true }) as jwt.Jwt;
    expect(header).toEqual({ alg: 'HS256', typ: 'JWT' });
    expect(Object.keys(payload).sort()).toEqual(['aud', 'exp', 'iat', 'iss', 'jti', 'sub', 'type']);
  });

  test('accepts a token signed again with the same claims, so that the cases below fail for their own reason', async () => {
    expect(await statusOf(signed({}))).toBe(200);
  });

  test('accepts a token of an instance whose clock is ahead within the limit', async () => {
    const aheadS = LIMITS.clockSkewMs / 1_000 - 5;
    expect(await statusOf(signed({ iat: NOW_S + aheadS }))).toBe(200);
  });

  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const pem = publicKey.export({ type: 'spki', format: 'pem' }) as string;
  test.each<[string, () => string]>([
    ['alg none', () => `${part({ alg: 'none', typ: 'JWT' })}.${payloadOf()}.`],
    ['alg none with a signature', () => `${part({ alg: 'none', typ: 'JWT' })}.${payloadOf()}.${signatureOf()}`],
    ['alg nOnE', () => `${part({ alg: 'nOnE', typ: 'JWT' })}.${payloadOf()}.`],
    ['HS512', () => signed({}, { algorithm: 'HS512' })],
    ['HS384', () => signed({}, { algorithm: 'HS384' })],
    ['RS256', () => signed({}, { algorithm: 'RS256' }, privateKey)],
    ['HS256 with a public key', () => signed({}, {}, pem)],
    ['another secret', () => signed({}, {}, 'another-secret-0123456789-abcdefghij')],
    ['an empty signature', () => `${good.split('.').slice(0, 2).join('.')}.`],
    ['no signature', () => good.split('.').slice(0, 2).join('.')],
    ['a changed signature', () => `${good.slice(0, -4)}${good.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`],
    ['another payload', () => [good.split('.')[0], part({ ...claims, sub: 'f'.repeat(24) }), signatureOf()].join('.')],
    ['a second payload', () => `${good}.${payloadOf()}`],
    ['no exp', () => signed({ exp: undefined })],
    ['exp in the past', () => signed({ exp: NOW_S - 1, iat: NOW_S - 10 })],
    ['exp as text', () => `${part({ alg: 'HS256' })}.${part({ ...claims, exp: '9999999999' })}.x`],
    ['no iat', () => signed({ iat: undefined }, { noTimestamp: true })],
    ['iat in the future', () => signed({ iat: NOW_S + 3_600 })],
    ['exp in the past by less than clocks may be apart', () => signed({ exp: NOW_S - 1, iat: NOW_S - 100 })],
    ['nbf in the future', () => signed({ nbf: NOW_S + 3_600 })],
    ['a string for a payload', () => jwt.sign('admin', TEST_SECRET)],
    ['another issuer', () => signed({ iss: 'evil' })],
    ['no issuer', () => signed({ iss: undefined })],
    ['another audience', () => signed({ aud: 'evil' })],
    ['no audience', () => signed({ aud: undefined })],
    ['another type', () => signed({ type: 'refresh' })],
    ['no type', () => signed({ type: undefined })],
    ['a list of types', () => signed({ type: ['access'] })],
    ['another user', () => signed({ sub: '0'.repeat(24) })],
    ['no such user', () => signed({ sub: 'f'.repeat(24) })],
    ['no user', () => signed({ sub: undefined })],
    ['another token', () => signed({ jti: 'f'.repeat(24) })],
    ['no token', () => signed({ jti: undefined })],
    ['a text that is no id', () => signed({ jti: 'x' })],
    ['crit', () => signed({}, { header: { alg: 'HS256', crit: ['exp'] } as unknown as jwt.JwtHeader })],
    ['nothing', () => ''],
    ['spaces', () => '   '],
    ['three dots', () => '...'],
    ['over the length', () => signed({ more: 'x'.repeat(LIMITS.tokenCharacters) })],
    ['the session secret itself', () => TEST_SECRET],
  ])('rejects a token with %s', async (_, make) => {
    const answer = await service.as(null)('GET', 'auth', undefined, { Authorization: `Bearer ${make()}` });
    expect([answer.status, answer.body]).toEqual([401, UNAUTHORIZED]);
  });

  test('rejects a subject or id that is not text', async () => {
    for (const change of [{ sub: { $ne: null } }, { jti: { $ne: null } }, { sub: 1 }, { sub: [ADMIN.login] }]) {
      const body = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ ...claims, ...change })}`;
      const forged = jwt.sign('x', TEST_SECRET).split('.')[2];
      expect(await statusOf(`${body}.${forged}`)).toBe(401);
      const { createHmac } = await import('node:crypto');
      const signature = createHmac('sha256', TEST_SECRET).update(body).digest('base64url');
      expect(await statusOf(`${body}.${signature}`)).toBe(401);
    }
  });

  test('accepts Bearer in any case, or the bare token', async () => {
    for (const value of [`Bearer ${good}`, `bearer ${good}`, `BEARER  ${good}`, good]) {
      expect((await service.as(null)('GET', 'auth', undefined, { Authorization: value })).status).toBe(200);
    }
    for (const value of [`Basic ${good}`, `Token ${good}`, `Bearer Bearer ${good}`, `Bearer ${good} x`, 'Bearer']) {
      expect((await service.as(null)('GET', 'auth', undefined, { Authorization: value })).status).toBe(401);
    }
  });

  test('ignores a token in a query, a body or a cookie', async () => {
    expect((await service.as(null)('GET', `auth?token=${good}&access_token=${good}`)).status).toBe(401);
    expect((await service.as(null)('POST', 'labels', { token: good, access_token: good })).status).toBe(401);
    expect((await withCookie(service, `token=${good}; sid=${good}`)('GET', 'auth')).status).toBe(401);
  });

  test('prefers a token to a cookie, even if the token is invalid', async () => {
    const person = await createPerson(service);
    const call = withCookie(service, await openSession(service, person));
    expect((await call('GET', 'auth')).body._id).toBe(person.id);
    expect((await call('GET', 'auth', undefined, { Authorization: good })).body.login).toBe(ADMIN.login);
    expect((await call('GET', 'auth', undefined, { Authorization: 'Bearer nonsense' })).status).toBe(401);
    const badCookie = withCookie(service, 'sid=nonsense');
    expect((await badCookie('GET', 'auth', undefined, { Authorization: `Bearer ${good}` })).status).toBe(200);
  });
});

describe('the expiry of a token', () => {
  let nowMs: number | null = null;
  const timed = useService({ now: () => nowMs ?? Date.now() });

  test('ends strictly at expiresAt, which the token contains too', async () => {
    const { body } = await timed.as(null)('POST', 'auth/token', { ...ADMIN, expiresIn: '10m' });
    const claims = jwt.decode(body.token) as jwt.JwtPayload;
    expect([(claims.iat ?? 0) * 1_000, (claims.exp ?? 0) * 1_000]).toEqual([body.issuedAt, body.expiresAt]);
    expect(body.expiresAt - body.issuedAt).toBe(600_000);
    for (const fresh of [false, true]) {
      // Seen before, or by an instance that has never seen it.
      const at = fresh ? await startTestService({ now: () => nowMs ?? Date.now() }, timed.mongodbUri) : timed;
      for (const [offsetMs, status] of [
        [-1_000, 200],
        [-1, 200],
        [0, 401],
        [1, 401],
        [1_000, 401],
        [-1, 200],
      ] as const) {
        nowMs = body.expiresAt + offsetMs;
        expect([offsetMs, (await at.as(body.token)('GET', 'auth')).status]).toEqual([offsetMs, status]);
      }
      nowMs = null;
      if (fresh) await at.service.stop();
      if (fresh) await at.client.close();
    }
  });

  test('records the last use at most once a minute', async () => {
    const there = await startTestService({ now: () => nowMs ?? Date.now() }, timed.mongodbUri);
    try {
      const startMs = Math.ceil(Date.now() / 1_000) * 1_000 + 1_000;
      nowMs = startMs;
      const { body } = await timed.admin('POST', 'tokens', { name: 'used', expiresIn: '1 day' });
      expect(body).not.toHaveProperty('lastUsed');
      const call = timed.as(body.token);
      const callThere = there.as(body.token);
      const path = `tokens/${body._id}`;
      const shown = async () => (await timed.admin('GET', path)).body.lastUsed;
      expect(await shown()).toBeUndefined();
      for (const [offsetMs, uses, notedMs] of [
        [0, [call, call, callThere], 0],
        [LIMITS.tokenLastUsedDelayMs - 1, [callThere, call, call], 0],
        [LIMITS.tokenLastUsedDelayMs, [call, callThere, call], LIMITS.tokenLastUsedDelayMs],
        [3 * LIMITS.tokenLastUsedDelayMs, [callThere, call], 3 * LIMITS.tokenLastUsedDelayMs],
      ] as const) {
        nowMs = startMs + offsetMs;
        for (const use of uses) {
          expect((await use('GET', 'auth')).status).toBe(200);
          await until(async () => (await shown()) === startMs + notedMs, `noted ${notedMs}`);
        }
      }
      expect((await timed.admin('PATCH', path, { lastUsed: 1 })).body.lastUsed).toBe(startMs + 180_000);
      await timed.settled();
      const changes = timed.changes.filter(({ id, kind }) => id === body._id && kind === 'changed');
      // Three notes, and the change that changed nothing but `_at`.
      expect(changes.map(({ after }) => after?.lastUsed)).toEqual(
        [0, 60_000, 180_000, 180_000].map((offsetMs) => startMs + offsetMs),
      );
    } finally {
      nowMs = null;
      await there.service.stop();
      await there.client.close();
    }
  });

  const DAY_MS = 86_400_000;
  test.each([
    ['90 days', 90 * DAY_MS],
    ['12h', DAY_MS / 2],
    ['1s', 1_000],
    [60_000, 60_000],
    ['60000', 60_000],
    ['2w', 14 * DAY_MS],
    [LIMITS.tokenLifetimeMaxMs, LIMITS.tokenLifetimeMaxMs],
  ])('accepts expiresIn %p', async (expiresIn, lifetimeMs) => {
    const { status, body } = await openToken({ expiresIn });
    expect([status, body.expiresAt - body.issuedAt]).toEqual([200, lifetimeMs]);
    // By a session: a token that a token makes ends with it at the latest.
    const call = withCookie(service, await openSession(service, ADMIN));
    const made = await call('POST', 'tokens', { name: 'one', expiresIn });
    expect([made.status, made.body.expiresAt - made.body.issuedAt]).toEqual([200, lifetimeMs]);
  });

  test.each<unknown>([
    0,
    999,
    -1,
    1.5e300,
    LIMITS.tokenLifetimeMaxMs + 1_000,
    'never',
    '',
    '-1 day',
    '10 years',
    {},
    { toString: 1 },
    ['1h'],
    [],
    true,
  ])('refuses expiresIn %p', async (expiresIn) => {
    for (const answer of [
      await openToken({ expiresIn }),
      await service.admin('POST', 'tokens', { name: 'x', expiresIn }),
    ]) {
      const expected = 'expiresIn: expected a duration such as "90 days", or milliseconds; 1 second to 3650 days';
      expect([answer.status, answer.body.helper?.message]).toEqual([400, expected]);
    }
  });
});

describe('the scopes of a token', () => {
  let viewer: Person;
  beforeAll(async () => {
    viewer = await createPerson(service);
  });
  const openAs = ({ login, password }: Person, scopes: unknown) =>
    service.as(null)('POST', 'auth/token', { login, password, scopes });

  test('answers 403 outside its scopes, even if the user has the permission', async () => {
    const { body } = await openToken({ scopes: ['GET /labels/*', 'POST /tokens'] });
    const call = service.as(body.token);
    expect((await call('GET', 'labels')).status).toBe(200);
    expect((await call('GET', 'objects')).status).toBe(403);
    expect((await call('POST', 'labels', { name: 'x' })).status).toBe(403);
    expect((await call('GET', 'auth')).body.scopes).toEqual(['GET /labels/*', 'POST /tokens']);
    // Without scopes of its own, what it makes is as narrow as itself; wider is refused.
    const same = await call('POST', 'tokens', { name: 'same' });
    expect(same.body.scopes).toEqual(['GET /labels/*', 'POST /tokens']);
    const nulled = await call('POST', 'tokens', { name: 'same', scopes: null });
    expect(nulled.body.scopes).toEqual(['GET /labels/*', 'POST /tokens']);
    expect((await service.as(same.body.token)('GET', 'objects')).status).toBe(403);
    for (const wider of ['* /*', 'GET /*', 'GET /objects', '* /labels/*', 'GET /*/*', 'GET /api/v1/*']) {
      expect([wider, (await call('POST', 'tokens', { name: 'wide', scopes: [wider] })).status]).toEqual([wider, 403]);
    }
    expect((await call('POST', 'tokens', { name: 'narrow', scopes: ['GET /labels'] })).status).toBe(200);
  });

  test('never permits more than the user, also after the user loses permissions', async () => {
    expect((await openAs(viewer, ['* /*'])).status).toBe(403);
    expect((await openAs(viewer, ['DELETE /objects/*'])).status).toBe(403);
    const { body } = await openToken({ scopes: ['* /labels/*'] });
    expect((await service.as(body.token)('POST', 'labels', { name: 'mine' })).status).toBe(200);
    const strong = await service.admin('POST', 'roles', { name: 'strong', credentials: ['GET /*', '* /labels/*'] });
    const person = await createPerson(service, { role: strong.body._id });
    const scoped = await openAs(person, ['POST /labels']);
    const call = service.as(scoped.body.token);
    expect((await call('POST', 'labels', { name: 'x' })).status).toBe(200);
    await service.admin('PATCH', `roles/${strong.body._id}`, { credentials: ['GET /*'] });
    expect((await call('POST', 'labels', { name: 'x' })).status).toBe(403);
  });

  test.each([['text'], [[1]], [['GET']], [['get /objects']], [['GET objects /x']], [[null]], [{ 0: 'GET /*' }]])(
    'not scopes %j',
    async (scopes) => {
      expect((await openToken({ scopes })).status).toBe(400);
      expect((await service.admin('POST', 'tokens', { name: 'x', scopes })).status).toBe(400);
    },
  );

  test('cannot gain the full permissions of its user through a password change', async () => {
    const role = await service.admin('POST', 'roles', { name: 'self', credentials: ['GET /*', '* /users/*'] });
    const person = await createPerson(service, { role: role.body._id });
    const scoped = (await openAs(person, ['PATCH /users/*', 'DELETE /users/*', 'GET /users/*'])).body.token;
    const call = service.as(scoped);
    expect((await call('PATCH', `users/${person.id}`, { password: 'taken over now' })).status).toBe(403);
    expect((await call('DELETE', `users/${person.id}`)).status).toBe(403);
    expect(await service.tokenOf(person.login, person.password)).toEqual(expect.any(String));
    expect((await person.call('PATCH', `users/${person.id}`, { password: 'my own new one' })).status).toBe(200);
  });
});

describe('the store of tokens', () => {
  test('shows the token itself only once', async () => {
    const fields = { name: 'plant', expiresIn: '90 days', scopes: ['GET /*'] };
    const made = await service.admin('POST', 'tokens', fields);
    expect(made.body).toMatchObject({ name: 'plant', scopes: ['GET /*'], token: expect.any(String), success: true });
    const path = `tokens/${made.body._id}`;
    const answers = [
      await service.admin('GET', path),
      await service.admin('GET', 'tokens'),
      await service.admin('GET', `${path}?only=token,_expires,name`),
      await service.admin('PATCH', path, { name: 'renamed' }),
      await service.admin('DELETE', path),
    ];
    for (const { status, text } of answers) {
      expect([status, text.includes('"token"'), text.includes('eyJ'), text.includes('_expires')]).toEqual([
        200,
        false,
        false,
        false,
      ]);
    }
    expect(answers[1]?.body.some(({ _id }: { _id: string }) => _id === made.body._id)).toBe(true);
    expect(await statusOf(made.body.token)).toBe(401);
    const inDatabase = JSON.stringify(await service.client.db().collection('tokens').find().toArray());
    expect(inDatabase).not.toContain('eyJ');
  });

  test('ignores scopes, user and expiry in a PATCH', async () => {
    const made = await service.admin('POST', 'tokens', { name: 'fixed', expiresIn: '1h', scopes: ['GET /labels'] });
    const { success: _, token, ...before } = made.body;
    const wide = {
      scopes: ['* /*'],
      user: 'f'.repeat(24),
      expiresAt: 9e12,
      issuedAt: 1,
      expiresIn: '9 days',
      token: 'x',
      _expires: 1,
    };
    const changed = await service.admin('PATCH', `tokens/${before._id}`, wide);
    expect(changed.status).toBe(200);
    expect(changed.body).toEqual({ ...before, _at: expect.any(Number), success: true });
    expect((await service.admin('PATCH', `tokens/${before._id}`, { 'scopes.0': '* /*' })).status).toBe(400);
    expect((await service.as(token)('GET', 'objects')).status).toBe(403);
    expect((await service.as(token)('GET', 'labels')).status).toBe(200);
  });
});

describe('how a token ends', () => {
  const uri = testUri();
  let here: TestService | undefined;
  let there: TestService | undefined;
  beforeAll(async () => {
    here = await startTestService({}, uri);
    there = await startTestService({}, uri);
  });
  afterAll(async () => {
    await here?.stop();
    await there?.stop();
  });

  test('revokes a token on all instances and their open sockets', async () => {
    if (here === undefined || there === undefined) throw new Error('no service');
    for (const end of [
      (token: string, id: string) => (token === '' ? Promise.reject() : here?.admin('DELETE', `tokens/${id}`)),
      (token: string) => here?.as(token)('DELETE', 'auth'),
    ]) {
      const { body } = await here.admin('POST', 'tokens', { name: 'ending' });
      const onHere = here.as(body.token);
      const onThere = there.as(body.token);
      expect([(await onHere('GET', 'auth')).status, (await onThere('GET', 'auth')).status]).toEqual([200, 200]);
      const sockets = [await openListener(here.url, body.token), await openListener(there.url, body.token)];
      const other = await openListener(there.url, await here.tokenOf(ADMIN.login, ADMIN.password));
      expect((await end(body.token, body._id))?.status).toBe(200);
      expect((await onHere('GET', 'auth')).status).toBe(401);
      await until(async () => (await onThere('GET', 'auth')).status === 401, 'revoked there');
      for (const socket of sockets) await ended(socket);
      expect(other.socket.connected).toBe(true);
      other.close();
      await expect(openListener(there.url, body.token)).rejects.toThrow('Unauthorized');
    }
  });
});
