/** Calls of a service that may be killed or frozen meanwhile: with a time-out, and without the checks of the fixture. */
import { until } from './until.js';

const TIMEOUT_MS = 60_000;

export interface ApiAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
  readonly retryAfter: string | null;
}

/** Sends one request below `/api/v1`; throws without a complete answer. */
export async function callApi(
  url: string,
  token: string | null,
  method: string,
  path: string,
  body?: object,
): Promise<ApiAnswer> {
  const response = await fetch(`${url}/api/v1/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  return { status: response.status, body: await response.json(), retryAfter: response.headers.get('retry-after') };
}

/**
 * Calls again while the answer is 503: members that a busy machine delays elect a new primary at any time. What was stored all the same
 * is a 409 then, where the caller chose its id.
 */
export async function callUntilAvailable(...call: Parameters<typeof callApi>): Promise<ApiAnswer> {
  let answer: ApiAnswer | null = null;
  const isAnswered = async () => {
    answer = await callApi(...call);
    return answer.status !== 503;
  };
  await until(isAnswered, `an answer to ${call[2]} ${call[3]}`);
  return answer as unknown as ApiAnswer;
}

/** Logs in; gives the token. */
export async function logIn(url: string, credentials: { login: string; password: string }): Promise<string> {
  const { status, body } = await callUntilAvailable(url, null, 'POST', 'auth/token', credentials);
  if (status !== 200) throw new Error(`login as ${credentials.login}: ${status}`);
  return body.token;
}
