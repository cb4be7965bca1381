/**
 * The clock: the only source of time, timers and randomness of the modules that the simulation runs (docs/reliability.md). A lint
 * test refuses all other sources in their folders.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

/** A timer that was started. An unreferenced one does not keep the process alive. */
export interface Timer {
  unref(): this;
  /** Starts its time again. */
  refresh(): this;
}

export interface WaitOptions {
  /** Rejects the wait when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** False: the wait does not keep the process alive. */
  readonly ref?: boolean;
}

export interface Clock {
  /** Ms since the epoch; it may step. */
  now(): number;
  /** Ms since an unknown moment; it never steps back. */
  steadyMs(): number;
  /** Ms of processor time of this process: while others keep the machine busy, it stands still. */
  cpuMs(): number;
  setTimeout(run: () => void, ms: number): Timer;
  /** Repeats until `clearTimer`. */
  setInterval(run: () => void, ms: number): Timer;
  clearTimer(timer: Timer | null | undefined): void;
  /** Runs after the events of this turn of the event loop. */
  setImmediate(run: () => void): void;
  wait(ms: number, options?: WaitOptions): Promise<void>;
  /** Resolves after the events of this turn of the event loop. */
  nextTurn(): Promise<void>;
  /** From 0 to below 1. */
  random(): number;
  randomId(): string;
}

function readCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

const SYSTEM_CLOCK: Clock = {
  now: () => Date.now(),
  steadyMs: () => performance.now(),
  cpuMs: readCpuMs,
  setTimeout: (run, ms) => setTimeout(run, ms),
  setInterval: (run, ms) => setInterval(run, ms),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  setImmediate: (run) => void setImmediate(run),
  wait: (ms, options) => wait(ms, undefined, options),
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
  random: () => Math.random(),
  randomId: () => randomUUID(),
};

/** The clock of this process. */
export let clock = SYSTEM_CLOCK;

/** Replaces the clock before anything uses it; returns what restores it. Only the simulation does. */
export function replaceClock(other: Clock): () => void {
  clock = other;
  return () => {
    clock = SYSTEM_CLOCK;
  };
}
