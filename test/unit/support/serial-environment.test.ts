/** What the environment of all tests leaves out of the process in which they run. */
import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks';
import { expect, test } from '@jest/globals';

/** What jest-circus stores. */
const isTest = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && ('test' in value || 'hook' in value);

test('adds nothing to the promises of what is tested', async () => {
  await null;
  const resource = executionAsyncResource() as Record<symbol, unknown>;
  // Libraries that are loaded in this process may have storages of their own.
  const stored = Object.getOwnPropertySymbols(resource).map((symbol) => resource[symbol]);
  expect(stored.filter(isTest)).toEqual([]);
});

test('leaves the storages of Node.js to what is tested', async () => {
  const storage = new AsyncLocalStorage<string>();
  const seen = await storage.run('kept', async () => {
    await null;
    return storage.getStore();
  });
  storage.disable();
  expect(seen).toBe('kept');
});
