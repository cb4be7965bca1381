/** Sources and what is sent to them. */
import { entityOf } from './answers.js';
import type { TestService } from './fixture.js';
import { type Answer, sendHttp } from './http-call.js';

export interface Source {
  readonly id: string;
  readonly _id: string;
  readonly key: string;
}

/** The header of HTTP Basic. */
export const basic = (user: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

export function useSources(service: TestService) {
  let count = 0;
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const all = { 'Content-Type': 'application/json', ...headers };
    return sendHttp(service.url, { method: 'POST', path: `/api/v1/in/${path}`, headers: all, text });
  };
  return {
    /** A name that nothing else has. */
    newName: (): string => `name-${++count}`,
    post,
    get: (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
      sendHttp(service.url, { method: 'GET', path: `/api/v1/in/${path}`, headers }),
    send: ({ id, key }: Source, body: unknown, query = ''): Promise<Answer> => post(`${id}/${key}${query}`, body),
    async createSource(fields: object = {}, call = service.admin): Promise<Source> {
      const answer = await call('POST', 'sources', {
        id: `source-${++count}`,
        name: 'Source',
        kind: 'json',
        ...fields,
      });
      return entityOf(answer) as never;
    },
    async createObject(fields: object = {}): Promise<{ _id: string; id: string }> {
      const answer = await service.admin('POST', 'objects', { id: `object-${++count}`, name: 'Object', ...fields });
      return entityOf(answer) as never;
    },
    async packetsOf(object: { _id: string }): Promise<Record<string, unknown>[]> {
      return (await service.admin('GET', `objects/${object._id}/packets`)).body;
    },
  };
}
