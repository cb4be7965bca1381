/**
 * The environment of tests that start the service: it runs as compiled, outside the sandbox of a test file. Each worker loads
 * it once, and the engine optimizes it once, instead of once per file. The same applies to the schemas of the OpenAPI document, and to
 * the clients in `shared/`. The driver of the database is not among them: the simulation replaces parts of it.
 * `LIMITS` is shared with the sandbox, so that a file can change limits; the next file finds the original ones.
 *
 * A machine that is busy, or stands still for a while, makes neither the database nor an instance dead: except in slow tests, which
 * have other processes, the service waits longer for them. Tests of outages take its usual limits (usual-limits.ts).
 *
 * When a test fails, the logs that it registered (failure-logs.ts) are kept in the folder TEST_ARTIFACTS, or `test-failures`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { ObjectId } from 'mongodb';
import { startService } from '../../dist/src/app.js';
import { LIMITS } from '../../dist/src/core/limits.js';
import { createOpenApi } from '../../dist/src/openapi/openapi.js';
import SerialEnvironment from './serial-environment.mjs';

const original = { ...LIMITS };
const WAIT_MS = 30_000;
const patient = {
  databaseConnectMs: WAIT_MS,
  databaseSelectionMs: WAIT_MS,
  databaseAnswerMs: WAIT_MS,
  databaseOperationMs: WAIT_MS,
  mqttConnectMs: WAIT_MS,
  partitionLeaseMs: WAIT_MS,
};
const titleLength = 120;
const require = createRequire(import.meta.url);
const openApi = createOpenApi();
const ajv = new Ajv2020({ strict: false, validateSchema: false });
addFormats.default(ajv);
ajv.addSchema(openApi, 'document');
// The ids of one second are in the order in which they were made until their counter begins anew. From its random beginning it may do so
// at once: in one of 2^24 ids, between two whose order a test expects. From 0 it does not within a run.
ObjectId.index = 0;

export default class ServiceEnvironment extends SerialEnvironment {
  #file;
  #folder;
  #limits;
  #logs = [];

  constructor(config, context) {
    super(config, context);
    const { rootDir } = config.projectConfig;
    this.#file = relative(join(rootDir, 'test'), context.testPath);
    this.#limits = this.#file.startsWith('slow/') ? original : { ...original, ...patient };
    this.#folder = process.env.TEST_ARTIFACTS ?? join(rootDir, 'test-failures');
  }

  async setup() {
    await super.setup();
    Object.assign(LIMITS, this.#limits);
    // ajv equates only arrays and objects of its own realm: a test passes bodies through this `parse`.
    const { parse } = JSON;
    this.global.compiled = { startService, LIMITS, usualLimits: original, openApi, ajv, parse, require };
    this.global.failureLogs = this.#logs;
    this.global.currentTest = { hasFailed: false };
  }

  /** Called by jest for every step of a test; it waits for the promise, so the logs are those from before any clean-up. */
  handleTestEvent(event) {
    super.handleTestEvent(event);
    return this.#keepLogs(event);
  }

  async #keepLogs({ name, test, error }) {
    // Hooks that run after a test take pictures of one that failed; Jest says it only here.
    if (name === 'test_start') this.global.currentTest.hasFailed = false;
    if (name === 'test_fn_failure') this.global.currentTest.hasFailed = true;
    if (name !== 'test_fn_failure' && name !== 'hook_failure') return;
    const titles = [];
    for (let block = test; block?.parent; block = block.parent) titles.unshift(block.name);
    const title = titles.join(' ').replace(/[^\w.-]+/g, '-');
    const folder = join(this.#folder, this.#file, title.slice(0, titleLength) || 'hook');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'error.txt'), error?.stack ?? String(error));
    for (const [at, log] of this.#logs.entries()) {
      const text = await Promise.resolve(log.read()).catch((reason) => `not readable: ${reason}`);
      await writeFile(join(folder, `${at}-${log.title}.log`), text);
    }
  }
}
