/** Numbers that are the same for the same seed. */

/** From 0 to below 1, in place of `Math.random` (mulberry32). */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The seed of one step: steps keep their numbers when a failing run is shrunk. */
export function stepSeed(seed: number, step: number): number {
  return Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(step + 1, 0xc2b2ae35);
}

export const between = (random: Random, min: number, max: number): number => min + random() * (max - min);

export const chance = (random: Random, share: number): boolean => random() < share;
