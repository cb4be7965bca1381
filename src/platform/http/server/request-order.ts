/**
 * Handles the requests of a connection one at a time. Node emits each request as soon as it is parsed, also if a client
 * pipelines many: without this, all their answers would be in memory while they are sent one after the other.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../../core/limits.js';

/** `_paused`: Node paused the socket because too much output is queued, and resumes it when the output was sent. */
type PausedSocket = Socket & { readonly _paused?: boolean };

/** The number of parsed requests of each connection that wait for an earlier answer. */
const waiting = new WeakMap<Socket, number>();

/** Calls the listener for a request once all earlier answers of its connection were sent. */
export function answerInOrder(listener: RequestListener): RequestListener {
  return (req, res) => {
    // Node assigns the socket to a response once the earlier responses are finished.
    if (res.socket === null) hold(listener, req, res);
    else listener(req, res);
  };
}

function hold(listener: RequestListener, req: IncomingMessage, res: ServerResponse<IncomingMessage>): void {
  const socket: PausedSocket = req.socket;
  const count = (waiting.get(socket) ?? 0) + 1;
  waiting.set(socket, count);
  // Not at the first request: a paused socket does not report that its client disconnected.
  if (count >= LIMITS.requestsHeld) socket.pause();
  res.once('socket', () => {
    const left = (waiting.get(socket) ?? 1) - 1;
    waiting.set(socket, left);
    if (left < LIMITS.requestsHeld && socket.isPaused() && !socket._paused) socket.resume();
    // Node emits 'socket' before it has finished assigning the socket.
    process.nextTick(listener, req, res);
  });
}
