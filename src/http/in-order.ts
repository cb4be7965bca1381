/**
 * One request of a connection at a time. Node calls for an answer to each request as soon as it is read, also where a client
 * sends many without waiting for answers: all answers would be in memory, and leave one after the other.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../model/limits.js';

/** `_paused`: Node itself does not read on, since too much of an answer waits; it goes on when that has left. */
type PausedSocket = Socket & { readonly _paused?: boolean };

/** How many requests of a connection were read that wait for the answer to another. */
const waiting = new WeakMap<Socket, number>();

/** Answers a request when the answers before it on its connection have left the process. */
export function answerInOrder(answer: RequestListener): RequestListener {
  return (req, res) => {
    // Node gives an answer its connection when those before it have left.
    if (res.socket === null) hold(answer, req, res);
    else answer(req, res);
  };
}

function hold(answer: RequestListener, req: IncomingMessage, res: ServerResponse<IncomingMessage>): void {
  const socket: PausedSocket = req.socket;
  const count = (waiting.get(socket) ?? 0) + 1;
  waiting.set(socket, count);
  // Not at the first one: whoever is not read from is not seen to leave.
  if (count >= LIMITS.requestsHeld) socket.pause();
  res.once('socket', () => {
    const left = (waiting.get(socket) ?? 1) - 1;
    waiting.set(socket, left);
    if (left < LIMITS.requestsHeld && socket.isPaused() && !socket._paused) socket.resume();
    // Node is not done yet with handing the connection over.
    process.nextTick(answer, req, res);
  });
}
