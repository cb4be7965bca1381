/** The feed just after a start, when nothing is known of objects yet. FEED_OBJECTS=100000 for more than a few. */
import { afterAll, expect, test } from '@jest/globals';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { countCommands, storeFleet, storePackets } from '../support/fleet.js';
import { until } from '../support/until.js';

const OBJECTS = Number(process.env.FEED_OBJECTS ?? 3_000);

let service: TestService | null = null;
afterAll(() => service?.stop());

test('asks few questions to tell the packets of many objects, each of them once', async () => {
  const uri = testUri();
  const first = await startTestService({}, uri);
  const fleet = await storeFleet(first.client.db(), OBJECTS, () => ({}));
  await first.service.stop();
  await first.client.close();
  service = await startTestService({}, uri);
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const db = service.client.db();
  const before = await countCommands(db);
  const startMs = performance.now();
  await storePackets(db, fleet, (nth) => ({ mark: nth }));
  await until(() => listener.received().length >= OBJECTS, 'all packets', 120_000, 50);
  const commands = (await countCommands(db)) - before;
  const told = listener.received().filter(({ name }) => name === 'object-packet');
  expect(told.map(({ payload }) => payload.mark)).toEqual(Array.from({ length: OBJECTS }, (_, nth) => nth));
  if (OBJECTS > 3_000) console.log({ objects: OBJECTS, commands, ms: Math.round(performance.now() - startMs) });
  expect(commands).toBeLessThan(OBJECTS / 4);
}, 150_000);
