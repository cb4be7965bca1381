/** The operators' server: probes and metrics on a separate port, if one is configured. */
import { createLoad, type Load } from './load.js';
import { createMetrics, type Gauges, type Metrics, NO_METRICS } from './metrics.js';
import { startProbes } from './probes.js';
import { createReadiness, type HealthChecks } from './readiness.js';

export interface OpsServer {
  /** Null without a configured port. */
  readonly url: string | null;
  readonly metrics: Metrics;
  readonly load: Load;
  /** Called when the service accepts requests. */
  opened(deps: HealthChecks & Gauges): void;
  /** Makes /ready answer 503, so that balancers send no more requests. */
  drain(): void;
  stop(): Promise<void>;
}

/** Null starts no server and counts nothing. */
export async function startOpsServer(
  address: { port: number; host: string } | null,
  limits: Parameters<typeof createLoad>[0],
): Promise<OpsServer> {
  const load = createLoad(limits);
  const readiness = createReadiness();
  let gauges: Gauges | null = null;
  const opened = (deps: HealthChecks & Gauges): void => {
    gauges = deps;
    readiness.opened(deps);
  };
  const common = { load, opened, drain: readiness.drain };
  if (address === null) return { ...common, url: null, metrics: NO_METRICS, stop: async () => load.stop() };
  const metrics = createMetrics(() => gauges, readiness.isOpen);
  const { url, stop } = await startProbes(address, { findObstacles: readiness.findObstacles, metrics: metrics.text });
  return {
    ...common,
    url,
    metrics,
    stop() {
      load.stop();
      return stop();
    },
  };
}
