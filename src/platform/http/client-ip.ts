/** The client's address and scheme according to trusted proxies, for requests that Express does not handle. */
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import proxyAddr from 'proxy-addr';

export interface ClientFacts {
  /** As `req.ip` of Express. */
  readonly addressOf: (req: IncomingMessage) => string;
  /** As `req.protocol` of Express: `http` or `https`. */
  readonly schemeOf: (req: IncomingMessage) => string;
}

export function createClientFacts(trustProxy: number | readonly string[]): ClientFacts {
  const isTrusted =
    typeof trustProxy === 'number'
      ? (_address: unknown, hop: number) => hop < trustProxy
      : proxyAddr.compile(trustProxy);
  return {
    addressOf: (req) => proxyAddr(req, isTrusted) ?? 'unknown',
    schemeOf(req) {
      const own = (req.socket as TLSSocket).encrypted ? 'https' : 'http';
      if (!isTrusted(req.socket.remoteAddress, 0)) return own;
      const [scheme = ''] = String(req.headers['x-forwarded-proto'] || own).split(',');
      // Some proxies send the scheme of a WebSocket.
      return scheme.trim().replace(/^ws/, 'http');
    },
  };
}
