/** Lists in pages, as long as there are more. */
import { type Query, toQueryString } from './query.js';
import type { Send } from './requests.js';

/** The elements of a list, one after the other; nothing is requested before the iteration. */
export interface Listing<T> extends AsyncIterable<T> {
  /** The same in the pages in which they arrive. */
  pages(): AsyncIterable<T[]>;
  /** All of them. */
  all(): Promise<T[]>;
}

/** The number of elements of a page, 10,000 by default and at most; a function receives how many were read. */
export type PageSize = number | ((read: number) => number);

export interface ListRequest {
  readonly path: string;
  /** `limit` bounds the whole list. */
  readonly query: Query & { readonly limit?: number | undefined };
  readonly pageSize?: PageSize | undefined;
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

/** The pages of a list. */
export async function* readPages<T>(send: Send, request: ListRequest): AsyncGenerator<T[]> {
  const { query, pageSize = LARGEST_PAGE, signal } = request;
  let read = 0;
  let headers: Headers | undefined;
  for (;;) {
    const size = typeof pageSize === 'number' ? pageSize : pageSize(read);
    const limit = Math.min((query.limit ?? Number.POSITIVE_INFINITY) - read, size, LARGEST_PAGE);
    if (limit <= 0) return;
    const offset = Number(query.offset ?? 0) + read || undefined;
    const path = toNextPath(headers, limit) ?? request.path + toQueryString({ ...query, limit, offset });
    const answer = await send({ method: 'GET', path, isRepeatable: true, signal });
    const page = answer.body as T[];
    if (page.length > 0) yield page;
    headers = answer.headers;
    // A shorter page has a next one if its bytes were too many for one answer.
    if (page.length < limit && !isCut(headers)) return;
    read += page.length;
  }
}

const isCut = (headers: Headers): boolean => headers.get('link')?.includes('rel="next"') === true;

/** `Link` of a page that is full or cut, with another `limit`; there is none where the order is another than by key. */
function toNextPath(headers: Headers | undefined, limit: number): string | undefined {
  const [, path] = /<([^>]*)>; rel="next"/.exec(headers?.get('link') ?? '') ?? [];
  return path?.replace(/([?&]limit=)\d+/, `$1${limit}`);
}
