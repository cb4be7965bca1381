/**
 * How often a test repeats. In `npm test`, `npm run test:slow` and CI a random test makes a tenth of its runs and a race is tried
 * once, always with the same seed; `npm run test:soak` makes all runs, with a new seed that it prints.
 */
import fc from 'fast-check';
import { createRandom } from '../../scripts/bench/random.js';

const QUICK_SHARE = 1 / 10;
const FIXED_SEED = 20_261_125;

/** Set by the project `soak` (jest.config.ts). */
export const isSoak = (globalThis as { isSoak?: boolean }).isSoak === true;

/** Repeat a run with `TEST_SEED=<seed>`. */
const SEED = Number(process.env.TEST_SEED ?? (isSoak ? Date.now() % 2 ** 31 : FIXED_SEED));

fc.configureGlobal({ seed: SEED });

export { fc };

if (isSoak) process.stdout.write(`TEST_SEED=${SEED}\n`);

/** The runs of a random test that makes `full` runs in a soak. */
export function runsOf(full: number): number {
  return isSoak ? full : Math.ceil(full * QUICK_SHARE);
}

/** The rounds of a test that tries the same race again and again. */
export function roundsOf(full: number): number {
  return isSoak ? full : 1;
}

/** Numbers from 0 to below 1, in place of `Math.random`: the same ones for the same seed. */
export const random = createRandom(SEED);
