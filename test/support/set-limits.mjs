/** Loaded into a process of the service before its program: sets limits, so that a test need not wait for the usual ones. */
import { LIMITS } from '../../dist/src/core/limits.js';

Object.assign(LIMITS, JSON.parse(process.env.TEST_LIMITS ?? '{}'));
