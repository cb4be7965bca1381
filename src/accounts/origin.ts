/** Decides which web pages may send a browser's cookie: our own, and origins that the operator lists. */
import { parse } from 'cookie';
import type { Credentials } from './identify.js';
import { SESSION_COOKIE } from './sessions.js';

/** Headers of a request, as Node gives them. */
export interface OriginHeaders {
  readonly origin?: string | undefined;
  readonly host?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
}

/** What browsers say of requests without `Origin` that no other page caused: by our own pages, and by the user (Fetch Metadata, 2.4). */
const OWN_SITES: ReadonlySet<unknown> = new Set([undefined, 'same-origin', 'none']);

/**
 * Whether a request comes from our own page, from a listed origin, or from no web page at all: it has no `Origin`, and no
 * `Sec-Fetch-Site` of another page. A page of another port or host of the same site is a foreign one, although browsers send it
 * the cookie. `allowed` holds whole origins: `https://crm.example`. `scheme` is the scheme the client used:
 * a page loaded without TLS is not trusted by a service with TLS.
 */
export function isTrustedOrigin(headers: OriginHeaders, scheme: string, allowed: readonly string[]): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return OWN_SITES.has(headers['sec-fetch-site']);
  if (allowed.includes(origin)) return true;
  const own = `${scheme}://${host}`;
  if (host === undefined || !URL.canParse(own) || !URL.canParse(origin)) return false;
  // Browsers send `null` for pages without an origin.
  return new URL(origin).origin === new URL(own).origin && new URL(own).origin !== 'null';
}

/** Whether credentials are a session's cookie. Browsers send it by themselves for any page; a token is sent only by those who know it. */
export function hasOnlyCookie({ authorization, cookie }: Credentials): boolean {
  if (authorization !== undefined && authorization !== '') return false;
  return cookie !== undefined && parse(cookie)[SESSION_COOKIE] !== undefined;
}
