/**
 * What clients go on sending after their request was answered: refused, most often. It has to be read, since many clients look for
 * the answer only when they have sent all; but as fast as it comes it would keep the process from everything else.
 */
import type { IncomingMessage } from 'node:http';
import { LIMITS } from '../model/limits.js';

/** The one whose turn is next first. */
const leftovers: IncomingMessage[] = [];
const known = new WeakSet<IncomingMessage>();
let timer: NodeJS.Timeout | undefined;

/** Reads the rest of the request piece by piece, in turn with those of other connections. */
export function discardSlowly(req: IncomingMessage): void {
  if (known.has(req)) return;
  known.add(req);
  req.pause();
  leftovers.push(req);
  timer ??= setInterval(discardSome, LIMITS.leftoverPauseMs).unref();
}

function discardSome(): void {
  const now = leftovers.splice(0, LIMITS.leftoversAtOnce);
  for (const req of now) if (discardPiece(req)) leftovers.push(req);
  if (leftovers.length > 0) return;
  clearInterval(timer);
  timer = undefined;
}

/** Whether more is to come. */
function discardPiece(req: IncomingMessage): boolean {
  if (req.destroyed) return false;
  if (req.isPaused()) {
    // Whoever wanted it before does not any more.
    req.removeAllListeners('data');
    if (!req.complete) req.once('data', () => req.pause());
    req.resume();
  }
  return !req.complete;
}
