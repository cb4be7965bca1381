/** The database goes away and comes back: 503 meanwhile, with the time to come again; then all is as before. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { entityOf, expectRefusal } from '../support/answers.js';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

let service: TestService;
let line: Line;

beforeAll(async () => {
  line = await openLine(testUri());
  service = await startTestService({}, line.uri);
});

afterAll(async () => {
  await line.mend();
  await service?.stop();
  await line.cut();
});

test('503 says when to come back, on every path that needs the database, and the service mends itself', async () => {
  const object = entityOf(await service.admin('POST', 'objects', { id: 'car', name: 'Car' }));
  await line.cut();
  const asked = await Promise.all([
    service.admin('GET', 'objects'),
    service.admin('GET', 'objects/car'),
    service.admin('POST', 'objects', { id: 'van', name: 'Van' }),
    service.admin('PATCH', 'objects/car', { status: 'x' }),
    service.admin('POST', 'objects/car/packets', { speed: 1 }),
    service.admin('POST', '/objects/car/commands/go', {}),
    service.as(null)('POST', 'auth/token', { login: 'admin', password: 'whatever it is' }),
  ]);
  for (const answer of asked) {
    expectRefusal(answer, 503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(answer.text).not.toMatch(/mongo|ECONN|127\.0\.0\.1/i);
  }
  // Who is nobody is nobody without a database; and what needs none is answered.
  expectRefusal(await service.as(null)('GET', 'objects'), 401);
  expect((await service.as(null)('GET', '/')).status).toBe(200);
  await line.mend();
  await until(async () => (await service.admin('GET', 'objects')).status === 200, 'the service answers again');
  expect((await service.admin('GET', 'objects')).body).toEqual([object]);
  entityOf(await service.admin('POST', 'objects', { id: 'van', name: 'Van' }));
});
