/**
 * Counts failed logins of devices in memory. The counts never block correct credentials, since all devices of a site may share one
 * address and the check costs microseconds. They only delay the answer to further failures and omit its reason.
 */
import { LRUCache } from 'lru-cache';
import { cacheSize } from '../../core/cache-size.js';
import { LIMITS } from '../../core/limits.js';
import { networkOf } from '../../core/network.js';

export interface ConnectFailures {
  /** Counts a failure. Returns true if the limit of the device at this address, or of the whole address, is exceeded. */
  add(clientId: string, address: string): boolean;
}

export function createConnectFailures(now: () => number): ConnectFailures {
  const perDevice = createCounts(now);
  const perNetwork = createCounts(now);
  return {
    add(clientId, address) {
      const network = networkOf(address);
      const counts = [perNetwork(network), perDevice(`${network} ${clientId}`)] as const;
      return counts[0] > LIMITS.loginFailuresPerAddress || counts[1] > LIMITS.loginFailuresPerAccount;
    },
  };
}

function createCounts(now: () => number): (key: string) => number {
  const counts = new LRUCache<string, { readonly fromMs: number; count: number }>(
    cacheSize(LIMITS.mqttDevicesRemembered),
  );
  return (key) => {
    const nowMs = now();
    const last = counts.get(key);
    if (last !== undefined && nowMs - last.fromMs < LIMITS.loginFailureWindowMs) return ++last.count;
    counts.set(key, { fromMs: nowMs, count: 1 });
    return 1;
  };
}
