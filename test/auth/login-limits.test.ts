/** Failed logins are counted for all instances together: guessing at another one gains nothing. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { ADMIN, startTestService, testUri } from '../support/fixture.js';

test('counts failures across instances without locking out the owner at another address', async () => {
  const uri = testUri();
  const env = { TRUST_PROXY: '1' };
  const first = await startTestService({ env }, uri);
  const second = await startTestService({ env }, uri);
  try {
    const guess = (at: number) =>
      (at % 2 === 0 ? first : second).as(null)(
        'POST',
        'auth/token',
        { login: ADMIN.login, password: `guess number ${at}` },
        { 'X-Forwarded-For': '192.0.2.7' },
      );
    for (let at = 0; at < LIMITS.loginFailuresPerAccount; at++) expect((await guess(at)).status).toBe(401);
    for (const at of [0, 1]) {
      const refused = await guess(at);
      expect(refused.status).toBe(429);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    }
    const owner = await second.as(null)('POST', 'auth/token', ADMIN, { 'X-Forwarded-For': '198.51.100.9' });
    expect(owner.status).toBe(200);
  } finally {
    await second.stop();
    await first.stop();
  }
});
