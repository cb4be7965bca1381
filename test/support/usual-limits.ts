/**
 * The limits of the service, some of which tests raise (environment.mjs): for tests of what happens when a time is over. Imported first,
 * since modules read limits when they are loaded.
 */
import { LIMITS } from '../../src/core/limits.js';

const { compiled } = globalThis as unknown as { compiled: { usualLimits: typeof LIMITS } };
const raised = { ...LIMITS };

Object.assign(LIMITS, compiled.usualLimits);

/** Those of all other tests again, for what a file does with a database that answers: a busy machine keeps its answers back. */
export const raiseLimits = (): void => void Object.assign(LIMITS, raised);
