/**
 * Reuses buffers for the text of long pages. Without the pool, V8 would run a full collection every few pages, because it counts
 * memory outside its heap.
 */
import { LIMITS } from '../../../core/limits.js';

export interface BufferPool {
  /** Returns a buffer of at least `bytes`, not cleared. */
  acquire(bytes: number): Buffer<ArrayBuffer>;
  /** The buffer must not be used any more. */
  release(buffer: Buffer<ArrayBuffer>): void;
}

/** For small texts, and for texts with an unknown number of readers. */
export const FRESH: BufferPool = { acquire: (bytes) => Buffer.allocUnsafeSlow(bytes), release: () => undefined };

export function createBufferPool(): BufferPool {
  const kept: Buffer<ArrayBuffer>[] = [];
  return {
    acquire(bytes) {
      if (bytes < LIMITS.memoryStepBytes) return FRESH.acquire(bytes);
      const index = kept.findIndex(({ length }) => length >= bytes);
      const [found] = index === -1 ? [] : kept.splice(index, 1);
      // Rounded up, because the next page rarely has the same size.
      return found ?? FRESH.acquire(Math.ceil(bytes / LIMITS.memoryStepBytes) * LIMITS.memoryStepBytes);
    },
    release(buffer) {
      const { length } = buffer;
      if (length < LIMITS.memoryStepBytes || length > LIMITS.spareBufferBytes) return;
      if (kept.length < LIMITS.spareBuffers) kept.push(buffer);
    },
  };
}
