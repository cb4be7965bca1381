/** A client reconnects again and again to one of two instances while others write: it receives every event once. */
import { expect, test } from '@jest/globals';
import { ADMIN, openListener, startTestService, testUri } from '../support/fixture.js';
import { runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const PACKETS = runsOf(3_000);

test(`receives each of ${PACKETS} packets once through reconnections to two instances`, async () => {
  const uri = testUri();
  const instances = [await startTestService({}, uri), await startTestService({}, uri)] as const;
  const token = await instances[0].tokenOf(ADMIN.login, ADMIN.password);
  await instances[0].admin('POST', 'objects', { id: 'busy', name: 'Busy' });
  const seen: number[] = [];
  let position = '';
  let first = await openListener(instances[0].url, token);
  await instances[0].admin('POST', 'objects/busy/packets', { n: 0 });
  await instances[0].settled();
  const writing = (async () => {
    for (let n = 1; n <= PACKETS; n += 20) {
      const packets = Array.from({ length: 20 }, (_, at) => ({ n: n + at }));
      await instances[(n / 20) & 1 ? 1 : 0].admin('POST', 'objects/busy/packets', packets);
    }
  })();
  for (let round = 0; seen.at(-1) !== PACKETS; round++) {
    await first.subscribe({});
    // Every other time it leaves at once; otherwise it stays until an event arrives.
    if (round % 2 === 0) await until(() => first.received().length > 0, `an event after packet ${seen.at(-1)}`);
    const received = first.take();
    first.close();
    for (const { name, payload, position: at } of received) {
      expect(name).toBe('object-packet');
      seen.push(payload.n);
      position = at;
    }
    first = await openListener(instances[round & 1 ? 1 : 0].url, token, { since: position });
  }
  await writing;
  expect(seen).toEqual(Array.from({ length: PACKETS + 1 }, (_, n) => n));
  first.close();
  await instances[1].stop();
  await instances[0].stop();
});
