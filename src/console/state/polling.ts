/** Live events where a network closes WebSockets: in short requests. Loaded when a WebSocket fails. */
import { type EventRequest, type EventSignal, positionOf } from '../../client/event-source.js';
import { createPolling } from '../../client/polling.js';
import type { Send } from '../../client/requests.js';

/** Then another WebSocket is tried: the last one may have failed only because the server was starting. */
const POLLING_MS = 300_000;

/** Returns the position at which the next connection goes on. */
export async function* pollForSomeTime(
  send: Send,
  request: EventRequest,
): AsyncGenerator<EventSignal, EventRequest['since']> {
  let { since } = request;
  const endMs = performance.now() + POLLING_MS;
  for await (const signal of createPolling(send)(request)) {
    since = positionOf(signal) ?? since;
    yield signal;
    if (performance.now() > endMs && signal.kind === 'live') break;
  }
  return since;
}
