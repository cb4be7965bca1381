/** Live events over a WebSocket: the necessary part of the Socket.IO protocol (EIO=4). */
import { VigilError } from './client-error.js';
import type { EventRequest, EventSignal, LiveEvent, OpenEvents } from './event-source.js';
import type { TokenSource } from './token-source.js';

/** What browsers, Node.js 22 and the package `ws` have in common. */
export interface WebSocketLike {
  send(text: string): void;
  close(): void;
  addEventListener(name: 'message' | 'close' | 'error', listener: (event: SocketEvent) => void): void;
}

interface SocketEvent {
  readonly type: string;
  readonly data?: unknown;
}

export type WebSocketClass = new (url: string) => WebSocketLike;

export interface WebSocketSettings {
  readonly url: string;
  readonly tokens: TokenSource;
  readonly WebSocket: WebSocketClass | undefined;
}

const PATH = '/socket.io/?EIO=4&transport=websocket';
// The service sends a ping every 25 s.
const SILENCE_MS = 65_000;
/** A proxy may accept a WebSocket, and pass nothing on. */
const OPENING_MS = 10_000;
/** A reader that is further behind reads the rest after a reconnection: nothing else bounds what waits here. */
const WAITING_MESSAGES = 20_000;
const STATUSES: Readonly<Record<string, number>> = { Unauthorized: 401, 'Too Many Requests': 429 };

export function createWebSockets({ url, tokens, WebSocket }: WebSocketSettings): OpenEvents {
  return async function* openEvents(request) {
    if (WebSocket === undefined) throw new TypeError('There is no WebSocket here: pass the one of the package ws');
    const page = globalThis as { location?: { href: string } };
    const address = new URL(url + PATH, page.location?.href).href.replace(/^http/, 'ws');
    const token = await tokens.current();
    try {
      yield* receive(new WebSocket(address), request, token);
    } catch (error) {
      const isRefused = error instanceof VigilError && error.status === 401;
      if (!isRefused || token === null || !(await tokens.renew(token))) throw error;
      yield* receive(new WebSocket(address), request, await tokens.current());
    }
  };
}

async function* receive(socket: WebSocketLike, request: EventRequest, token: string | null) {
  const inbox = createInbox(socket, request.signal);
  try {
    for (let text = await inbox.next(); text !== null; text = await inbox.next()) {
      if (text.startsWith('0{')) socket.send(`40${JSON.stringify(toHandshake(request, token))}`);
      else if (text === '2') {
        socket.send('3');
        // The answer contains the current position, so that a reconnection after a quiet time misses little.
        socket.send(`420${JSON.stringify(['subscribe', toWishes(request)])}`);
      } else if (text.startsWith('44')) throw toRefusal(text.slice(2));
      else if (text.startsWith('41')) return;
      else {
        const signal = toSignal(text);
        if (signal !== null) yield signal;
      }
    }
  } finally {
    inbox.stop();
  }
}

const toWishes = ({ objects, events }: EventRequest): object => ({ objects, events });

function toHandshake(request: EventRequest, token: string | null): object {
  const { since } = request;
  return { ...toWishes(request), ...(token !== null && { token }), ...(since !== null && { since }), live: true };
}

function toRefusal(text: string): VigilError {
  const { message = 'refused' } = JSON.parse(text) as { message?: string };
  return new VigilError({ status: STATUSES[message] ?? 400, message });
}

/** An event (`42[name, payload, {position}]`), or the answer to `subscribe` (`430[{position}]`). */
function toSignal(text: string): EventSignal | null {
  if (text.startsWith('430')) {
    const [answer] = JSON.parse(text.slice(3)) as [{ position?: string }];
    return answer.position === undefined ? null : { kind: 'position', position: answer.position };
  }
  if (!text.startsWith('42')) return null;
  const [name, data, detail] = JSON.parse(text.slice(2)) as [string, { position: string }, { position: string }?];
  if (name === 'live') return { kind: 'live', position: data.position };
  return { kind: 'event', event: { event: name, data, position: detail?.position ?? null } as unknown as LiveEvent };
}

/** The messages of a socket in order; null when it is closed. */
function createInbox(socket: WebSocketLike, signal: AbortSignal) {
  const waiting: string[] = [];
  let isClosed = signal.aborted;
  let patienceMs = OPENING_MS;
  let wake: () => void = () => undefined;
  const close = (): void => {
    isClosed = true;
    wake();
    socket.close();
  };
  const onMessage = ({ data }: SocketEvent): void => {
    if (isClosed) return;
    waiting.push(String(data));
    wake();
    if (waiting.length > WAITING_MESSAGES) close();
  };
  socket.addEventListener('message', onMessage);
  socket.addEventListener('close', close);
  socket.addEventListener('error', close);
  signal.addEventListener('abort', close);
  return {
    async next(): Promise<string | null> {
      const timer = setTimeout(close, patienceMs);
      patienceMs = SILENCE_MS;
      while (waiting.length === 0 && !isClosed) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      clearTimeout(timer);
      return signal.aborted ? null : (waiting.shift() ?? null);
    },
    stop(): void {
      signal.removeEventListener('abort', close);
      close();
    },
  };
}
