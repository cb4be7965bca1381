/** An instance that takes over the states of rules compares them with the objects that there are. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { startSecond, startTestService, type TestService } from '../support/fixture.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

/** Of each partition. Longer than the instance waits between two looks at what was read. */
const READING_MS = 600;

let set: ReplicaSet;
let service: TestService;
const endings: (() => unknown)[] = [];

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  service = await startTestService({}, set.uri('vigil'));
});

afterAll(async () => {
  for (const end of endings.reverse()) await end();
  await service?.stop();
  await set?.stop();
});

test('reads the objects once, not for each partition', async () => {
  await service.admin('POST', 'objects', { id: 'pump', name: 'Pump' });
  await service.admin('POST', 'rules', { name: 'silent', when: { silent: '1 d' } });
  await service.admin('POST', 'rules', { name: 'hot', when: { param: 't', op: '>', value: 8 } });
  await service.service.stop();
  const primary = await set.primary();
  const data = {
    failCommands: ['find'],
    namespace: 'vigil.alarmStates',
    blockConnection: true,
    blockTimeMS: READING_MS,
  };
  await primary.command({ configureFailPoint: 'failCommand', mode: 'alwaysOn', data });
  const db = service.client.db();
  await db.command({ profile: 2 });
  const second = await startSecond(service, endings);
  const count = (find: string, filter: object) =>
    db.collection('system.profile').countDocuments({ 'command.find': find, ...filter });
  const areRead = async () =>
    (await count('alarmStates', { 'command.filter.partition': { $gte: 0 } })) >= LIMITS.partitions;
  await until(areRead, 'the states of all partitions to be read');
  const scans = () => count('objects', { 'command.filter': {}, 'command.batchSize': LIMITS.historyPage });
  await until(async () => (await scans()) > 0, 'the objects to be read');
  await second.admin('POST', 'objects/pump/packets', { t: 9 });
  await until(async () => (await db.collection('alarms').countDocuments()) === 1, 'an alarm');
  expect(await scans()).toBeLessThanOrEqual(2);
});
