/**
 * Ends connections whose client does not read its answer. Reaches beneath Node's public interface: how much of a large piece has left
 * is known to a socket's handle alone. test/slow/slow-readers.test.ts holds it.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A socket of an HTTP server, with the answer that is under way there. */
export type HttpSocket = Socket & {
  readonly _httpMessage?: ServerResponse | null;
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
};

export interface StallLimits {
  /** An answer of which fewer than `progressBytes` leave in `stallMs` is cut; looked for every `checkMs`. */
  readonly stallMs: number;
  readonly checkMs: number;
  readonly progressBytes: number;
}

/** Looks at the sockets until it is called off. */
export function cutStalled(
  sockets: Iterable<HttpSocket>,
  { stallMs, checkMs, progressBytes }: StallLimits,
): () => void {
  const progress = new WeakMap<HttpSocket, { sentBytes: number; sinceMs: number }>();
  const look = (socket: HttpSocket, nowMs: number): void => {
    const { _handle: handle } = socket;
    if (!handle || !socket._httpMessage || (socket.writableLength === 0 && handle.writeQueueSize === 0)) {
      progress.delete(socket);
      return;
    }
    const sentBytes = handle.bytesWritten - handle.writeQueueSize;
    const before = progress.get(socket);
    if (before === undefined || sentBytes - before.sentBytes >= progressBytes) {
      progress.set(socket, { sentBytes, sinceMs: nowMs });
    } else if (nowMs - before.sinceMs >= stallMs) socket.destroy();
  };
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const socket of sockets) look(socket, nowMs);
  }, checkMs).unref();
  return () => clearInterval(timer);
}
