/** Readiness while the database is away. */
import '../support/usual-limits.js';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

let service: TestService;
let line: Line;

beforeAll(async () => {
  line = await openLine(testUri());
  service = await startTestService({ env: { OPS_PORT: '0' } }, line.uri);
});
afterAll(async () => {
  await line.mend();
  await service?.stop();
  await line.cut();
});

async function ask(path: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${service.service.opsUrl}${path}`);
  return { status: answer.status, text: await answer.text() };
}

test('reports not ready, with the reason, until its database is available again', async () => {
  await line.cut();
  await until(async () => (await ask('/ready')).status === 503, 'it is not ready');
  const { reasons } = JSON.parse((await ask('/ready')).text);
  expect(reasons).toContain('the database does not answer');
  expect((await ask('/health')).status).toBe(200);
  expect((await ask('/metrics')).status).toBe(200);
  await line.mend();
  await until(async () => (await ask('/ready')).status === 200, 'it is ready');
});
