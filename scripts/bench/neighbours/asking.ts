// Attackers repeat requests, several at once, and count the answers.
import { Agent, request } from 'node:http';
import net from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** A user who may do everything in a group of their own. */
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
  /** The object of the other tenant: its own id, which can be guessed, and its `_id`. */
  readonly neighbour: string;
  readonly neighbourId: string;
  /** A position before everything that was stored. */
  readonly since: string;
}

/** Called with the status of each answer, or with what happened instead. */
export type Note = (status: number | string) => void;

export interface Attack {
  readonly name: string;
  /** Whether it aims at the memory of the process: run with both heaps. */
  readonly isHeavy?: boolean;
  /** The answers that it gets; beside these, it may be refused with 429 or 503 at any time. */
  readonly answers: readonly (number | string)[];
  /** Begins, and continues by itself. */
  run(attacker: Attacker, note: Note): void;
}

export interface Asked {
  readonly method?: string;
  /** Below `/api/v1/`, or from `/` on. */
  readonly path: string;
  readonly body?: Buffer | string | object;
  readonly headers?: Record<string, string>;
  /** Whether it is sent without a token. */
  readonly isStranger?: boolean;
}

const agent = new Agent({ keepAlive: true });

/** Resolves when the request is sent and its answer is read, or when the connection ends. */
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

/** A refused client pauses before its next request: `RATE_LIMIT` bounds clients that do not. */
const REFUSED_PAUSE_MS = 200;

/** Several clients, each of which sends its next request after the answer to the last one. */
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

/** A connection that is opened again after it ended and a pause; `begin` gets each of them. */
export async function keepOpen(url: string, begin: (socket: net.Socket) => void, pauseMs = 0): Promise<never> {
  const { hostname, port } = new URL(url);
  for (;;) {
    const socket = net.connect(Number(port), hostname).on('error', () => undefined);
    begin(socket);
    await new Promise((resolve) => socket.once('close', resolve));
    await wait(pauseMs);
  }
}
