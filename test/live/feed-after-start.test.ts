/** The feed just after a start, when no cache knows an object yet. */
import { afterAll, expect, test } from '@jest/globals';
import { ADMIN, startTestService, type TestService, testUri } from '../support/fixture.js';
import { countCommands, storeFleet, storePackets } from '../support/fleet.js';
import { runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const OBJECTS = runsOf(10_000);

let service: TestService | null = null;
afterAll(() => service?.stop());

test('sends the packets of many objects once each, with few database commands', async () => {
  const uri = testUri();
  const first = await startTestService({}, uri);
  const fleet = await storeFleet(first.client.db(), OBJECTS, () => ({}));
  await first.service.stop();
  await first.client.close();
  service = await startTestService({}, uri);
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const db = service.client.db();
  const before = await countCommands(db);
  await storePackets(db, fleet, (nth) => ({ mark: nth }));
  await until(() => listener.received().length >= OBJECTS, 'all packets');
  const commands = (await countCommands(db)) - before;
  const packets = listener.received().filter(({ name }) => name === 'object-packet');
  expect(packets.map(({ payload }) => payload.mark)).toEqual(Array.from({ length: OBJECTS }, (_, nth) => nth));
  expect(commands).toBeLessThan(OBJECTS / 4);
});
