/** The own account: every role may change its own data, without gaining permissions. */
import { describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { DEVICE_ROLE_ID, OPERATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf, expectRefusal } from '../support/answers.js';
import { createPerson, ended, openSession, type Person, withCookie } from '../support/callers.js';
import { type Answer, type Call, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { tokensPerUser: 20, auditDelayMs: 50 });

const service = useService({ env: { TRUST_PROXY: '1' } });
const statusOf = async (call: Call): Promise<number> => (await call('GET', 'auth')).status;
const NEW_PASSWORD = 'another good password';
const tokenFor = async (person: Person, fields: object = {}): Promise<string> =>
  entityOf(await person.call('POST', 'account/tokens', { name: 'x', ...fields })).token;
let networks = 0;
/** A new network: failures are counted by network. */
const fromElsewhere = () => ({ 'X-Forwarded-For': `2001:db8:${(++networks).toString(16)}::1` });

describe('the account', () => {
  test.each([
    ['viewer', VIEWER_ROLE_ID],
    ['operator', OPERATOR_ROLE_ID],
    ['device', DEVICE_ROLE_ID],
  ])('is read and changed by a %s', async (_, role) => {
    const person = await createPerson(service, { role });
    const email = `${person.login}@example.com`;
    const changed = entityOf(await person.call('PATCH', 'account', { name: 'Ada', email }));
    expect(changed).toMatchObject({ _id: person.id, login: person.login, name: 'Ada', email, role });
    const read = entityOf(await person.call('GET', 'account'));
    expect(read).toEqual(changed);
    expect(read.session).toBeNull();
    expect(read.token).toEqual({ _id: expect.any(String), expiresAt: expect.any(Number) });
    expect(JSON.stringify(read)).not.toContain('argon2');
  });

  test('keeps every field that is not the caller’s to change', async () => {
    const person = await createPerson(service, { name: 'Ada' });
    const before = entityOf(await person.call('GET', 'account'));
    const wanted = { role: '65a00000000000000000000a', login: 'root', active: false, _password: 'x', object: null };
    const after = entityOf(await person.call('PATCH', 'account', { ...before, ...wanted, credentials: ['* /*'] }));
    expect(after).toEqual({ ...before, _at: expect.any(Number) });
    expect(await statusOf(person.call)).toBe(200);
  });

  test.each([
    ['name', { name: 7 }, 400],
    ['email', { email: 'no address' }, 400],
    ['password', { password: 'short', oldPassword: 'x' }, 400],
    ['oldPassword', { password: NEW_PASSWORD }, 400],
    ['oldPassword', { password: NEW_PASSWORD, oldPassword: { $ne: null } }, 400],
    ['oldPassword', { password: NEW_PASSWORD, oldPassword: 'not the password' }, 400],
  ])('names the field %s when it refuses %j', async (field, body, status) => {
    const person = await createPerson(service);
    expectRefusal(await person.call('PATCH', 'account', body), status, field);
    expect(await service.tokenOf(person.login, person.password)).toEqual(expect.any(String));
  });

  test('refuses the email of another user', async () => {
    const one = await createPerson(service);
    const two = await createPerson(service);
    const email = `${one.login}@example.com`;
    entityOf(await one.call('PATCH', 'account', { email }));
    expectRefusal(await two.call('PATCH', 'account', { email }), 409, 'email');
  });

  test('loses its email by null, which two users can do', async () => {
    for (const person of [await createPerson(service), await createPerson(service, { email: null })]) {
      const before = entityOf(await person.call('GET', 'account'));
      entityOf(await person.call('PATCH', 'account', { email: `${person.login}@example.com` }));
      const after = entityOf(await person.call('PATCH', 'account', { email: null, name: 'Ada' }));
      expect(after).toEqual({ ...before, name: 'Ada', _at: expect.any(Number) });
      expect(after).not.toHaveProperty('email');
      expect(entityOf(await person.call('PATCH', 'account', { email: null }))).not.toHaveProperty('email');
    }
  });

  test('is closed to a store of the same name', async () => {
    expectRefusal(await service.admin('POST', 'stores', { name: 'account' }), 409, 'name');
    expectRefusal(await service.admin('GET', `account/${new ObjectId()}`), 404);
  });
});

describe('a new password', () => {
  test('ends every other session, token and socket, and keeps the session of the request', async () => {
    const person = await createPerson(service);
    const own = await openSession(service, person);
    const other = await openSession(service, person);
    const made = service.as(await tokenFor(person));
    const socket = await service.listen(person.token);
    const call = withCookie(service, own);
    entityOf(await call('PATCH', 'account', { password: NEW_PASSWORD, oldPassword: person.password }));
    const others = [withCookie(service, other), made, person.call];
    expect(await Promise.all([call, ...others].map(statusOf))).toEqual([200, 401, 401, 401]);
    await ended(socket);
    const login = (password: string) => service.as(null)('POST', 'auth/token', { login: person.login, password });
    expect([(await login(person.password)).status, (await login(NEW_PASSWORD)).status]).toEqual([401, 200]);
  });

  test('keeps the token of the request', async () => {
    const person = await createPerson(service);
    const session = withCookie(service, await openSession(service, person));
    entityOf(await person.call('PATCH', 'account', { password: NEW_PASSWORD, oldPassword: person.password }));
    expect([await statusOf(person.call), await statusOf(session)]).toEqual([200, 401]);
  });

  test('is set once by two concurrent requests with the same old password', async () => {
    const person = await createPerson(service);
    const change = (password: string) =>
      person.call('PATCH', 'account', { password, oldPassword: person.password }, fromElsewhere());
    const answers = await Promise.all(['first new password', 'second new password'].map(change));
    expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(1);
    const winner = answers.findIndex(({ status }) => status === 200) === 0 ? 'first' : 'second';
    expect(await service.tokenOf(person.login, `${winner} new password`)).toEqual(expect.any(String));
  });

  test('is refused after too many wrong old passwords, even with the right one, but not from other addresses', async () => {
    const person = await createPerson(service);
    const headers = fromElsewhere();
    const change = (oldPassword: string, at = headers) =>
      person.call('PATCH', 'account', { password: NEW_PASSWORD, oldPassword }, at);
    for (let guess = 0; guess < LIMITS.loginFailuresPerAccount; guess++) {
      expect((await change(`guess number ${guess}`)).status).toBe(400);
    }
    const refused = await change(person.password);
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).toEqual([429, true]);
    const login = { login: person.login, password: person.password };
    expect((await service.as(null)('POST', 'auth', login, headers)).status).toBe(429);
    expect((await change(person.password, fromElsewhere())).status).toBe(200);
  });

  test('does not name the passwords in the log or in the security events', async () => {
    const person = await createPerson(service);
    const secrets = { password: `canary-new-${new ObjectId()}`, oldPassword: `canary-old-${new ObjectId()}` };
    const answer = await person.call('PATCH', 'account', secrets);
    const requestId = answer.headers['x-request-id'];
    const audit = service.client.db().collection('audit');
    await until(() => audit.findOne({ requestId }), 'the event to be stored');
    const event = await audit.findOne({ requestId });
    expect(event).toMatchObject({
      action: 'login failed',
      path: '/account',
      login: person.login,
      fields: ['password'],
    });
    expect(JSON.stringify(event) + service.logLines.join('')).not.toMatch(/canary-(new|old)/);
  });
});

describe('own tokens', () => {
  test('work for a viewer without rights to the store: created, listed, used and revoked', async () => {
    const viewer = await createPerson(service, { role: VIEWER_ROLE_ID });
    expectRefusal(await viewer.call('POST', 'tokens', { name: 'x' }), 403);
    const { token, ...made } = entityOf(
      await viewer.call('POST', 'account/tokens', { name: 'script', expiresIn: '1 day', scopes: ['GET /objects/*'] }),
    );
    const scoped = service.as(token);
    expect([(await scoped('GET', 'objects')).status, (await scoped('GET', 'labels')).status]).toEqual([200, 403]);
    const listed = (await viewer.call('GET', 'account/tokens')).body as { _id: string; name: string }[];
    expect(listed.map(({ name }) => name)).toEqual(['login', 'script']);
    expect(JSON.stringify(listed)).not.toContain(token);
    expect((await viewer.call('GET', 'account/tokens?meta=true')).body.count).toBe(2);
    expect(entityOf(await viewer.call('DELETE', `account/tokens/${made._id}`))._id).toBe(made._id);
    expect((await scoped('GET', 'objects')).status).toBe(401);
    expectRefusal(await viewer.call('DELETE', `account/tokens/${made._id}`), 404);
  });

  test('permit no more than the caller', async () => {
    const operator = await createPerson(service, { role: OPERATOR_ROLE_ID });
    for (const scopes of [['* /*'], ['DELETE /objects/*'], ['POST /tokens']]) {
      expectRefusal(await operator.call('POST', 'account/tokens', { name: 'x', scopes }), 403);
    }
    const narrow = service.as(await tokenFor(operator, { scopes: ['GET /objects/*', 'POST /account/tokens'] }));
    expectRefusal(await narrow('POST', 'account/tokens', { name: 'x', scopes: ['GET /labels'] }), 403);
    const { token } = entityOf(await narrow('POST', 'account/tokens', { name: 'x' }));
    const child = service.as(token);
    expect([(await child('GET', 'objects')).status, (await child('GET', 'labels')).status]).toEqual([200, 403]);
  });

  test.each<[string, string, object | undefined]>([
    ['GET', 'account', undefined],
    ['PATCH', 'account', { name: 'x' }],
    ['GET', 'account/tokens', undefined],
    ['POST', 'account/tokens', { name: 'x' }],
    ['DELETE', 'account/tokens/65a00000000000000000000a', undefined],
    ['GET', 'account/sessions', undefined],
    ['DELETE', 'account/sessions', undefined],
    ['DELETE', 'account/sessions/65a00000000000000000000a', undefined],
  ])('require a scope for %s %s', async (method, path, body) => {
    const person = await createPerson(service);
    const outside = service.as(await tokenFor(person, { scopes: ['GET /objects/*'] }));
    const within = service.as(await tokenFor(person, { scopes: [`${method} /${path}`] }));
    expectRefusal(await outside(method, path, body), 403);
    expect([200, 404]).toContain((await within(method, path, body)).status);
  });

  test('are out of reach of other users who see them', async () => {
    const owner = await createPerson(service);
    const other = await createPerson(service);
    const { _id } = entityOf(await owner.call('POST', 'account/tokens', { name: 'x' }));
    expect((await other.call('GET', `tokens/${_id}`)).status).toBe(200);
    expectRefusal(await other.call('DELETE', `account/tokens/${_id}`), 404);
    const listed = (await other.call('GET', 'account/tokens?limit=10000')).body as { user: string }[];
    expect(new Set(listed.map(({ user }) => user))).toEqual(new Set([other.id]));
  });

  test('are limited in number', async () => {
    const person = await createPerson(service);
    for (let made = 1; made < LIMITS.tokensPerUser; made++) await tokenFor(person);
    expectRefusal(await person.call('POST', 'account/tokens', { name: 'x' }), 409, 'revoke');
  });
});

describe('own sessions', () => {
  test('are listed with their origin, and without the value of the cookie', async () => {
    const person = await createPerson(service);
    const headers = { ...fromElsewhere(), 'User-Agent': `Browser ${'x'.repeat(300)}` };
    const cookies = [await openSession(service, person, headers), await openSession(service, person)];
    const call = withCookie(service, cookies[0] as string);
    const answer = await call('GET', 'account/sessions');
    expect(answer.body).toHaveLength(2);
    const own = answer.body.find(({ current }: { current: boolean }) => current);
    expect(own).toEqual({
      _id: (await call('GET', 'account')).body.session._id,
      time: expect.any(Number),
      expiresAt: expect.any(Number),
      address: headers['X-Forwarded-For'],
      agent: headers['User-Agent'].slice(0, LIMITS.sessionAgentCharacters),
      current: true,
    });
    for (const cookie of cookies) {
      const id = decodeURIComponent(cookie.slice('sid='.length)).slice(2).split('.')[0] as string;
      expect([id.length > 20, answer.text.includes(id)]).toEqual([true, false]);
    }
    expect(answer.text).toMatch(/^\[\n\{.*\}\n,\n\{.*\}\n\]\n$/);
  });

  test('end one by one, or all except the current one', async () => {
    const person = await createPerson(service);
    const calls = [];
    for (let at = 0; at < 4; at++) calls.push(withCookie(service, await openSession(service, person)));
    const [own, second] = calls as [Call, Call];
    const secondId = (await second('GET', 'account')).body.session._id;
    expect(entityOf(await own('DELETE', `account/sessions/${secondId}`)).current).toBe(false);
    expect(await Promise.all(calls.map(statusOf))).toEqual([200, 401, 200, 200]);
    expect((await own('DELETE', 'account/sessions')).body).toEqual({ success: true, count: 2 });
    expect(await Promise.all(calls.map(statusOf))).toEqual([200, 401, 401, 401]);
    expect(await statusOf(person.call)).toBe(200);
    const ownId = (await own('GET', 'account')).body.session._id;
    const last: Answer = await own('DELETE', `account/sessions/${ownId}`);
    expect([last.status, String(last.headers['set-cookie'])]).toEqual([200, expect.stringContaining('sid=;')]);
    expect(await statusOf(own)).toBe(401);
    expect((await person.call('GET', 'account/sessions')).text).toBe('[\n]\n');
  });

  test('are out of reach of other users', async () => {
    const owner = await createPerson(service);
    const other = await createPerson(service);
    const call = withCookie(service, await openSession(service, owner));
    const { _id } = (await call('GET', 'account')).body.session;
    expectRefusal(await other.call('DELETE', `account/sessions/${_id}`), 404);
    expect((await other.call('DELETE', 'account/sessions')).body.count).toBe(0);
    expect(await statusOf(call)).toBe(200);
  });
});
