/** Declares the part of `proxy-addr` that `client-ip.ts` uses. Express uses the same package. */
declare module 'proxy-addr' {
  import type { IncomingMessage } from 'node:http';

  type Trust = (address: string | undefined, hop: number) => boolean;

  function proxyAddr(req: IncomingMessage, trust: Trust): string | undefined;
  namespace proxyAddr {
    function compile(networks: readonly string[]): Trust;
  }
  export = proxyAddr;
}
