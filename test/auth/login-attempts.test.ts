/** Limits of failed logins, counted in hundreds: of one account from all addresses, of one address for all accounts, and at the same time. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { createPerson, setCookiesOf } from '../support/callers.js';
import { ADMIN, type Answer, type TestService, useService } from '../support/fixture.js';

const service = useService({ env: { TRUST_PROXY: '1' } });
const stranger: TestService['admin'] = (...request) => service.as(null)(...request);
const windowS = LIMITS.loginFailureWindowMs / 1_000;

let addresses = 0;
/** A new address: failures are counted by address. */
const fromElsewhere = (): { 'X-Forwarded-For': string } => ({ 'X-Forwarded-For': `10.1.0.${++addresses}` });
const failFrom = (address: string, login: string): Promise<Answer> =>
  stranger('POST', 'auth', { login, password: 'not the password' }, { 'X-Forwarded-For': address });
const failTimes = (count: number, fail: (at: number) => Promise<Answer>): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, (_, at) => fail(at).then(({ status }) => status)));

const expectLocked = (answer: Answer): void => {
  expect([answer.status, answer.body.tags]).toEqual([429, ['error_too_many_requests']]);
  const waitS = Number(answer.headers['retry-after']);
  expect(waitS).toBeGreaterThan(0);
  expect(waitS).toBeLessThanOrEqual(windowS);
  expect(setCookiesOf(answer)).toEqual([]);
};

test('locks an account for unknown addresses, but not for addresses of its earlier logins, and no other account', async () => {
  const person = await createPerson(service);
  const home = fromElsewhere();
  const before = fromElsewhere();
  const after = fromElsewhere();
  expect((await stranger('POST', 'auth', person, home)).status).toBe(200);
  for (let at = 0; at < LIMITS.loginFailuresEverywhere; at += LIMITS.loginFailuresPerAccount) {
    const strange = fromElsewhere()['X-Forwarded-For'];
    const statuses = await failTimes(LIMITS.loginFailuresPerAccount, () => failFrom(strange, person.login));
    expect(statuses).toEqual(statuses.map(() => 401));
    if (at === 0) expect((await stranger('POST', 'auth', person, before)).status).toBe(200);
  }
  expectLocked(await stranger('POST', 'auth', person, after));
  expect((await stranger('POST', 'auth', ADMIN, after)).status).toBe(200);
  for (const known of [home, before]) expect((await stranger('POST', 'auth', person, known)).status).toBe(200);
});

test('limits guesses that arrive at the same time', async () => {
  const person = await createPerson(service);
  const statuses = await failTimes(60, () => failFrom('10.9.0.3', person.login));
  const guesses = statuses.filter((status) => status === 401).length;
  expect(guesses).toBeGreaterThanOrEqual(LIMITS.loginFailuresPerAccount);
  // Those that are being checked when the last one fails.
  expect(guesses).toBeLessThanOrEqual(LIMITS.loginFailuresPerAccount + LIMITS.passwordHashesAtOnce);
  expect(statuses.filter((status) => status !== 401)).toEqual(Array(60 - guesses).fill(429));
});

test('locks an address for all accounts, and takes a /64 network of IPv6 as one address', async () => {
  const batch = 50;
  for (let at = 0; at < LIMITS.loginFailuresPerAddress; at += batch) {
    const statuses = await failTimes(batch, (one) => failFrom(`2001:db8:1:2::${at + one + 1}`, `login-${at + one}`));
    expect(statuses).toEqual(Array(batch).fill(401));
  }
  expectLocked(await stranger('POST', 'auth', ADMIN, { 'X-Forwarded-For': '2001:db8:1:2:ffff:ffff:ffff:ffff' }));
  expect((await stranger('POST', 'auth', ADMIN, { 'X-Forwarded-For': '2001:db8:1:3::1' })).status).toBe(200);
});
