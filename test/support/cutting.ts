/** A client whose connections break again and again, between two events or in the middle of one. Runs in Node.js and in browsers. */
import {
  type ClientOptions,
  createClient,
  type EventTransport,
  type WebSocketClass,
  type WebSocketLike,
} from '../../src/client/client.js';

const SPREAD = 7_919;
const TIMEOUT_MS = 60_000;
const POLL_MS = 2;

/** Breaks a connection when something arrives on it. */
interface Cutter {
  cut(): void;
  readonly cuts: number;
}

export interface CutRun {
  /** The numbers of the packets that were sent. */
  readonly sent: number[];
  /** The numbers of the packets that arrived, in order. */
  readonly received: unknown[];
  stop(): Promise<void>;
}

export interface CutOptions {
  readonly login: NonNullable<ClientOptions['login']>;
  readonly url: string;
  readonly transport: EventTransport;
  readonly reconnections: number;
  readonly Socket: WebSocketClass;
  /** Ends a connection without a closing handshake, where the class can. */
  readonly abort: (socket: WebSocketLike) => void;
}

/** Sends packets and breaks the connection of their receiver; resolves when as many have arrived as were sent. */
export async function runCuts({ url, login, transport, reconnections, Socket, abort }: CutOptions): Promise<CutRun> {
  const id = `cut-${transport}`;
  const sender = createClient({ url, login });
  await sender.objects.create({ id, name: 'Cut' });
  const cutter = transport === 'websocket' ? createCuttingSocket(Socket, abort) : createCuttingFetch();
  const client = createClient({ url, login, retryMs: 1, WebSocket: Socket, ...cutter });
  const received: unknown[] = [];
  // The event of the creation may arrive only now.
  const stream = client.events({ objects: [id], events: ['object-packet'], transport });
  const ended = (async () => {
    for await (const event of stream) received.push(event.event === 'object-packet' ? event.data.n : event.event);
  })();
  ended.catch(() => undefined);
  await waitFor(() => stream.state === 'live', 'the stream is live');
  const sent: number[] = [];
  while (cutter.cuts < reconnections) {
    const first = sent.length;
    const second = sent.length + 1;
    sent.push(first, second);
    await sender.objects.addPackets(id, [{ n: first }, { n: second }]);
    cutter.cut();
  }
  await waitFor(() => received.length >= sent.length, 'all events');
  const stop = (): Promise<void> => {
    stream.close();
    return ended;
  };
  return { sent, received, stop };
}

async function waitFor(isThere: () => boolean, what: string): Promise<void> {
  for (const endMs = performance.now() + TIMEOUT_MS; !isThere(); ) {
    if (performance.now() > endMs) throw new Error(`waited ${TIMEOUT_MS} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function createCuttingFetch(): Cutter & { fetch: typeof fetch } {
  let cuts = 0;
  let mustCut = false;
  const cuttingFetch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).includes('/events') || response.body === null) return response;
    const cutting = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        if (!mustCut) return controller.enqueue(bytes);
        mustCut = false;
        cuts++;
        controller.enqueue(bytes.subarray(0, (cuts * SPREAD) % (bytes.length + 1)));
        controller.error(new TypeError('terminated'));
      },
    });
    return new Response(response.body.pipeThrough(cutting), response);
  };
  return {
    fetch: cuttingFetch,
    cut: () => {
      mustCut = true;
    },
    get cuts() {
      return cuts;
    },
  };
}

type Listener = (event: { type: string; data?: unknown }) => void;

/** A message triggers the break; every other time it does not arrive. */
function createCuttingSocket(
  Socket: WebSocketClass,
  abort: CutOptions['abort'],
): Cutter & { WebSocket: WebSocketClass } {
  let cuts = 0;
  let mustCut = false;
  class CuttingSocket {
    readonly #socket: WebSocketLike;
    #isCut = false;
    constructor(url: string) {
      this.#socket = new Socket(url);
    }
    send(text: string): void {
      this.#socket.send(text);
    }
    close(): void {
      abort(this.#socket);
    }
    addEventListener(name: 'message' | 'close' | 'error', listener: Listener): void {
      const cutting: Listener = (event) => {
        if (this.#isCut) return;
        // After a connection without any event the client would wait longer and longer.
        const isLast = mustCut && String(event.data).startsWith('42');
        if (!isLast || cuts % 2 === 0) listener(event);
        if (!isLast) return;
        this.#isCut = true;
        mustCut = false;
        cuts++;
        abort(this.#socket);
      };
      this.#socket.addEventListener(name, name === 'message' ? cutting : listener);
    }
  }
  return {
    WebSocket: CuttingSocket,
    cut: () => {
      mustCut = true;
    },
    get cuts() {
      return cuts;
    },
  };
}
