/** What answers are held to: the table of errors (docs/reference/errors.md), written out, and the form of a single entity. */
import { expect } from '@jest/globals';
import type { Answer, ReceivedEvent } from './fixture.js';

const ERRORS: Readonly<Record<number, [message: string, ...tags: string[]]>> = {
  400: ['Bad Request', 'error_bad_request'],
  401: ['Unauthorized', 'error_unauthorized'],
  403: ['Forbidden', 'error_credentials', 'error_forbidden'],
  404: ['Not Found', 'error_not_found'],
  405: ['Method Not Allowed', 'error_method_not_allowed'],
  409: ['Conflict', 'error_conflict'],
  413: ['Payload Too Large', 'error_too_large'],
  415: ['Unsupported Media Type', 'error_unsupported_media_type'],
  429: ['Too Many Requests', 'error_too_many_requests'],
  500: ['Internal Server Error', 'error_internal'],
  503: ['Service Unavailable', 'error_unavailable'],
};

/** Statuses that never say more than themselves. */
const SILENT: ReadonlySet<number> = new Set([401, 404, 500]);

/** The body of an error, to the letter; `mention` is what its help must speak of. */
export function refusal(status: number, mention?: string): object {
  const [message, ...tags] = ERRORS[status] as [string, ...string[]];
  const body = { success: false, code: String(status), message, tags };
  return mention === undefined ? body : { ...body, helper: { message: expect.stringContaining(mention) } };
}

/** Holds an answer to an error: status, exact body, length, request id. */
export function expectRefusal(answer: Answer, status: number, mention?: string): void {
  const { helper, ...body } = answer.body;
  expect({ status: answer.status, body, said: helper?.message }).toEqual({
    status,
    body: refusal(status),
    said: mention === undefined ? helper?.message : expect.stringContaining(mention),
  });
  if (SILENT.has(status)) expect(helper).toBeUndefined();
  else if (helper !== undefined) expect(Object.keys(helper)).toEqual(['message']);
  expect(answer.headers).toMatchObject({
    'content-length': String(Buffer.byteLength(answer.text)),
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': expect.stringMatching(/^[\w-]{8,}$/),
  });
}

/** The entity of a 200, whose last key is `success: true`. */
// biome-ignore lint/suspicious/noExplicitAny: entities of every shape
export function entityOf(answer: Answer): any {
  expect({ status: answer.status, last: Object.entries(answer.body).at(-1), text: answer.text }).toEqual({
    status: 200,
    last: ['success', true],
    text: expect.stringMatching(/,"success":true}$/),
  });
  expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(answer.text)));
  const { success, ...entity } = answer.body;
  return entity;
}

/** Events without their positions, which no test can know. */
export function eventsOf(received: readonly ReceivedEvent[]): object[] {
  return received.map(({ name, payload }) => ({ name, payload }));
}
