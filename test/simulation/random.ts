/** What a run draws: the same for the same seed. */

/** From 0 to below 1, in place of `Math.random`. */
export type Random = () => number;

/** The seed of one step: steps keep their numbers when a failing run is shrunk. */
export function stepSeed(seed: number, step: number): number {
  return Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(step + 1, 0xc2b2ae35);
}

export const between = (random: Random, min: number, max: number): number => min + random() * (max - min);

export const chance = (random: Random, share: number): boolean => random() < share;
