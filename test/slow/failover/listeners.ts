/** Clients of the live feed, of both protocols, that lose their connection or leave, and resume from their position. */
import { createRequire } from 'node:module';
import { setTimeout as wait } from 'node:timers/promises';
import { io } from 'socket.io-client';
import { random } from '../../support/runs.js';

const LONGEST_STAY_MS = 2_000;
const BEFORE_RETURN_MS = 20;
const CONNECT_MS = 60_000;

/** One event as it was received. */
export interface ReceivedEvent {
  readonly name: 'object-packet' | 'object-update' | 'gap';
  // biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
  readonly payload: any;
  readonly position: string | undefined;
  /** Of the process' own clock. */
  readonly atMs: number;
}

export interface Client {
  readonly name: string;
  /** Everything, in the order in which it was received, over all its connections. */
  readonly received: readonly ReceivedEvent[];
  isConnected(): boolean;
  stop(): Promise<void>;
}

export interface ClientOptions {
  readonly urls: readonly string[];
  readonly token: string;
  readonly protocol: 3 | 4;
  /** Whether it disconnects by itself now and then. */
  readonly restless: boolean;
}

/** What the two generations of socket.io-client have in common. */
interface AnySocket {
  readonly connected: boolean;
  on(name: string, listener: (...args: unknown[]) => void): unknown;
  once(name: string, listener: (...args: unknown[]) => void): unknown;
  disconnect(): unknown;
}
type Connect = (url: string, options: object) => AnySocket;

const connectOld = createRequire(import.meta.url)('socket.io-client-2') as Connect;
const connectNew = io as unknown as Connect;

/** Starts a client that connects to a random instance whenever it is not connected. */
export function startClient(options: ClientOptions): Client {
  const received: ReceivedEvent[] = [];
  let running = true;
  let position = '';
  let current: AnySocket | null = null;
  const session = async (): Promise<void> => {
    const { urls, token, protocol } = options;
    const url = urls[Math.floor(random() * urls.length)] ?? '';
    const socket = (protocol === 3 ? connectOld : connectNew)(url, {
      transports: ['websocket'],
      reconnection: false,
      forceNew: true,
      timeout: CONNECT_MS,
      extraHeaders: { authorization: `Bearer ${token}` },
      query: position === '' ? {} : { since: position },
    });
    current = socket;
    for (const name of ['object-packet', 'object-update', 'gap'] as const) {
      socket.on(name, (payload: unknown, detail: unknown) => {
        // An event after its departure will be repeated.
        if (current !== socket) return;
        const at = (detail as { position?: string } | undefined)?.position;
        received.push({ name, payload, position: at, atMs: performance.now() });
        position = at ?? position;
      });
    }
    const leaveMs = performance.now() + (options.restless ? random() * LONGEST_STAY_MS : Number.POSITIVE_INFINITY);
    // Before the first event it has no position to resume from.
    await stay(socket, () => running && (position === '' || performance.now() < leaveMs));
    current = null;
    socket.disconnect();
  };
  const over = (async () => {
    while (running) {
      await session();
      await wait(BEFORE_RETURN_MS);
    }
  })();
  return {
    name: `EIO=${options.protocol}${options.restless ? ', restless' : ''}`,
    received,
    isConnected: () => current?.connected === true,
    async stop() {
      running = false;
      await over;
    },
  };
}

/** Resolves when the connection has ended, has failed, or is no longer wanted. */
async function stay(socket: AnySocket, isWanted: () => boolean): Promise<void> {
  let isOver = false;
  for (const name of ['disconnect', 'connect_error', 'error', 'connect_timeout']) {
    socket.once(name, () => {
      isOver = true;
    });
  }
  while (!isOver && isWanted()) await wait(BEFORE_RETURN_MS);
}
