/**
 * How live events reach a page: over a WebSocket, because a browser opens only six connections to a server over HTTP/1.1, and a
 * stream in each tab would occupy them all; in short requests where a network closes WebSockets.
 */

import type { EventRequest, EventSignal, OpenEvents } from '../../client/event-source.js';
import { createPolling } from '../../client/polling.js';
import type { Send } from '../../client/requests.js';
import type { TokenSource } from '../../client/token-source.js';
import { createWebSockets, type WebSocketClass } from '../../client/web-socket.js';
import { BASE } from './location.js';

/** Then another WebSocket is tried: the last one may have failed only because the server was starting. */
const POLLING_MS = 300_000;

export function createTransport(send: Send, tokens: TokenSource): OpenEvents {
  const { WebSocket } = globalThis as { WebSocket?: WebSocketClass };
  const openSocket = createWebSockets({ url: BASE, tokens, WebSocket });
  return (request) => openFirst(openSocket, createPolling(send), request);
}

/** Ends when a WebSocket that has worked is lost. */
async function* openFirst(
  openSocket: OpenEvents,
  openPolling: OpenEvents,
  request: EventRequest,
): AsyncGenerator<EventSignal> {
  for (let { since } = request; !request.signal.aborted; ) {
    let hasWorked = false;
    for await (const signal of openSocket({ ...request, since })) {
      hasWorked = true;
      yield signal;
    }
    if (hasWorked) return;
    const endMs = performance.now() + POLLING_MS;
    for await (const signal of openPolling({ ...request, since })) {
      since = toPosition(signal) ?? since;
      yield signal;
      if (performance.now() > endMs && signal.kind === 'live') break;
    }
  }
}

const toPosition = (signal: EventSignal): string | null =>
  signal.kind === 'event' ? signal.event.position : signal.position;
