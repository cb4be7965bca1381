/**
 * Discards bodies that arrive after their request was answered, usually refused. They must be read, since many clients read the
 * answer only after they have sent everything. Reading at full speed would block the process.
 */
import type { IncomingMessage } from 'node:http';
import { LIMITS } from '../../core/limits.js';

/** In the order of the next read. */
const leftovers: IncomingMessage[] = [];
const known = new WeakSet<IncomingMessage>();
let timer: NodeJS.Timeout | undefined;

/** Reads the rest of the body in pieces, alternating with other connections. */
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

/** Returns whether more bytes are expected. */
function discardPiece(req: IncomingMessage): boolean {
  if (req.destroyed) return false;
  if (req.isPaused()) {
    // The body's former consumers must not see the discarded bytes.
    req.removeAllListeners('data');
    if (!req.complete) req.once('data', () => req.pause());
    req.resume();
  }
  return !req.complete;
}
