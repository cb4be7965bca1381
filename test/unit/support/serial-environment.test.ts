/** What the environment of all tests leaves out of the process in which they run. */
import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks';
import { expect, test } from '@jest/globals';

test('adds nothing to the promises of what is tested', async () => {
  await null;
  expect(Object.getOwnPropertySymbols(executionAsyncResource()).map(String)).not.toContain('Symbol(kResourceStore)');
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
