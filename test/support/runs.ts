/** How often a random test draws: a share of its runs in `npm test`, all of them in the slow project, which runs it again. */
const QUICK_SHARE = 1 / 10;

export const isThorough = (globalThis as { isThorough?: boolean }).isThorough === true;

/** The number of runs out of those that the test has in full. */
export function runsOf(full: number): number {
  return isThorough ? full : Math.ceil(full * QUICK_SHARE);
}
