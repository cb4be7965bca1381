/**
 * How live events reach a page: over a WebSocket, because a browser opens only six connections to a server over HTTP/1.1, and a
 * stream in each tab would occupy them all; in short requests where a network closes WebSockets.
 */

import type { EventRequest, EventSignal, OpenEvents } from '../../client/event-source.js';
import type { Send } from '../../client/requests.js';
import type { TokenSource } from '../../client/token-source.js';
import { createWebSockets, type WebSocketClass } from '../../client/web-socket.js';
import { BASE } from './location.js';
import { shareWithTabs } from './tabs.js';

/** Of what tabs tell each other (tabs/messages.ts): after an upgrade, tabs of both versions may be open. */
const MESSAGES_VERSION = 1;

/** Tabs of the same user share it; `user` is null where a page has a credential of its own. */
export function createTransport(send: Send, tokens: TokenSource, user: string | null): OpenEvents {
  const { WebSocket } = globalThis as { WebSocket?: WebSocketClass };
  const openSocket = createWebSockets({ url: BASE, tokens, WebSocket });
  const name = `vigil-live-${MESSAGES_VERSION}:${BASE}:${user}`;
  // Tabs that poll share nothing: the timers of a leader in the background may be a minute late.
  const openShared = user === null ? openSocket : shareWithTabs(openSocket, name, window);
  return (request) => openFirst(openShared, send, request);
}

/** Ends when a WebSocket that has worked is lost. */
async function* openFirst(openSocket: OpenEvents, send: Send, request: EventRequest): AsyncGenerator<EventSignal> {
  const { signal } = request;
  for (let { since } = request; !signal.aborted; ) {
    let hasWorked = false;
    for await (const received of openSocket({ ...request, since })) {
      hasWorked = true;
      yield received;
    }
    if (hasWorked) return;
    // Browsers do not ask again for a script that they could not load: the server must be there.
    await send({ method: 'GET', path: '/api/v1/auth', isRepeatable: false, signal });
    const polling = await import('./polling.js').catch(() => null);
    if (polling === null) return;
    since = yield* polling.pollForSomeTime(send, { ...request, since });
  }
}
