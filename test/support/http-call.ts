/** Requests of tests, over connections that are kept: a new one for each request doubles what it costs. */
import { Agent, type IncomingMessage, request } from 'node:http';

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
  readonly headers: Record<string, string>;
  readonly text: string;
}

export interface Asked {
  readonly method: string;
  /** Beginning with a slash, escaped as far as the test wants it. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text?: string;
}

const agent = new Agent({ keepAlive: true });

/** What no path on the wire may hold, as browsers escape it. */
const escaped = (path: string): string => path.replace(/#.*/, '').replace(/[^!$-;=?-_a-z|~]+/g, encodeURIComponent);

/** Sends one request; a connection that ended while it was kept is not what a test asks about. */
export async function sendHttp(url: string, asked: Asked): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const send = (): void => {
      const { method, path, headers, text } = asked;
      const req = request(url, { agent, method: method.toUpperCase(), path: escaped(path), headers }, resolve);
      req.once('error', (error: NodeJS.ErrnoException) => {
        if (req.reusedSocket && error.code === 'ECONNRESET') send();
        else reject(error);
      });
      req.end(text);
    };
    send();
  });
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  const text = Buffer.concat(parts).toString();
  const headers = response.headers as Record<string, string>;
  const isJson = /[/+]json($|[^-\w])/i.test(headers['content-type'] ?? '');
  return { status: response.statusCode ?? 0, headers, text, body: isJson && text !== '' ? JSON.parse(text) : {} };
}
