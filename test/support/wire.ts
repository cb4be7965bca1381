/** HTTP as it is on the wire: bytes in the pieces a test wants, and the answers that come back, one by one. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { until } from './until.js';

export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface Wire {
  readonly socket: Socket;
  /** Sends the pieces one by one, each as a segment of its own as far as that can be had. */
  send(...pieces: (string | Buffer)[]): Promise<void>;
  /** Every answer that is there whole. */
  answers(): readonly WireAnswer[];
  /** All that came, as it is. */
  received(): string;
  /** Returns when there are so many answers. */
  hasAnswers(count: number): Promise<readonly WireAnswer[]>;
  /** Returns when the service has ended the connection. */
  ended(): Promise<void>;
}

export async function openWire(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setNoDelay(true);
  await once(socket, 'connect');
  let received = '';
  let isEnded = false;
  socket.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  socket.on('end', () => {
    isEnded = true;
  });
  socket.on('error', () => undefined);
  const answers = (): WireAnswer[] => readAnswers(received);
  return {
    socket,
    answers,
    received: () => received,
    async send(...pieces) {
      for (const piece of pieces) {
        if (!socket.writable) return;
        await new Promise((done) => socket.write(piece, done));
        // The loopback hands over what was written at once; the service reads it in its next turn.
        if (pieces.length > 1) await new Promise(setImmediate);
      }
    },
    async hasAnswers(count) {
      await until(() => answers().length >= count || isEnded, `${count} answers, not ${JSON.stringify(received)}`);
      return answers();
    },
    ended: () => until(() => isEnded || socket.destroyed, 'the connection has ended'),
  };
}

function readAnswers(received: string): WireAnswer[] {
  const answers: WireAnswer[] = [];
  for (let at = 0; ; ) {
    const end = received.indexOf('\r\n\r\n', at);
    if (end === -1) return answers;
    const [line = '', ...fields] = received.slice(at, end).split('\r\n');
    const headers = Object.fromEntries(
      fields.map((field) => field.split(/: (.*)/s, 2)).map(([name, value]) => [name?.toLowerCase() ?? '', value ?? '']),
    );
    const status = Number(line.split(' ')[1]);
    const length = Number(headers['content-length'] ?? 0);
    const text = received.slice(end + 4, end + 4 + length);
    if (text.length < length) return answers;
    if (status >= 200) answers.push({ status, headers, text });
    at = end + 4 + length;
  }
}
