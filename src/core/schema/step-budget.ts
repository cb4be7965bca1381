/** Bounds the work of one check: a number of steps is free, then its processor time is limited. */
import { LIMITS } from '../limits.js';

/** The check took too long; `steps` lead from the value down to the place it had reached. */
export class Overrun extends Error {
  readonly steps: string[] = [];
}

export class StepBudget {
  readonly #nowMs: () => number;
  #left: number = LIMITS.schemaFreeSteps;
  #endMs: number | null = null;

  /** `nowMs` reads the processor time of the process. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** A step takes about 20 ns. Throws `Overrun` after the time limit; cheap checks never overrun. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) this.#checkTime();
  }

  #checkTime(): void {
    this.#left = LIMITS.schemaStepsBetween;
    this.#endMs ??= this.#nowMs() + LIMITS.schemaCheckMs;
    if (this.#nowMs() > this.#endMs) throw new Overrun('the check takes too long');
  }
}
