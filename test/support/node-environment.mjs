/**
 * Jest gives every test file a fresh copy of each module, which costs seconds of a core where a file imports the service with
 * all its packages. The compiled service of `dist/` is loaded by Node.js itself instead, once for each worker.
 */
import { TestEnvironment } from 'jest-environment-node';

export default class extends TestEnvironment {
  async setup() {
    await super.setup();
    this.global.loadNatively = (name) => import(name);
  }
}
