/** Reports read the database only in their turn of the queue for histories, also the geofences that they need. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { commandOn } from '../support/held-line.js';
import { type Line, startLine } from '../support/lossy-connection.js';

let line: Line;
let service: TestService;
/** What reports have asked for, in order. */
const asked: ('geofences' | 'objects')[] = [];

beforeAll(async () => {
  // By command and collection: what the service stores meanwhile, the login of the administrator among it, has branches, too.
  const note = (command: Buffer): 'passes' => {
    for (const store of ['geofences', 'objects'] as const)
      if (command.includes(commandOn('find', store))) asked.push(store);
    return 'passes';
  };
  let through = '';
  line = await startLine(testUri(), note, (uri) => {
    through = uri;
    return new MongoClient(uri);
  });
  service = await startTestService({}, through);
});

afterAll(async () => {
  await service?.stop();
  await line?.stop();
});

test('reads geofences for no more reports of a caller than may run', async () => {
  asked.length = 0;
  const reports = Array.from({ length: 12 }, () =>
    service.admin('GET', `reports/geofences?group=${new ObjectId()}&from=2026-11-16&to=2026-11-17`),
  );
  expect((await Promise.all(reports)).map(({ status }) => status)).toEqual(reports.map(() => 200));
  const counts = { geofences: 0, objects: 0 };
  const underWay = asked.map((what) => {
    counts[what]++;
    return Math.abs(counts.geofences - counts.objects);
  });
  expect(counts).toEqual({ geofences: 12, objects: 12 });
  expect(Math.max(...underWay)).toBeLessThanOrEqual(LIMITS.historiesReadPerCaller);
});
