/**
 * Destroys connections that stay half-closed. After the end of a connection was sent, TCP waits for the end of the other side, which a
 * client can hold back for ever. Uses internals of Node.js: only the handle of a socket knows how much was sent.
 */
import type { Socket } from 'node:net';
import { LIMITS } from '../core/limits.js';

/** A socket with the internals of Node.js that are used here. */
export type HandleSocket = Socket & {
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
};

/** The state of an ended connection, and since when it has been in it. */
interface Ended {
  readonly isSent: boolean;
  readonly sentBytes: number;
  readonly sinceMs: number;
}

/**
 * Checks the sockets periodically. A socket whose end was sent has `halfClosedMs` for the end of the other side, and before that
 * `answerStallMs` to take more of what is left. Returns a function that stops this.
 */
export function destroyHalfClosed(sockets: Iterable<HandleSocket>): () => void {
  const known = new WeakMap<HandleSocket, Ended>();
  const check = (socket: HandleSocket, nowMs: number): void => {
    const { writableFinished: isSent, _handle: handle } = socket;
    const sentBytes = handle ? handle.bytesWritten - handle.writeQueueSize : 0;
    const previous = known.get(socket);
    if (previous?.isSent !== isSent || previous.sentBytes !== sentBytes) {
      known.set(socket, { isSent, sentBytes, sinceMs: nowMs });
    } else if (nowMs - previous.sinceMs >= (isSent ? LIMITS.halfClosedMs : LIMITS.answerStallMs)) socket.destroy();
  };
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const socket of sockets) if (socket.writableEnded) check(socket, nowMs);
  }, LIMITS.connectionCheckMs).unref();
  return () => clearInterval(timer);
}
