/** Work that must not run twice at the same time, and what is asked for at the very moment when it ends. */
import { expect, test } from '@jest/globals';
import { createRetryQueue } from '../../../src/devices/presence/retry-queue.js';
import { createSerialRunner } from '../../../src/devices/presence/serial-runner.js';
import { until } from '../../support/until.js';

/** Lets so many promises settle. */
async function settle(count: number): Promise<void> {
  for (let nth = 0; nth < count; nth++) await null;
}
const MOMENTS = Array.from({ length: 20 }, (_, count) => count);

test('runs work again when it is asked for during a run, never twice at the same time', async () => {
  let atOnce = 0;
  let most = 0;
  let runs = 0;
  const run = createSerialRunner(async () => {
    most = Math.max(most, ++atOnce);
    await settle(5);
    runs++;
    atOnce--;
  });
  await Promise.all([run(), run(), run()]);
  expect([runs, most]).toEqual([2, 1]);
});

test.each(MOMENTS)('runs work that is asked for %i promises after it seemed to end', async (moment) => {
  let wanted = 0;
  let done = 0;
  const run = createSerialRunner(async () => {
    done = wanted;
  });
  wanted = 1;
  const first = run();
  await settle(moment);
  wanted = 2;
  await run();
  expect(done).toBe(2);
  await first;
});

test('runs work after a run that failed', async () => {
  let isFailing = true;
  const run = createSerialRunner(async () => {
    if (isFailing) throw new Error('away');
  });
  await expect(run()).rejects.toThrow('away');
  isFailing = false;
  await expect(run()).resolves.toBeUndefined();
});

test.each(MOMENTS)('runs an item that is added to a queue %i promises after its last one', async (moment) => {
  const ran: string[] = [];
  const queue = createRetryQueue<string>({
    run: async (items) => {
      ran.push(...items);
      return null;
    },
    onFailure: () => undefined,
  });
  queue.add('first');
  await settle(moment);
  queue.add('second');
  await until(() => ran.includes('second'), 'the second item');
  expect(ran).toEqual(['first', 'second']);
  await queue.stop();
});
