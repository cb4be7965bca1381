/** Sends requests with supertest over kept connections: a new connection for each request doubles its cost. */
import { Agent } from 'node:http';
import supertest from 'supertest';

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape
  readonly body: any;
  readonly headers: Record<string, string>;
  readonly text: string;
}

export interface HttpCall {
  readonly method: string;
  /** Starts with a slash. The path is sent as it is, except for characters that no request line may contain. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text?: string;
}

const agent = new Agent({ keepAlive: true });

/** Escapes what browsers escape; supertest leaves the rest, dot segments included, as it is. */
const escaped = (path: string): string => path.replace(/#.*/, '').replace(/[^!$-;=?-_a-z|~]+/g, encodeURIComponent);

/** Sends one request; sends it again if the service closed the kept connection meanwhile. */
export async function sendHttp(url: string, { method, path, headers, text }: HttpCall): Promise<Answer> {
  const call = supertest(url)
    [method.toLowerCase() as 'post'](escaped(path))
    .agent(agent)
    .unset('Accept-Encoding')
    .set(headers)
    .ok(() => true)
    .retry(1, (error) => error?.code === 'ECONNRESET');
  const answer = await (text === undefined ? call : call.send(text));
  // supertest sets neither for an answer without a body.
  return {
    status: answer.status,
    headers: answer.headers,
    text: answer.text ?? '',
    body: answer.text ? answer.body : {},
  };
}
