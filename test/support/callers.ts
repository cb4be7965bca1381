/** Callers of every kind for the tests of rights: users made by an administrator, and the cookies they log in for. */
import { randomBytes } from 'node:crypto';
import type { Answer, Call, Listener, TestService } from './fixture.js';
import { until } from './until.js';

/** The secret that the fixture starts the service with. */
export const TEST_SECRET = 'test-secret-0123456789-abcdefghijklmnop';

export const UNAUTHORIZED = { success: false, code: '401', message: 'Unauthorized', tags: ['error_unauthorized'] };
export const NOT_FOUND = { success: false, code: '404', message: 'Not Found', tags: ['error_not_found'] };

export interface Person {
  readonly id: string;
  readonly login: string;
  readonly password: string;
  readonly token: string;
  readonly call: Call;
}

export function setCookiesOf(answer: Answer): string[] {
  return ((answer.headers['set-cookie'] as unknown as string[] | undefined) ?? []).slice();
}

/** Logs in for a cookie: `sid=…`, as a client sends it back. */
export async function openSession(
  service: Pick<TestService, 'as'>,
  { login, password }: { login: string; password: string },
  headers: Record<string, string> = {},
): Promise<string> {
  const answer = await service.as(null)('POST', 'auth', { login, password }, headers);
  const [cookie] = setCookiesOf(answer);
  if (answer.status !== 200 || cookie === undefined) throw new Error(`cookie login as ${login}: ${answer.status}`);
  return cookie.split(';')[0] as string;
}

export function withCookie(service: Pick<TestService, 'as'>, cookie: string): Call {
  return (method, path, body, headers) => service.as(null)(method, path, body, { Cookie: cookie, ...headers });
}

/** A user, made by the administrator, with a token of a login. */
export async function createPerson(
  service: Pick<TestService, 'admin' | 'as' | 'tokenOf'>,
  fields: Record<string, unknown> = {},
): Promise<Person> {
  const login = `user-${randomBytes(5).toString('hex')}`;
  const { password = `password of ${login}` } = fields as { password?: string };
  const { status, body, text } = await service.admin('POST', 'users', { login, ...fields, password });
  if (status !== 200) throw new Error(`creating a user: ${status} ${text}`);
  const token = await service.tokenOf(login, password);
  return { id: body._id, login, password, token, call: service.as(token) };
}

/** Resolves when the service has ended the socket; throws when it does not soon. */
export const ended = (listener: Listener): Promise<void> =>
  until(() => !listener.socket.connected, 'the socket is ended');
