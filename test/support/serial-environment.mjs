/**
 * The environment of tests that run one after the other, as all of ours do. To know which test an error belongs to, jest-circus keeps the
 * test in an `AsyncLocalStorage`: a new one for each file, and none is ever disabled. In Node.js 20 and 22 each of them is copied to every
 * promise and every callback of the process, also those of the service: the more files a worker has run, the slower is the next one. Of
 * tests that run one after the other, the one that runs is known without it; it is the one that fails of an error that comes late.
 */
import asyncHooks, { AsyncLocalStorage } from 'node:async_hooks';
import { TestEnvironment } from 'jest-environment-node';

/** What jest-circus uses of an `AsyncLocalStorage`, for one test at a time. */
class SerialStorage {
  #store;

  getStore() {
    return this.#store;
  }

  async run(store, callback) {
    const outer = this.#store;
    this.#store = store;
    try {
      return await callback();
    } finally {
      this.#store = outer;
    }
  }
}

export default class SerialEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    // jest-circus is loaded next, anew for each file.
    asyncHooks.AsyncLocalStorage = SerialStorage;
  }

  /** Called by jest-circus for each of its steps. */
  handleTestEvent({ name, concurrent }) {
    // It is loaded: all others get what Node.js has.
    if (name === 'setup') asyncHooks.AsyncLocalStorage = AsyncLocalStorage;
    if (concurrent) throw new Error('the errors of tests that run at the same time could not be told apart');
  }

  async teardown() {
    asyncHooks.AsyncLocalStorage = AsyncLocalStorage;
    await super.teardown();
  }
}
