/** Says that connections are refused because their address has too many: counts each, and logs once a minute. */

import { MINUTE_MS } from '../core/units.js';
import { clock } from './clock.js';

export interface RefusedConnectionOptions {
  /** Counts a connection. */
  readonly onRefused: (transport: string) => void;
  readonly log: { warn(details: object, message: string): void };
}

/** For a transport, what is told the network of each connection that is refused. */
export function createRefusalReport({ onRefused, log }: RefusedConnectionOptions) {
  return (transport: string): ((network: string) => void) => {
    let refused = 0;
    let reportedMs = Number.NEGATIVE_INFINITY;
    return (network) => {
      onRefused(transport);
      refused++;
      const nowMs = clock.steadyMs();
      if (nowMs - reportedMs < MINUTE_MS) return;
      log.warn({ transport, network, refused }, 'refused connections of an address that has CONNECTIONS_PER_ADDRESS');
      reportedMs = nowMs;
      refused = 0;
    };
  };
}
