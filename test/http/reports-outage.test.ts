/** Reports while the database is away. */
import '../support/usual-limits.js';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { REPORT_KINDS } from '../../src/core/report-kinds.js';
import { expectRefusal } from '../support/answers.js';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';

let line: Line;
let service: TestService;

beforeAll(async () => {
  line = await openLine(testUri());
  service = await startTestService({}, line.uri);
});
afterAll(async () => {
  await line.mend();
  await service?.stop();
  await line.cut();
});

const ask = (kind: string, more = '') =>
  service.admin('GET', `reports/${kind}?from=2026-11-16&to=2026-11-22&param=mode${more}`);

test('answers 503 to every kind of report, as JSON and as CSV', async () => {
  expect((await ask('utilization')).status).toBe(200);
  await line.cut();
  const answers = await Promise.all(REPORT_KINDS.flatMap((kind) => ['', '&format=csv'].map((more) => ask(kind, more))));
  await line.mend();
  expect(answers).toHaveLength(2 * REPORT_KINDS.length);
  for (const answer of answers) {
    expectRefusal(answer, 503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  }
});
