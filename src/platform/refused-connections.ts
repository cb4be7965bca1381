/** Says that connections are refused because their address has too many: counts each, and logs once a minute. */

import { createMinuteCount } from './minute-count.js';

export interface RefusedConnectionOptions {
  /** Counts a connection. */
  readonly onRefused: (transport: string) => void;
  readonly log: { warn(details: object, message: string): void };
}

/** For a transport, what is told the network of each connection that is refused. */
export function createRefusalReport({ onRefused, log }: RefusedConnectionOptions) {
  return (transport: string): ((network: string) => void) => {
    const count = createMinuteCount();
    return (network) => {
      onRefused(transport);
      const refused = count();
      if (refused === null) return;
      log.warn({ transport, network, refused }, 'refused connections of an address that has CONNECTIONS_PER_ADDRESS');
    };
  };
}
