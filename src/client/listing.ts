/** Lists in pages, as long as there are more. */
import { type Query, toQueryString } from './query.js';
import type { HttpAnswer, Send } from './requests.js';

/** The elements of a list, one after the other; nothing is requested before the iteration. */
export interface Listing<T> extends AsyncIterable<T> {
  /** The same in the pages in which they arrive. */
  pages(): AsyncIterable<T[]>;
  /** All of them. */
  all(): Promise<T[]>;
}

export interface ListRequest {
  readonly path: string;
  /** `limit` bounds the whole list. */
  readonly query: Query & { readonly limit?: number | undefined };
  /** The largest page; 10,000 by default. */
  readonly pageSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const LARGEST_PAGE = 10_000;

export function createListing<T>(send: Send, request: ListRequest): Listing<T> {
  const pages = (): AsyncGenerator<T[]> => readPages<T>(send, request);
  return {
    pages,
    async all() {
      const found: T[] = [];
      for await (const page of pages()) for (const element of page) found.push(element);
      return found;
    },
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* page;
    },
  };
}

async function* readPages<T>(send: Send, request: ListRequest): AsyncGenerator<T[]> {
  const { query, pageSize = LARGEST_PAGE, signal } = request;
  let left = query.limit ?? Number.POSITIVE_INFINITY;
  let offset = Number(query.offset ?? 0);
  let path = '';
  while (left > 0) {
    const limit = Math.min(left, pageSize, LARGEST_PAGE);
    path ||= request.path + toQueryString({ ...query, limit, ...(offset > 0 && { offset }) });
    const { body, headers } = await send({ method: 'GET', path, isRepeatable: true, signal });
    const page = body as T[];
    if (page.length > 0) yield page;
    if (page.length < limit) return;
    left -= page.length;
    offset += page.length;
    path = toNextPath({ headers }, Math.min(left, pageSize, LARGEST_PAGE)) ?? '';
  }
}

/** `Link` of a full page; there is none where the order is another than by key. */
function toNextPath({ headers }: Pick<HttpAnswer, 'headers'>, limit: number): string | null {
  const [, path, query] = /<([^>?]*)\??([^>]*)>; rel="next"/.exec(headers.get('link') ?? '') ?? [];
  if (path === undefined) return null;
  const parameters = new URLSearchParams(query);
  parameters.set('limit', String(limit));
  return `${path}?${parameters}`;
}
