/**
 * Failed logins of devices, counted in memory. A count never keeps a right password out: behind one address there may be every device
 * of a site, and the check costs microseconds. It only says that failures are answered late and without a word.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../model/cache-size.js';
import { LIMITS } from '../model/limits.js';
import { networkOf } from '../model/network.js';

export interface Failures {
  /** Counts one more; true when there were too many of this device from this address, or of any from there. */
  add(clientId: string, address: string): boolean;
}

export function createFailures(now: () => number): Failures {
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
  const counts = new LRUCache<string, { readonly fromMs: number; count: number }>(atMost(LIMITS.mqttDevicesRemembered));
  return (key) => {
    const nowMs = now();
    const last = counts.get(key);
    if (last !== undefined && nowMs - last.fromMs < LIMITS.loginFailureWindowMs) return ++last.count;
    counts.set(key, { fromMs: nowMs, count: 1 });
    return 1;
  };
}
