/** Requests to any route, by its name in the OpenAPI document. */
import type { Routes } from './generated/api.js';
import { type Query, toPath, toQueryString } from './query.js';
import type { Send } from './requests.js';
import type { CallOptions } from './stores.js';

/** What a route needs: its path parameters, its query, its body; what it does not have may be left out. */
export type RouteInput<Name extends keyof Routes> = CallOptions & { readonly timeoutMs?: number } & Given<
    'path',
    Routes[Name]['path']
  > &
  Given<'query', Routes[Name]['query']> &
  Given<'body', Routes[Name]['body']>;

type Given<Key extends string, Value> = [Value] extends [undefined]
  ? { readonly [K in Key]?: undefined }
  : undefined extends Value
    ? { readonly [K in Key]?: Value }
    : Partial<Value> extends Value
      ? { readonly [K in Key]?: Value }
      : { readonly [K in Key]: Value };

/** Calls a route by its method and path. */
export type RouteRequest = <Name extends keyof Routes>(
  name: Name,
  input: RouteInput<Name>,
) => Promise<Routes[Name]['answer']>;

export function createRouteRequest(send: Send): RouteRequest {
  return async (name, { path, query, body, signal, timeoutMs }) => {
    const [method, template] = name.split(' ') as [string, string];
    const address = toPath(template, path) + toQueryString(query as Query | undefined);
    const answer = await send({ method, path: address, body, signal, timeoutMs, isRepeatable: method === 'GET' });
    return answer.body as never;
  };
}
