/**
 * The limits of the service, some of which tests raise (environment.mjs): for tests of what happens when a time is over. Imported first,
 * since modules read limits when they are loaded.
 */
import { LIMITS } from '../../src/core/limits.js';

const { compiled } = globalThis as unknown as { compiled: { usualLimits: typeof LIMITS } };

Object.assign(LIMITS, compiled.usualLimits);
