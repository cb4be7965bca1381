/** The target of a request as everything here expects it: a path, whatever form the request line has (RFC 9112, 3.2). */
import type { IncomingMessage } from 'node:http';

const ABSOLUTE_FORM = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#]*@)?([^/?#]*)(.*)$/is;

/** The path and query of a target that may name the host as well. */
export function originFormOf(target: string): string {
  if (target.startsWith('/')) return target;
  const path = ABSOLUTE_FORM.exec(target)?.[2];
  if (path === undefined) return target;
  return path.startsWith('/') ? path : `/${path}`;
}

/** Makes `POST http://host/path` what it stands for: `POST /path`, `Host: host`. What looks at a request later needs to know one form. */
export function useOriginForm(request: IncomingMessage): void {
  const target = request.url ?? '';
  if (target.startsWith('/')) return;
  const host = ABSOLUTE_FORM.exec(target)?.[1];
  if (host === undefined) return;
  request.url = originFormOf(target);
  // RFC 9112, 3.2.2: what the header says is ignored; that there is one is required all the same.
  if (request.headers.host !== undefined) request.headers.host = host;
}
