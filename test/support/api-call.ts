/** Calls of a service that may be killed or frozen meanwhile: bounded, timed, and without the checks of the fixture. */
const GIVE_UP_MS = 15_000;

export interface ApiAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
  readonly retryAfter: string | null;
  readonly ms: number;
}

/** Sends one request below `/api/v1`; throws when there is no whole answer in time. */
export async function callApi(
  url: string,
  token: string | null,
  method: string,
  path: string,
  body?: object,
): Promise<ApiAnswer> {
  const startMs = performance.now();
  const response = await fetch(`${url}/api/v1/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(GIVE_UP_MS),
  });
  const parsed = await response.json();
  const ms = performance.now() - startMs;
  return { status: response.status, body: parsed, retryAfter: response.headers.get('retry-after'), ms };
}

/** Logs in; gives the token. */
export async function logIn(url: string, credentials: { login: string; password: string }): Promise<string> {
  const { status, body } = await callApi(url, null, 'POST', 'auth/token', credentials);
  if (status !== 200) throw new Error(`login as ${credentials.login}: ${status}`);
  return body.token;
}
