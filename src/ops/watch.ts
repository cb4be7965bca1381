/** What those who watch over the service get: probes and metrics on a listener of their own, where one is wanted. */
import { createLoad, type Load } from './load.js';
import { createMetrics, type Gauges, type Metrics, NO_METRICS } from './metrics.js';
import { startProbes } from './probes.js';
import { createReadiness, type Vitals } from './readiness.js';

export interface Watch {
  /** Where it is told; null for nowhere. */
  readonly url: string | null;
  readonly metrics: Metrics;
  readonly load: Load;
  /** The service has all its parts and takes requests. */
  opened(parts: Vitals & Gauges): void;
  /** No more requests are to be sent here. */
  drain(): void;
  stop(): Promise<void>;
}

/** Listens, or, at null, counts nothing and tells nobody. */
export async function startWatch(
  at: { port: number; host: string } | null,
  limits: Parameters<typeof createLoad>[0],
): Promise<Watch> {
  const load = createLoad(limits);
  const readiness = createReadiness();
  let gauges: Gauges | null = null;
  const opened = (parts: Vitals & Gauges): void => {
    gauges = parts;
    readiness.opened(parts);
  };
  const common = { load, opened, drain: readiness.drain };
  if (at === null) return { ...common, url: null, metrics: NO_METRICS, stop: async () => load.stop() };
  const metrics = createMetrics(() => gauges, readiness.isOpen);
  const { url, stop } = await startProbes(at, { findObstacles: readiness.findObstacles, metrics: metrics.text });
  return {
    ...common,
    ...{ url, metrics },
    stop() {
      load.stop();
      return stop();
    },
  };
}
