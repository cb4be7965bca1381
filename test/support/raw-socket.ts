/** The wire itself: WebSocket frames and polling requests, without any client of Socket.IO's in between. */
import { once } from 'node:events';
import type { Socket as NetSocket } from 'node:net';
import { WebSocket } from 'ws';
import type { TestService } from './fixture.js';
import { until } from './until.js';

export interface Raw {
  readonly socket: WebSocket;
  /** Every text frame, in order. */
  readonly frames: string[];
  /** The code the socket was closed with, once it was. */
  closedWith: number | null;
  /** The first frame, from now on or before, that begins so; it and those before it are gone then. */
  next(start: string): Promise<string>;
  /** Returns when the server has handled everything sent before, and everything it had to say has come (EIO=3). */
  settled(): Promise<void>;
  /** Stops reading from the network. */
  pause(): void;
}

/** A WebSocket that has opened; `query` goes before `transport=websocket`. */
export async function openRaw(url: string, headers: Record<string, string>, query = 'EIO=3'): Promise<Raw> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/socket.io/?${query}&transport=websocket`, { headers });
  const frames: string[] = [];
  const raw: Raw = {
    socket,
    frames,
    closedWith: null,
    async next(start) {
      const found = () => frames.findIndex((frame) => frame.startsWith(start));
      const what = `a frame ${start}…, not ${JSON.stringify(frames)}`;
      await until(() => found() >= 0 || raw.closedWith !== null, what);
      if (found() < 0) throw new Error(`closed with ${raw.closedWith} before ${what}`);
      return frames.splice(0, found() + 1).at(-1) as string;
    },
    async settled() {
      const before = frames.filter((frame) => frame === '3').length;
      socket.send('2');
      await until(() => frames.filter((frame) => frame === '3').length > before, 'the answer to a ping');
    },
    pause: () => void (socket as unknown as { _socket: NetSocket })._socket.pause(),
  };
  socket.on('message', (data, isBinary) => frames.push(isBinary ? '<binary>' : String(data)));
  socket.on('close', (code) => {
    raw.closedWith = code;
  });
  socket.on('error', () => undefined);
  const [error] = await Promise.race([
    once(socket, 'open'),
    once(socket, 'unexpected-response').then(([, res]) => [res]),
  ]);
  if (error !== undefined) throw new Error(`refused: ${error.statusCode}`);
  return raw;
}

/** The `Cookie` header of a new session. */
export async function cookieOf(service: TestService, credentials: object): Promise<string> {
  const { status, headers } = await service.as(null)('POST', 'auth', credentials);
  if (status !== 200) throw new Error(`login: ${status}`);
  return String(headers['set-cookie']).split(';')[0] as string;
}

/** The name and the arguments of an event frame. */
// biome-ignore lint/suspicious/noExplicitAny: events of every shape
export const toEvent = (frame: string): any[] => JSON.parse(frame.slice(2));
