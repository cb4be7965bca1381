/** Which web pages may use a browser's cookie here: our own, and those the operator lists. */

/** Headers of a request, as Node gives them. */
export interface OriginHeaders {
  readonly origin?: string | undefined;
  readonly host?: string | undefined;
  readonly 'sec-fetch-site'?: string | string[] | undefined;
}

/**
 * Whether a request comes from a page of ours, from a listed origin, or from no web page at all (no `Origin`, and a
 * browser that does not call it cross-site). `allowed` holds whole origins: `https://crm.example`; `scheme` is the one that the
 * client used: a page that came without TLS is not ours where we have it.
 */
export function isTrustedOrigin(headers: OriginHeaders, scheme: string, allowed: readonly string[]): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return headers['sec-fetch-site'] !== 'cross-site';
  if (allowed.includes(origin)) return true;
  const own = `${scheme}://${host}`;
  if (host === undefined || !URL.canParse(own) || !URL.canParse(origin)) return false;
  // `null` is the origin of whatever has none.
  return new URL(origin).origin === new URL(own).origin && new URL(own).origin !== 'null';
}
