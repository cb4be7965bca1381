/** The client's address and scheme according to trusted proxies, for requests that Express does not handle. */
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import proxyAddr from 'proxy-addr';

export interface ClientFacts {
  /** As `req.ip` of Express. */
  readonly addressOf: (req: IncomingMessage) => string;
  /** As `req.protocol` of Express: `http` or `https`. */
  readonly schemeOf: (req: IncomingMessage) => string;
  /** Whether a connection from this address is one of a trusted proxy. */
  readonly isProxy: (address: string | undefined) => boolean;
}

export function createClientFacts(trustProxy: number | readonly string[]): ClientFacts {
  const isTrusted =
    typeof trustProxy === 'number'
      ? (_address: unknown, hop: number) => hop < trustProxy
      : proxyAddr.compile(trustProxy);
  const isProxy = (address: string | undefined): boolean => address !== undefined && isTrusted(address, 0);
  return {
    isProxy,
    addressOf: (req) => proxyAddr(req, isTrusted) ?? 'unknown',
    schemeOf(req) {
      const own = (req.socket as TLSSocket).encrypted ? 'https' : 'http';
      if (!isProxy(req.socket.remoteAddress)) return own;
      const [scheme = ''] = String(req.headers['x-forwarded-proto'] || own).split(',');
      // Some proxies send the scheme of a WebSocket.
      return scheme.trim().replace(/^ws/, 'http');
    },
  };
}
