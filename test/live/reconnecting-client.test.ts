/** A client that comes and goes all the time while others write: it hears everything once. */
import { expect, test } from '@jest/globals';
import { ADMIN, openListener, startTestService, testUri } from '../support/fixture.js';
import { until } from '../support/until.js';

test('a client that comes and goes while thousands of packets are written hears each once, on two instances', async () => {
  const uri = testUri();
  const instances = [await startTestService({}, uri), await startTestService({}, uri)] as const;
  const token = await instances[0].tokenOf(ADMIN.login, ADMIN.password);
  await instances[0].admin('POST', 'objects', { id: 'busy', name: 'Busy' });
  const seen: number[] = [];
  let position = '';
  let first = await openListener(instances[0].url, token);
  await instances[0].admin('POST', 'objects/busy/packets', { n: 0 });
  await instances[0].settled();
  const most = 3_000;
  const writing = (async () => {
    for (let n = 1; n <= most; n += 20) {
      const packets = Array.from({ length: 20 }, (_, at) => ({ n: n + at }));
      await instances[(n / 20) & 1 ? 1 : 0].admin('POST', 'objects/busy/packets', packets);
    }
  })();
  const untilMs = performance.now() + 50_000;
  for (let round = 0; seen.at(-1) !== most && performance.now() < untilMs; round++) {
    await first.subscribe({});
    // Every other time it leaves at once; in between it stays until something came, since something always is to come.
    if (round % 2 === 0) await until(() => first.received().length > 0);
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
  expect(seen).toEqual(Array.from({ length: most + 1 }, (_, n) => n));
  first.close();
  await instances[1].stop();
  await instances[0].stop();
}, 120_000);
