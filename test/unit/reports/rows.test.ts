/** The rows of a report are counted before they are made, and made one by one, so that others are served between them. */
import { expect, test } from '@jest/globals';
import type { Caller } from '../../../src/core/access.js';
import { LIMITS } from '../../../src/core/limits.js';
import { DAY_MS } from '../../../src/core/units.js';
import { parseTripRules } from '../../../src/history/track-routes.js';
import type { Database } from '../../../src/platform/mongo/driver/client.js';
import { eachInSlices } from '../../../src/platform/slices.js';
import { parseReportInterval } from '../../../src/reports/interval.js';
import { mileageReport } from '../../../src/reports/mileage.js';

// Every turn is over at once.
Object.assign(LIMITS, { turnMs: 0 });

test('lets others run between the rows of one object', async () => {
  const query = { from: '2025-11-23', to: '2026-11-22', every: '1 day' };
  const begin = await mileageReport(parseReportInterval(query, 0), parseTripRules({})).open(
    {} as Database,
    {} as Caller,
  );
  let counted = 0;
  const context = {
    database: {} as Database,
    countRow: () => {
      counted++;
    },
  };
  const reading = await begin({ objectId: '', ownId: '', name: '' }, context);
  let turn = 0;
  let isRunning = true;
  const count = (): void => {
    turn++;
    if (isRunning) setImmediate(count);
  };
  setImmediate(count);
  const made: [turn: number, from: unknown][] = [];
  await eachInSlices(reading.finish(), ({ from }) => {
    made.push([turn, from]);
    return null;
  });
  isRunning = false;
  const firstMs = Date.parse('2025-11-23T00:00Z');
  expect(made.map(([, from]) => from)).toEqual(made.map((_, day) => firstMs + day * DAY_MS));
  expect(made).toHaveLength(365);
  expect(counted).toBe(365);
  expect(new Set(made.map(([at]) => at)).size).toBe(365);
});
