/** Converts request targets to origin form, a path with a query (RFC 9112, 3.2), without the base path of the service. */
import type { IncomingMessage } from 'node:http';

const ABSOLUTE_FORM = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#]*@)?([^/?#]*)(.*)$/is;

/** The path and query of a target in origin or absolute form. */
function originFormOf(target: string): string {
  if (target.startsWith('/')) return target;
  const path = ABSOLUTE_FORM.exec(target)?.[2];
  if (path === undefined) return target;
  return path.startsWith('/') ? path : `/${path}`;
}

/**
 * Rewrites `POST http://host/base/path` as `POST /path` with `Host: host`, so that the rest of the service handles one form only.
 * A proxy may have removed the base path already.
 */
export function useOwnTarget(request: IncomingMessage, basePath: string): void {
  useOriginForm(request);
  const { url = '' } = request;
  if (basePath === '' || !url.startsWith(basePath)) return;
  const rest = url.slice(basePath.length);
  if (rest.startsWith('/')) request.url = rest;
  else if (rest === '' || rest.startsWith('?')) request.url = `/${rest}`;
}

function useOriginForm(request: IncomingMessage): void {
  const target = request.url ?? '';
  if (target.startsWith('/')) return;
  const host = ABSOLUTE_FORM.exec(target)?.[1];
  if (host === undefined) return;
  request.url = originFormOf(target);
  // RFC 9112, 3.2.2: the value of `Host` is ignored, but the header is still required.
  if (request.headers.host !== undefined) request.headers.host = host;
}
