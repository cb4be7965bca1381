/** The generic interface of a store. */
import { VigilError } from './client-error.js';
import type { Entity, Routes, Success } from './generated/api.js';
import { createListing, type Listing, type PageSize } from './listing.js';
import { type Query, toPath, toQueryString } from './query.js';
import type { HttpRequest, Send } from './requests.js';

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** What every list accepts; `limit` bounds the whole list, `pageSize` a request. */
export type ListQuery = Omit<Routes['GET /api/v1/{store}']['query'], 'meta' | 'after'> &
  CallOptions & { readonly pageSize?: PageSize | undefined };

/** The types of a store's entities. */
export interface StoreTypes {
  readonly entity: unknown;
  /** What of an entity an answer to `only` holds. */
  readonly fields: unknown;
  readonly create: unknown;
  readonly change: unknown;
  readonly created: unknown;
}

/** Whole entities, or with `only` what was asked for. */
type Shown<Types extends StoreTypes, Asked> = Asked extends { only: readonly string[] }
  ? Types['fields']
  : Types['entity'];

/** `count`, the first and the last element. */
export interface ListMeta<T> {
  readonly count: number;
  readonly first: T | null;
  readonly last: T | null;
}

export interface StoreClient<Types extends StoreTypes> {
  get<const Asked extends { only?: readonly string[] } & CallOptions>(
    id: string,
    options?: Asked,
  ): Promise<Shown<Types, Asked>>;
  /** The same, or null where there is none. */
  find<const Asked extends { only?: readonly string[] } & CallOptions>(
    id: string,
    options?: Asked,
  ): Promise<Shown<Types, Asked> | null>;
  list<const Asked extends ListQuery>(query?: Asked): Listing<Shown<Types, Asked>>;
  /** How many there are, the first and the last. */
  meta(query?: Omit<ListQuery, 'limit' | 'offset' | 'pageSize'>): Promise<ListMeta<Types['fields']>>;
  create(entity: Types['create'], options?: CallOptions): Promise<Types['created']>;
  /** Merges the change into the entity. */
  update(id: string, change: Types['change'], options?: CallOptions): Promise<Types['entity'] & Success>;
  remove(id: string, options?: CallOptions): Promise<Types['entity'] & Success>;
  share(id: string, user: string, options?: CallOptions): Promise<Types['entity'] & Success>;
  unshare(id: string, user: string, options?: CallOptions): Promise<Types['entity'] & Success>;
}

/** The types of an administrator's own store. */
export interface AddedStore<T> {
  readonly entity: T & Entity;
  readonly fields: Partial<T> & { _id: string };
  readonly create: T;
  readonly change: Partial<T>;
  readonly created: T & Entity & Success;
}

export function createStoreClient<Types extends StoreTypes>(send: Send, store: string): StoreClient<Types> {
  const pathOf = (id: string): string => toPath(`/api/v1/${store}/{id}`, { id });
  const call = async <T>(request: Pick<HttpRequest, 'method' | 'path' | 'body' | 'signal'>): Promise<T> =>
    (await send({ ...request, isRepeatable: request.method === 'GET' })).body as T;
  const get: StoreClient<Types>['get'] = async (
    id,
    { only, signal }: { only?: readonly string[] } & CallOptions = {},
  ) => call({ method: 'GET', path: pathOf(id) + toQueryString({ only }), signal });
  return {
    get,
    find: (id, options) => get(id, options).catch(toNull),
    list: ({ signal, pageSize, ...query }: ListQuery = {}) =>
      createListing(send, { path: `/api/v1/${store}`, query: query as Query & { limit?: number }, pageSize, signal }),
    meta: async ({ signal, ...query } = {}) =>
      call({ method: 'GET', path: `/api/v1/${store}${toQueryString({ ...(query as Query), meta: true })}`, signal }),
    create: async (body, { signal } = {}) => call({ method: 'POST', path: `/api/v1/${store}`, body, signal }),
    update: async (id, body, { signal } = {}) => call({ method: 'PATCH', path: pathOf(id), body, signal }),
    remove: async (id, { signal } = {}) => call({ method: 'DELETE', path: pathOf(id), signal }),
    share: async (id, user, { signal } = {}) =>
      call({ method: 'POST', path: `${pathOf(id)}/access`, body: { user }, signal }),
    unshare: async (id, user, { signal } = {}) =>
      call({ method: 'DELETE', path: pathOf(id) + toPath('/access/{user}', { user }), signal }),
  };
}

/** Null for a 404; throws all other errors. */
export function toNull(error: unknown): null {
  if (error instanceof VigilError && error.status === 404) return null;
  throw error;
}
