/**
 * The environment of tests that start the service: it runs as compiled, outside the sandbox of a test file. Each worker loads
 * it once, and the engine optimizes it once, instead of once per file. `LIMITS` is shared with the sandbox, so that a file can
 * change limits; the next file finds the original ones.
 */
import { TestEnvironment } from 'jest-environment-node';
import { startService } from '../../dist/src/app.js';
import { LIMITS } from '../../dist/src/model/limits.js';

const original = { ...LIMITS };

export default class ServiceEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    Object.assign(LIMITS, original);
    this.global.compiled = { startService, LIMITS };
  }
}
