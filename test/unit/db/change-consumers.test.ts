/** Consumers of changes: the failure of one keeps no change from the others. */
import { expect, test } from '@jest/globals';
import type { Change } from '../../../src/core/change.js';
import { unavailable } from '../../../src/core/errors.js';
import { createChangeConsumers } from '../../../src/platform/mongo/changes/consumers.js';

const changeAt = (position: string) => ({ position }) as Change;

/** Three consumers, of which the second fails as often as the test asks for. */
function setUp(failures: Error[]) {
  const got: string[] = [];
  const consumers = ['first', 'second', 'third'].map((name) => async ({ position }: Change) => {
    const failure = name === 'second' ? failures.shift() : undefined;
    if (failure) throw failure;
    got.push(`${name} ${position}`);
  });
  return { got, pass: createChangeConsumers(consumers) };
}

test('passes each change to all consumers, in their order', async () => {
  const { got, pass } = setUp([]);
  await pass(changeAt('a'));
  await pass(changeAt('b'));
  expect(got).toEqual(['first a', 'second a', 'third a', 'first b', 'second b', 'third b']);
});

test('passes a change to the other consumers when one fails, and the next change to all', async () => {
  const { got, pass } = setUp([new Error('a fault')]);
  await expect(pass(changeAt('a'))).rejects.toThrow('a fault');
  await pass(changeAt('b'));
  expect(got).toEqual(['first a', 'third a', 'first b', 'second b', 'third b']);
});

test('passes a repeated change only to consumers that did not receive it', async () => {
  const { got, pass } = setUp([unavailable('the database is away'), unavailable('the database is away')]);
  await expect(pass(changeAt('a'))).rejects.toMatchObject({ status: 503 });
  await expect(pass(changeAt('a'))).rejects.toMatchObject({ status: 503 });
  await pass(changeAt('a'));
  expect(got).toEqual(['first a', 'third a', 'second a']);
});

test('throws the transient error of several, so that the change is delivered again', async () => {
  const pass = createChangeConsumers([
    () => {
      throw new Error('a fault');
    },
    () => {
      throw unavailable('the database is away');
    },
  ]);
  await expect(pass(changeAt('a'))).rejects.toMatchObject({ status: 503 });
});
