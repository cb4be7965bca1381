/**
 * Closes connections whose client does not read the response. Uses internals of Node.js: only the handle of a socket knows how much of
 * a large chunk was sent. Tested by test/http/stalled-readers.test.ts.
 */
import type { HandleSocket } from '../../half-closed.js';
import { responseOn } from './response-tracking.js';

export interface StallLimits {
  /** A response is cut if less than `progressBytes` were sent within `stallMs`. Checked every `checkMs`. */
  readonly stallMs: number;
  readonly checkMs: number;
  readonly progressBytes: number;
}

/** Checks the sockets periodically. Returns a function that stops this. */
export function cutStalledReaders(
  sockets: Iterable<HandleSocket>,
  { stallMs, checkMs, progressBytes }: StallLimits,
): () => void {
  const progress = new WeakMap<HandleSocket, { sentBytes: number; sinceMs: number }>();
  const check = (socket: HandleSocket, nowMs: number): void => {
    const { _handle: handle } = socket;
    if (!handle || responseOn(socket) === null || (socket.writableLength === 0 && handle.writeQueueSize === 0)) {
      progress.delete(socket);
      return;
    }
    const sentBytes = handle.bytesWritten - handle.writeQueueSize;
    const previous = progress.get(socket);
    if (previous === undefined || sentBytes - previous.sentBytes >= progressBytes) {
      progress.set(socket, { sentBytes, sinceMs: nowMs });
    } else if (nowMs - previous.sinceMs >= stallMs) socket.destroy();
  };
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const socket of sockets) check(socket, nowMs);
  }, checkMs).unref();
  return () => clearInterval(timer);
}
