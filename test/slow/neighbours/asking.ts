/** How attackers ask: over and over, several at once, and telling what they were answered. */
import { Agent, request } from 'node:http';
import net from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** Who attacks: a user who may do everything in a group of their own. */
export interface Attacker {
  readonly url: string;
  readonly mqttUrl: string;
  readonly token: string;
  /** Own ids of the attacker's objects: one with many short packets, one whose page is of 30 MB, one with a boolean parameter. */
  readonly many: string;
  readonly large: string;
  readonly device: string;
  /** The name of a store whose schema costs as much as a schema may. */
  readonly costlyStore: string;
  /** The neighbour's object, as everybody may guess it. */
  readonly neighbour: string;
  readonly neighbourId: string;
  /** A position of before everything that was stored. */
  readonly since: string;
}

/** Told the status of each answer, or what happened instead. */
export type Note = (status: number | string) => void;

export interface Attack {
  readonly name: string;
  /** Whether it is after the memory of the process: tried with both heaps. */
  readonly isHeavy?: boolean;
  /** Begins, and goes on by itself. */
  run(attacker: Attacker, note: Note): void;
}

export interface Asked {
  readonly method?: string;
  /** Below `/api/v1/`, or from `/` on. */
  readonly path: string;
  readonly body?: Buffer | string | object;
  readonly headers?: Record<string, string>;
  /** Of nobody, who has no token. */
  readonly isStranger?: boolean;
}

const agent = new Agent({ keepAlive: true });

/** Resolves when the answer is read, and what was to be sent has been, or the connection is over. */
export function ask(
  { url, token }: Pick<Attacker, 'url' | 'token'>,
  { method = 'GET', path, body, headers = {}, isStranger = false }: Asked,
  note: Note,
): Promise<void> {
  return new Promise((resolve) => {
    const bytes = Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
    const allHeaders = {
      ...(!isStranger && { Authorization: `Bearer ${token}` }),
      ...(bytes && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(bytes) }),
      ...headers,
    };
    const target = path.startsWith('/') ? path : `/api/v1/${path}`;
    const asked = request(url + target, { method, headers: allHeaders, agent }, (res) => {
      note(res.statusCode ?? 0);
      res.resume();
    });
    asked.once('close', resolve).once('error', () => undefined);
    asked.end(bytes);
  });
}

/** Whoever is refused asks again a little later: to ask as fast as one can is what `RATE_LIMIT` is for. */
const REFUSED_PAUSE_MS = 200;

/** Several who each ask for the next thing when they are answered. */
export function keepAsking(
  clients: number,
  attacker: Attacker,
  note: Note,
  next: (nth: number, client: number) => Asked,
): void {
  const run = async (client: number): Promise<void> => {
    for (let nth = 0; ; nth++) {
      let isRefused = false;
      await ask(attacker, next(nth, client), (status) => {
        isRefused = status === 404 || status === 429 || status === 503;
        note(status);
      });
      if (isRefused) await wait(REFUSED_PAUSE_MS);
    }
  };
  for (let client = 0; client < clients; client++) void run(client);
}

/** The head of a request, as it is on the wire. */
export const headOf = (line: string, headers: Record<string, string> = {}): string =>
  [`${line} HTTP/1.1`, 'Host: x', ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', ''].join(
    '\r\n',
  );

/** A connection that is opened anew when it is over, and the pause; `begin` is told each time. */
export async function keepOpen(url: string, begin: (socket: net.Socket) => void, pauseMs = 0): Promise<never> {
  const { hostname, port } = new URL(url);
  for (;;) {
    const socket = net.connect(Number(port), hostname).on('error', () => undefined);
    begin(socket);
    await new Promise((resolve) => socket.once('close', resolve));
    await wait(pauseMs);
  }
}
