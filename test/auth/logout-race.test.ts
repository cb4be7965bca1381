/** A logout at the same time as other requests with the same cookie. */
import { expect, test } from '@jest/globals';
import { createPerson, openSession } from '../support/callers.js';
import { ADMIN, useService } from '../support/fixture.js';
import { random, runsOf } from '../support/runs.js';

const ROUNDS = runsOf(60);
const READS = 20;
const PATHS = ['auth', 'users', 'roles', 'objects', 'labels?meta=true'];
const service = useService();

/** Sends a request over connections that are kept alive; rejects when the service closes one. */
async function ask(cookie: string, method: string, path: string, body?: object): Promise<number> {
  const response = await fetch(`${service.url}/api/v1/${path}`, {
    method,
    headers: { Cookie: cookie, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  await response.arrayBuffer();
  return response.status;
}

const faults = (): number => service.logLines.filter((line) => /"level":[56]0/.test(line)).length;

test(
  `refuses every request after a logout, in ${ROUNDS} races with other requests`,
  async () => {
    const person = await createPerson(service);
    for (let round = 0; round < ROUNDS; round++) {
      const who = round % 2 === 0 ? person : ADMIN;
      const cookie = await openSession(service, who);
      let answered = 0;
      let leave = () => {};
      // The number of answers before the logout.
      const after = Math.floor(random() * READS);
      const asked = Array.from({ length: READS }, async (_, at) => {
        const status = await ask(cookie, 'GET', PATHS[at % PATHS.length] as string);
        if (++answered > after) leave();
        return status;
      });
      const leaving = new Promise<void>((resolve) => {
        leave = resolve;
        if (after === 0) resolve();
      }).then(() => ask(cookie, 'DELETE', 'auth'));
      // A login with the same cookie is the slowest change of a session.
      const login = round % 4 === 0 ? [ask(cookie, 'POST', 'auth', who)] : [];
      const late = leaving.then(() => Promise.all(PATHS.map((path) => ask(cookie, 'GET', path))));
      const statuses = await Promise.all(asked);
      expect([round, after, statuses.filter((status) => status !== 200 && status !== 401)]).toEqual([round, after, []]);
      // The login may have ended the session before the logout.
      const left = await leaving;
      expect([round, left === 200 || (left === 401 && login.length > 0)]).toEqual([round, true]);
      expect(await Promise.all(login)).toEqual(login.map(() => 200));
      expect([round, await late]).toEqual([round, PATHS.map(() => 401)]);
      const again = [await ask(cookie, 'GET', 'auth'), await ask(cookie, 'DELETE', 'auth')];
      expect([round, again]).toEqual([round, [401, 401]]);
    }
    expect(faults()).toBe(0);
  },
  30_000 + ROUNDS * 1_000,
);
