/** What becomes of the entities of a bulk request when one of them finds the database unavailable. */
import { expect, test } from '@jest/globals';
import { conflict, unavailable } from '../../../src/core/errors.js';
import { LIMITS } from '../../../src/core/limits.js';
import { writeAll } from '../../../src/entities/bulk-routes.js';

const IDS = Array.from({ length: 100 }, (_, n) => String(n));
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Writes in turns of the event loop; the tenth throws. Says what was written when it is over. */
async function writeUntil(thrown: Error, ofOthersThen: Error | null = null) {
  const written: string[] = [];
  let isBroken = false;
  const write = async (id: string): Promise<void> => {
    await turn();
    if (id === '10') {
      isBroken = true;
      throw thrown;
    }
    await turn();
    if (isBroken && ofOthersThen !== null) throw ofOthersThen;
    written.push(id);
  };
  const outcome = await writeAll(IDS, () => true, write, null).catch((error) => error);
  return { outcome, written };
}

test('begins nothing more once one writer finds the database unavailable, and counts all that were done', async () => {
  const { outcome, written } = await writeUntil(unavailable('no primary'));
  expect(written.length).toBeLessThan(10 + LIMITS.bulkWritesAtOnce);
  expect(outcome).toMatchObject({ status: 503, message: `${written.length} of 100 are done: no primary` });
});

test('throws a fault of the service itself as it is, and begins nothing more', async () => {
  const fault = new TypeError('a fault');
  const { outcome, written } = await writeUntil(fault);
  expect(outcome).toBe(fault);
  expect(written.length).toBeLessThan(10 + LIMITS.bulkWritesAtOnce);
});

test('does not take the failure of an entity for the reason, when it comes after that', async () => {
  const { outcome } = await writeUntil(unavailable('no primary'), conflict('taken'));
  expect(outcome).toMatchObject({ status: 503 });
});
