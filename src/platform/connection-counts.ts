/** Counts connections per client address, so that one address cannot use up those of the process. */
import { networkOf } from '../core/network.js';

export interface ConnectionCounts {
  /** Counts one more of an address. Returns a function that counts it no longer; null if the address is at its limit. */
  take(address: string): (() => void) | null;
}

/** An IPv6 address counts with its /64 network. `onRefused` is told of each that is at its limit. */
export function createConnectionCounts(max: number, onRefused: (network: string) => void): ConnectionCounts {
  const counts = new Map<string, number>();
  return {
    take(address) {
      const network = networkOf(address);
      const count = counts.get(network) ?? 0;
      if (count >= max) {
        onRefused(network);
        return null;
      }
      counts.set(network, count + 1);
      let isCounted = true;
      return () => {
        if (!isCounted) return;
        isCounted = false;
        const left = (counts.get(network) ?? 1) - 1;
        if (left === 0) counts.delete(network);
        else counts.set(network, left);
      };
    },
  };
}
