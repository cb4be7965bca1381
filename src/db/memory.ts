/**
 * Memory for the text of long pages: lent out, and taken back when the page is sent. Left to the collector, which counts
 * what lies outside its heap, every few pages cost it a walk through everything there is.
 */
import { LIMITS } from '../model/limits.js';

/** Where a writer gets its memory from. */
export interface Memory {
  /** At least so many bytes, with whatever was in them before. */
  lend(bytes: number): Buffer<ArrayBuffer>;
  /** Nobody reads or writes it from now on. */
  takeBack(memory: Buffer<ArrayBuffer>): void;
}

/** For what is small, or read by nobody knows how many. */
export const FRESH: Memory = { lend: (bytes) => Buffer.allocUnsafeSlow(bytes), takeBack: () => undefined };

/** Keeps what it gets back for those who ask next. */
export function createMemory(): Memory {
  const kept: Buffer<ArrayBuffer>[] = [];
  return {
    lend(bytes) {
      if (bytes < LIMITS.memoryStepBytes) return FRESH.lend(bytes);
      const at = kept.findIndex(({ length }) => length >= bytes);
      const [found] = at === -1 ? [] : kept.splice(at, 1);
      // Rounded up: the next page is seldom of the same size.
      return found ?? FRESH.lend(Math.ceil(bytes / LIMITS.memoryStepBytes) * LIMITS.memoryStepBytes);
    },
    takeBack(memory) {
      const { length } = memory;
      if (length < LIMITS.memoryStepBytes || length > LIMITS.memoryKeptBytes) return;
      if (kept.length < LIMITS.memoriesKept) kept.push(memory);
    },
  };
}
