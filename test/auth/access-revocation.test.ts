/** The end of a user's access: of every session, token and socket of that user, and of requests under way. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { ADMINISTRATOR_ROLE_ID, VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { createPerson, ended, openSession, type Person, withCookie } from '../support/callers.js';
import { useService } from '../support/fixture.js';
import { until } from '../support/until.js';

const service = useService();
const statusOf = async (call: Person['call']): Promise<number> => (await call('GET', 'auth')).status;

test.each<[string, (id: string) => Promise<{ status: number }>]>([
  ['a new password', (id) => service.admin('PATCH', `users/${id}`, { password: 'another password' })],
  ['disabling', (id) => service.admin('PATCH', `users/${id}`, { active: false })],
  ['removing', (id) => service.admin('DELETE', `users/${id}`)],
])('ends all sessions, tokens and sockets of the user, and no others: %s', async (_, end) => {
  const person = await createPerson(service);
  const other = await createPerson(service);
  const cookies = [await openSession(service, person), await openSession(service, person)];
  const tokens = [person.token, await service.tokenOf(person.login, person.password)];
  const calls = [...cookies.map((cookie) => withCookie(service, cookie)), ...tokens.map((token) => service.as(token))];
  const sockets = await Promise.all(tokens.map((token) => service.listen(token)));
  const bystander = await service.listen(other.token);
  expect(await Promise.all(calls.map(statusOf))).toEqual([200, 200, 200, 200]);
  expect((await end(person.id)).status).toBe(200);
  expect(await Promise.all(calls.map(statusOf))).toEqual([401, 401, 401, 401]);
  for (const socket of sockets) await ended(socket);
  expect(await statusOf(other.call)).toBe(200);
  await service.settled();
  expect(bystander.socket.connected).toBe(true);
  const { login, password } = person;
  expect((await service.as(null)('POST', 'auth', { login, password })).status).toBe(401);
  // Nor does it come back with the user.
  await service.admin('PATCH', `users/${person.id}`, { active: true });
  expect(await Promise.all(calls.map(statusOf))).toEqual([401, 401, 401, 401]);
});

test('closes the socket of a session at logout', async () => {
  const { io } = await import('socket.io-client');
  const cookie = await openSession(service, await createPerson(service));
  const socket = io(service.url, { transports: ['websocket'], extraHeaders: { cookie }, reconnection: false });
  const ending = new Promise((resolve) => socket.once('disconnect', resolve));
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('connect_error', reject);
  });
  expect((await withCookie(service, cookie)('DELETE', 'auth')).status).toBe(200);
  expect(await ending).toBe('io server disconnect');
});

describe('what an administrator takes away from a user', () => {
  let role: string;
  beforeAll(async () => {
    const credentials = ['GET /users/*', 'PATCH /users/*', 'PATCH /roles/*'];
    role = (await service.admin('POST', 'roles', { name: 'self-service', credentials })).body._id;
  });

  test.each<[what: string, own: () => object, taken: object]>([
    ['access', () => ({ active: true }), { active: false }],
    ['role', () => ({ role }), { role: VIEWER_ROLE_ID }],
  ])('is not undone by a change of its own that is under way: %s', async (_, own, taken) => {
    for (let round = 0; round < 4; round++) {
      const person = await createPerson(service, { role });
      let isTaken = false;
      let sent = 0;
      const changes = Array.from({ length: 4 }, async () => {
        for (; !isTaken; sent++) await person.call('PATCH', `users/${person.id}`, own());
      });
      await until(() => sent >= 8);
      expect((await service.admin('PATCH', `users/${person.id}`, taken)).status).toBe(200);
      isTaken = true;
      await Promise.all(changes);
      expect((await service.admin('GET', `users/${person.id}`)).body).toMatchObject(taken);
    }
  });

  test('is not undone by a new password of its own that is under way', async () => {
    for (let round = 0; round < 4; round++) {
      const { login, id, call } = await createPerson(service, { role });
      const taking = service.admin('PATCH', `users/${id}`, { password: 'another password' });
      const own = call('PATCH', `users/${id}`, { password: 'my new password' });
      expect((await taking).status).toBe(200);
      await own;
      const logIn = async (password: string) => (await service.as(null)('POST', 'auth', { login, password })).status;
      expect([await logIn('my new password'), await logIn('another password')]).toEqual([401, 200]);
    }
  });

  test('is not undone for a role by a user who has the role', async () => {
    const credentials = ['PATCH /roles/*', 'GET /objects'];
    for (let round = 0; round < 4; round++) {
      const { _id } = (await service.admin('POST', 'roles', { name: `shrinks-${round}`, credentials })).body;
      const person = await createPerson(service, { role: _id });
      let isTaken = false;
      const changes = Array.from({ length: 4 }, async () => {
        while (!isTaken) await person.call('PATCH', `roles/${_id}`, { credentials });
      });
      const taken = { credentials: ['PATCH /roles/*'] };
      expect((await service.admin('PATCH', `roles/${_id}`, taken)).status).toBe(200);
      isTaken = true;
      await Promise.all(changes);
      expect((await service.admin('GET', `roles/${_id}`)).body).toMatchObject(taken);
    }
  });
});

describe('during a change of password', () => {
  test('ends a login that used the old password', async () => {
    for (let round = 0; round < 4; round++) {
      const person = await createPerson(service);
      const { login, password } = person;
      const logins = Array.from({ length: 12 }, (_, at) =>
        service.as(null)('POST', at % 2 === 0 ? 'auth' : 'auth/token', { login, password }),
      );
      const change = service.admin('PATCH', `users/${person.id}`, { password: 'another password' });
      const answers = await Promise.all(logins);
      expect((await change).status).toBe(200);
      const proofs = answers
        .filter(({ status }) => status === 200)
        .map(({ body, headers }) =>
          body.token === undefined
            ? withCookie(service, String(headers['set-cookie']).split(';')[0] as string)
            : service.as(body.token),
        );
      expect(await Promise.all(proofs.map(statusOf))).toEqual(proofs.map(() => 401));
    }
  });

  test('revokes tokens that a token creates meanwhile', async () => {
    for (let round = 0; round < 4; round++) {
      const person = await createPerson(service, { role: ADMINISTRATOR_ROLE_ID });
      let changed = false;
      const made: string[] = [];
      const make = async (): Promise<void> => {
        while (!changed) {
          const { status, body } = await person.call('POST', 'tokens', { name: 'escape' });
          if (status === 200) made.push(body.token);
          else expect(status).toBe(401);
        }
      };
      const makers = Array.from({ length: 6 }, make);
      await until(() => made.length > 0);
      expect((await service.admin('PATCH', `users/${person.id}`, { password: 'another password' })).status).toBe(200);
      changed = true;
      await Promise.all(makers);
      expect(made.length).toBeGreaterThan(0);
      const statuses = await Promise.all(made.map((token) => statusOf(service.as(token))));
      expect(statuses.filter((status) => status !== 401)).toEqual([]);
      expect(await service.client.db().collection('tokens').countDocuments({ name: 'escape' })).toBe(0);
    }
  });
});
