/** Secrets with a mark, searched for in every line of the log and every answer of a service that was kept busy. */
import { expect, test } from '@jest/globals';
import { io } from 'socket.io-client';
import { setCookiesOf } from '../support/callers.js';
import { type Answer, openListener, useService } from '../support/fixture.js';

const CANARY = 'canary-7d1f';
const SECRET = `${CANARY}-signs-0123456789-abcdefghij`;
const PASSWORDS = { admin: `${CANARY} of the admin`, user: `${CANARY} of a user`, next: `${CANARY} of later` };
const service = useService({ env: { ADMIN_PASSWORD: PASSWORDS.admin, SECRET, LOG_LEVEL: 'trace' } });

test('keeps secrets out of the log and of all answers, except those that issue them', async () => {
  const answers: Answer[] = [];
  const ask = async (...[method, path, body, headers]: Parameters<typeof service.admin>): Promise<Answer> => {
    const answer = await service.as(null)(method, path, body, headers);
    answers.push(answer);
    return answer;
  };
  const login = { login: 'admin', password: PASSWORDS.admin };

  // The answers that show a secret, by design.
  const cookieLogin = await service.as(null)('POST', 'auth', login);
  const [cookie = ''] = setCookiesOf(cookieLogin);
  const sid = cookie.split(';')[0] as string;
  const [id, signature] = decodeURIComponent(sid.slice('sid=s%3A'.length)).split('.') as [string, string];
  const token = (await service.as(null)('POST', 'auth/token', login)).body.token as string;
  const bearer = { Authorization: `Bearer ${token}` };
  const made = await service.admin('POST', 'tokens', { name: 'made', scopes: ['GET /*'] });
  const tokens = [token, made.body.token as string];
  expect(tokens.every((one) => /^eyJ/.test(one))).toBe(true);

  // Everything else: what succeeds, what is refused, what is broken, with secrets wherever a client may put them.
  const user = await ask('POST', 'users', { login: 'user', password: PASSWORDS.user }, bearer);
  const object = await ask('POST', 'objects', { id: 'thing', name: 'x' }, { Cookie: sid });
  expect([user.status, object.status]).toEqual([200, 200]);
  const wrong: Parameters<typeof service.admin>[] = [
    ['POST', 'auth', { login: 'admin', password: PASSWORDS.next }],
    ['POST', 'auth', { login: PASSWORDS.user, password: 'x' }],
    ['POST', 'auth', { login: { password: PASSWORDS.admin }, password: PASSWORDS.admin }],
    ['POST', 'auth', `{"login":"admin","password":"${PASSWORDS.admin}`],
    [
      'POST',
      'auth',
      `login=admin&password=${PASSWORDS.admin}&x=%`,
      { 'Content-Type': 'application/x-www-form-urlencoded' },
    ],
    ['POST', 'auth', JSON.stringify(login), { 'Content-Type': 'text/plain' }],
    ['POST', 'auth', { ...login, more: 'x'.repeat(5_000) }],
    ['POST', 'auth', login, { Origin: 'https://evil.example' }],
    ['POST', 'auth/token', { ...login, expiresIn: 'never' }],
    ['POST', 'auth/token', { ...login, scopes: PASSWORDS.admin }],
    ['POST', 'users', { login: 'user', password: PASSWORDS.user }, bearer],
    ['POST', 'users', { login: 'short', password: [PASSWORDS.user] }, bearer],
    ['POST', 'users', { password: PASSWORDS.user }, bearer],
    ['PATCH', `users/${user.body._id}`, { password: PASSWORDS.next }, bearer],
    ['PATCH', `users/${user.body._id}`, { password: PASSWORDS.next.repeat(50) }, bearer],
    ['PATCH', `users/${'f'.repeat(24)}`, { password: PASSWORDS.next }, bearer],
    ['GET', `users?password=${encodeURIComponent(PASSWORDS.user)}&token=${token}`, undefined, bearer],
    ['GET', `users?where._password=${encodeURIComponent(PASSWORDS.user)}`, undefined, bearer],
    ['GET', `objects/${token}`, undefined, bearer],
    ['GET', `${token}/x`, undefined, bearer],
    ['GET', `/${token}`],
    ['GET', 'objects/%', undefined, bearer],
    ['GET', 'auth', undefined, { Authorization: `Bearer ${token}x` }],
    ['GET', 'auth', undefined, { Authorization: `Basic ${Buffer.from(PASSWORDS.admin).toString('base64')}` }],
    ['GET', 'auth', undefined, { Cookie: `${sid}x` }],
    ['POST', `objects/thing/commands/stop`, { key: 'x' }, { Cookie: sid, Origin: 'https://evil.example' }],
    ['PUT', 'objects', { x: 1 }, bearer],
  ];
  for (const request of wrong) await ask(...request);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 400, 401, 403, 404, 405, 409, 413, 415]));
  for (const path of [
    'auth',
    'users',
    'roles',
    'tokens',
    'groups',
    'objects',
    'models',
    'commands',
    'stores',
    'labels',
  ]) {
    for (const headers of [bearer, { Cookie: sid }] as Record<string, string>[]) {
      for (const query of ['', '?meta=true', '?only=name,token,_password,password']) {
        await ask('GET', `${path}${query}`, undefined, headers);
      }
    }
  }

  // Sockets, good and bad; and the ends of all of it.
  const sockets = [await service.listen(tokens[1] as string)];
  await expect(openListener(service.url, `${token}x`)).rejects.toThrow('Unauthorized');
  const browser = io(service.url, { transports: ['websocket'], auth: { token }, reconnection: false, forceNew: true });
  await new Promise((resolve) => browser.once('connect', () => resolve(null)));
  await ask('POST', 'objects/thing/packets', { speed: 1 }, bearer);
  await service.settled();
  const received = JSON.stringify(sockets.map((socket) => socket.take()));
  expect(received).toContain('object-packet');
  await ask('DELETE', 'auth', undefined, { Cookie: sid });
  await ask('DELETE', `tokens/${made.body._id}`, undefined, bearer);
  await ask('DELETE', 'auth', undefined, bearer);
  await ask('GET', 'auth', undefined, bearer);
  for (const { socket } of sockets) socket.close();
  browser.close();

  const secrets = [
    CANARY,
    id,
    signature,
    encodeURIComponent(signature),
    ...tokens,
    ...tokens.map((one) => one.split('.')[2] as string),
    '$argon2',
  ];
  const log = service.logLines.join('\n');
  expect(log).toContain('"route"');
  for (const secret of secrets) {
    expect(log.includes(secret) && `the log has ${secret}`).toBe(false);
    expect(received.includes(secret) && `an event has ${secret}`).toBe(false);
    const telling = answers.filter(({ text, headers }) => `${text}${JSON.stringify(headers)}`.includes(secret));
    expect(telling).toEqual([]);
  }
  const database = service.client.db();
  const kept = JSON.stringify([
    await database.collection('users').find().toArray(),
    await database.collection('tokens').find().toArray(),
    await database.collection('attempts').find().toArray(),
  ]);
  for (const secret of [PASSWORDS.admin, PASSWORDS.next, SECRET, ...tokens]) {
    expect(kept.includes(secret) && `the database has ${secret}`).toBe(false);
  }
});
