/** Logging in: by cookie and by token, what it answers, what it refuses, and how often it may be tried. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hash } from '@node-rs/argon2';
import { LIMITS } from '../../src/core/limits.js';
import { createPerson, setCookiesOf, UNAUTHORIZED } from '../support/callers.js';
import { ADMIN, type Answer, startTestService, type TestService, useService } from '../support/fixture.js';

const service = useService({ env: { TRUST_PROXY: '1' } });
const anonymous: TestService['admin'] = (...request) => service.as(null)(...request);
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

let addresses = 0;
/** A new address: failures are counted by address. */
const fromElsewhere = (): { 'X-Forwarded-For': string } => {
  addresses++;
  return { 'X-Forwarded-For': `10.1.${addresses >> 8}.${addresses & 255}` };
};
const failFrom = (address: string, login: string): Promise<Answer> =>
  anonymous('POST', 'auth', { login, password: 'not the password' }, { 'X-Forwarded-For': address });
const sessionCount = (): Promise<number> => service.client.db().collection('sessions').countDocuments();

const COOKIE =
  /^sid=s%3A[\w%.-]+; Path=\/; Expires=([A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT); HttpOnly(; Secure)?; SameSite=Lax$/;

describe('a successful login', () => {
  const form = new URLSearchParams({ login: ADMIN.login, password: ADMIN.password }).toString();
  const bodies: [string, unknown, Record<string, string>][] = [
    ['JSON', ADMIN, {}],
    ['JSON with username', { username: ADMIN.login, password: ADMIN.password }, {}],
    ['JSON with a charset', ADMIN, { 'Content-Type': 'application/json; charset=utf-8' }],
    ['a form', form, FORM],
    ['a form with username', form.replace('login', 'username'), FORM],
  ];

  test.each(bodies)('sets a cookie for %s', async (_, body, headers) => {
    const beforeMs = Date.now();
    const answer = await anonymous('POST', 'auth', body, headers);
    expect([answer.status, answer.text]).toEqual([200, '{"sucess":true}']);
    expect(answer.headers['content-length']).toBe(String(answer.text.length));
    const [cookie, ...others] = setCookiesOf(answer);
    expect(others).toEqual([]);
    expect(cookie).toMatch(COOKIE);
    const [, expires, secure] = COOKIE.exec(cookie ?? '') ?? [];
    expect(secure).toBeUndefined();
    // The default: 12 hours; a date in a cookie has no milliseconds.
    const openedMs = Date.parse(expires ?? '') - 12 * 3_600_000;
    expect(openedMs).toBeGreaterThan(beforeMs - 1_000);
    expect(openedMs).toBeLessThanOrEqual(Date.now());
  });

  test.each(bodies)('returns a token for %s', async (_, body, headers) => {
    const beforeMs = Date.now();
    const answer = await anonymous('POST', 'auth/token', body, headers);
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.body)).toEqual(['sucess', 'type', 'token', 'issuedAt', 'expiresAt']);
    expect(answer.body).toMatchObject({ sucess: true, type: 'access' });
    expect(answer.body.expiresAt - answer.body.issuedAt).toBe(24 * 3_600_000);
    // A token counts whole seconds.
    expect(answer.body.issuedAt).toBeGreaterThan(beforeMs - 1_000);
    expect(answer.body.issuedAt).toBeLessThanOrEqual(Date.now());
    expect(setCookiesOf(answer)).toEqual([]);
    expect((await service.as(answer.body.token)('GET', 'auth')).body.login).toBe(ADMIN.login);
  });

  test('sets a Secure cookie only for TLS through a trusted proxy', async () => {
    const secureBy = async (headers: Record<string, string>): Promise<boolean> => {
      const [cookie] = setCookiesOf(await anonymous('POST', 'auth', ADMIN, headers));
      expect(cookie).toMatch(COOKIE);
      return COOKIE.exec(cookie as string)?.[2] === '; Secure';
    };
    expect(await secureBy({ 'X-Forwarded-Proto': 'https' })).toBe(true);
    expect(await secureBy({ 'X-Forwarded-Proto': 'http' })).toBe(false);
    expect(await secureBy({})).toBe(false);
  });
});

describe('without a trusted proxy, in production', () => {
  let plain: TestService;
  beforeAll(async () => {
    plain = await startTestService({ env: { NODE_ENV: 'production' } });
  });
  afterAll(() => plain.stop());

  test('sets a cookie over plain HTTP and ignores forwarded headers', async () => {
    for (const headers of [{}, { 'X-Forwarded-Proto': 'https' }] as Record<string, string>[]) {
      const [cookie] = setCookiesOf(await plain.as(null)('POST', 'auth', ADMIN, headers));
      expect(cookie).toMatch(COOKIE);
      expect(cookie).not.toContain('Secure');
    }
  });

  test('ignores a forged X-Forwarded-For when it counts attempts', async () => {
    const statuses: number[] = [];
    for (let at = 0; at <= LIMITS.loginFailuresPerAccount; at++) {
      const headers = { 'X-Forwarded-For': `10.2.0.${at}` };
      const guess = { login: 'forged', password: `guess number ${at}` };
      statuses.push((await plain.as(null)('POST', 'auth', guess, headers)).status);
    }
    expect(statuses).toEqual([...Array(LIMITS.loginFailuresPerAccount).fill(401), 429]);
  });
});

describe('a refused login', () => {
  const paths = ['auth', 'auth/token'];
  const hostile = [null, 1, true, [], ['admin'], {}, { $ne: null }, { $gt: '' }, { $regex: '.*' }, { $where: '1' }];
  const broken: [string, unknown, string][] = [
    ['nothing', undefined, 'login: required'],
    ['an array', [ADMIN], 'login: required'],
    ['no login', { password: ADMIN.password }, 'login: required'],
    ['no password', { login: ADMIN.login }, 'password: required'],
    ['an empty login', { login: '', password: 'x' }, 'login: required'],
    ['an empty password', { login: ADMIN.login, password: '' }, 'password: required'],
    ...hostile.map((value): [string, unknown, string] => [
      `login ${JSON.stringify(value)}`,
      { login: value, password: ADMIN.password },
      'login: required',
    ]),
    ...hostile.map((value): [string, unknown, string] => [
      `password ${JSON.stringify(value)}`,
      { login: ADMIN.login, password: value },
      'password: required',
    ]),
  ];

  test.each(broken)('answers %s with a 400 that names the field', async (_, body, message) => {
    for (const path of paths) {
      const answer = await anonymous('POST', path, body);
      expect([answer.status, answer.body.tags]).toEqual([400, ['error_bad_request']]);
      expect(answer.body.helper.message).toBe(message);
      expect(setCookiesOf(answer)).toEqual([]);
    }
  });

  test.each([
    'login[$ne]=x&password[$ne]=x',
    'login=admin&login=root&password=x',
    'login=admin&password=x&password=y',
    '__proto__[login]=admin&password=x',
  ])('refuses the form %s with 400', async (body) => {
    for (const path of paths) expect((await anonymous('POST', path, body, FORM)).status).toBe(400);
  });

  test.each([
    ['malformed JSON', '{"login":', {}, 400],
    ['text', JSON.stringify(ADMIN), { 'Content-Type': 'text/plain' }, 415],
    ['XML', '<a/>', { 'Content-Type': 'application/xml' }, 415],
    ['a body over the limit', { ...ADMIN, more: 'x'.repeat(LIMITS.loginBodyBytes) }, {}, 413],
    ['a form over the limit', `login=admin&password=${'x'.repeat(LIMITS.loginBodyBytes)}`, FORM, 413],
  ])('refuses %s with a status of its own', async (_, body, headers, status) => {
    for (const path of paths) {
      const answer = await anonymous('POST', path, body, headers as Record<string, string>);
      expect(answer.status).toBe(status);
      expect(setCookiesOf(answer)).toEqual([]);
    }
  });

  test('answers wrong credentials with the same 401 for known and unknown users', async () => {
    const sleeping = await createPerson(service);
    await service.admin('PATCH', `users/${sleeping.id}`, { active: false });
    const sessions = await sessionCount();
    const tokens = await service.client.db().collection('tokens').countDocuments();
    const wrong = [
      { login: ADMIN.login, password: 'not the password' },
      { login: 'unknown', password: 'not the password' },
      { login: ADMIN.login.toUpperCase(), password: ADMIN.password },
      { login: sleeping.login, password: sleeping.password },
      { login: ADMIN.login, password: ADMIN.password.slice(0, -1) },
      { login: ADMIN.login, password: `${ADMIN.password}${'x'.repeat(LIMITS.passwordCharactersMax)}` },
      { login: 'x'.repeat(LIMITS.nameCharacters + 1), password: 'not the password' },
      { login: 'a\u0000b', password: 'not the password' },
      { login: '\ud800', password: 'not the password' },
      { login: '__proto__', password: 'not the password' },
    ];
    for (const path of paths) {
      for (const body of wrong) {
        const answer = await anonymous('POST', path, body, fromElsewhere());
        const { 'x-request-id': _, date: __, ...headers } = answer.headers;
        expect([body.login, answer.status, answer.body]).toEqual([body.login, 401, UNAUTHORIZED]);
        expect(Object.keys(headers)).not.toContain('set-cookie');
        expect(headers['content-length']).toBe(String(JSON.stringify(UNAUTHORIZED).length));
      }
    }
    expect(await sessionCount()).toBe(sessions);
    expect(await service.client.db().collection('tokens').countDocuments()).toBe(tokens);
  });

  test('does the same work for an unknown login as for a wrong password', async () => {
    // By the time of the processor, the least of many: other processes do not change it, and a host that takes the
    // processor away does so in a few of them.
    const measureWorkUs = async (login: string): Promise<number> => {
      const before = process.cpuUsage();
      await anonymous('POST', 'auth', { login, password: 'not the password' }, fromElsewhere());
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    const unknownUs: number[] = [];
    const knownUs: number[] = [];
    for (let round = 0; round < 10; round++) {
      unknownUs.push(await measureWorkUs('unknown'));
      knownUs.push(await measureWorkUs(ADMIN.login));
    }
    const ratio = Math.min(...unknownUs) / Math.min(...knownUs);
    expect(ratio).toBeGreaterThan(0.5);
    expect(ratio).toBeLessThan(2);
  });
});

describe('the limit of attempts', () => {
  const windowS = LIMITS.loginFailureWindowMs / 1_000;
  const expectLocked = (answer: Answer, [moreThanS, atMostS] = [0, windowS]): void => {
    expect([answer.status, answer.body.tags]).toEqual([429, ['error_too_many_requests']]);
    const waitS = Number(answer.headers['retry-after']);
    expect(waitS).toBeGreaterThan(moreThanS);
    expect(waitS).toBeLessThanOrEqual(atMostS);
    expect(setCookiesOf(answer)).toEqual([]);
  };
  const failTimes = (count: number, fail: (at: number) => Promise<Answer>): Promise<number[]> =>
    Promise.all(Array.from({ length: count }, (_, at) => fail(at).then(({ status }) => status)));

  test('blocks an account only for the address of the failures', async () => {
    const address = '10.9.0.1';
    const person = await createPerson(service);
    for (let at = 0; at < LIMITS.loginFailuresPerAccount; at++) {
      expect((await failFrom(address, person.login)).status).toBe(401);
    }
    for (const path of ['auth', 'auth/token']) {
      expectLocked(await anonymous('POST', path, person, { 'X-Forwarded-For': address }));
      expect((await anonymous('POST', path, person, fromElsewhere())).status).toBe(200);
    }
    // Other accounts at that address are not blocked.
    expect((await anonymous('POST', 'auth', ADMIN, { 'X-Forwarded-For': address })).status).toBe(200);
  });

  test('resets the failures at a successful login', async () => {
    const address = '10.9.0.2';
    const person = await createPerson(service);
    for (let round = 0; round < 2; round++) {
      for (let at = 1; at < LIMITS.loginFailuresPerAccount; at++) {
        expect((await failFrom(address, person.login)).status).toBe(401);
      }
      expect((await anonymous('POST', 'auth', person, { 'X-Forwarded-For': address })).status).toBe(200);
    }
  });

  test('doubles the wait each time the limit is reached again', async () => {
    const address = '10.9.0.4';
    const person = await createPerson(service);
    const from = { 'X-Forwarded-For': address };
    const lock = async (): Promise<Answer> => {
      const statuses = await failTimes(LIMITS.loginFailuresPerAccount, () => failFrom(address, person.login));
      expect(statuses).toEqual(statuses.map(() => 401));
      return anonymous('POST', 'auth', person, from);
    };
    // As if the wait were over.
    const lapse = () =>
      service.client
        .db()
        .collection('attempts')
        .deleteOne({ key: `account:${address} ${person.login}` });
    expectLocked(await lock());
    for (const times of [2, 4]) {
      await lapse();
      expectLocked(await lock(), [(times / 2) * windowS, times * windowS]);
    }
    await lapse();
    expect((await anonymous('POST', 'auth', person, from)).status).toBe(200);
    expectLocked(await lock());
  });
});

describe('the stored password', () => {
  test('uses argon2id with at least 19 MiB, 2 passes, one lane and a salt', async () => {
    const password = 'the same password twice';
    await Promise.all([createPerson(service, { password }), createPerson(service, { password })]);
    const users = await service.client.db().collection('users').find().toArray();
    const hashes = users.map(({ _password }) => _password as string);
    expect(hashes.length).toBeGreaterThanOrEqual(3);
    for (const hash of hashes) expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(users.every((user) => !Object.hasOwn(user, 'password'))).toBe(true);
  });

  test('renews a hash of weaker parameters at login', async () => {
    const person = await createPerson(service);
    const users = service.client.db().collection('users');
    const stored = async () => (await users.findOne({ login: person.login }))?._password as string;
    const weak = await hash(person.password, { memoryCost: 8_192, timeCost: 1, parallelism: 1 });
    expect(weak).toContain('m=8192,t=1,p=1');
    await users.updateOne({ login: person.login }, { $set: { _password: weak } });
    expect((await failFrom('10.9.0.5', person.login)).status).toBe(401);
    expect(await stored()).toBe(weak);
    // All at once: those who were checked by the hash of before get in as well.
    const logins = [1, 2, 3].flatMap(() => ['auth', 'auth/token']);
    const answers = await Promise.all(logins.map((path) => anonymous('POST', path, person, fromElsewhere())));
    expect(answers.map(({ status }) => status)).toEqual(logins.map(() => 200));
    const renewed = await stored();
    expect(renewed).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect((await anonymous('POST', 'auth', person, fromElsewhere())).status).toBe(200);
    expect(await stored()).toBe(renewed);
    // What was open stays open: it is the same password.
    expect((await person.call('GET', 'auth')).status).toBe(200);
  });

  test('appears in no answer and in no filter', async () => {
    const fields = { login: 'shown', password: 'canary-password-1' };
    const created = await service.admin('POST', 'users', fields);
    const path = `users/${created.body._id}`;
    const answers = [
      created,
      await service.admin('GET', path),
      await service.admin('GET', `${path}?only=_password,password,login`),
      await service.admin('GET', 'users'),
      await service.admin('GET', 'users?only=_password'),
      await service.admin('GET', 'users?meta=true'),
      await service.admin('GET', 'users?search=argon2'),
      await service.admin('GET', 'auth'),
      await service.admin('PATCH', path, { password: 'canary-password-2' }),
      await service.admin('DELETE', path),
    ];
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    for (const { text } of answers) expect(text).not.toMatch(/argon2|_password|canary-password/);
    for (const query of ['where._password=x', 'where._password.x=y', 'sortBy=_password', 'sortBy=-_password']) {
      expect([query, (await service.admin('GET', `users?${query}`)).status]).toEqual([query, 400]);
    }
  });
});
