/** The metrics of the service, for Prometheus. No label contains a value chosen by a client. */
import { performance } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Change } from '../../core/change.js';
import { createPackingMetrics, NO_PACKING_METRICS, type PackingMetrics } from './packing-metrics.js';
import { createWorkerMetrics, type WorkerStats } from './worker-metrics.js';

/** A request that was answered, or whose client disconnected before. */
export interface EndedRequest {
  readonly method: string;
  /** The pattern of the route, not the path. */
  readonly route: string;
  /** The status of the answer; null if the client had disconnected. */
  readonly status: number | null;
  readonly ms: number;
}

/** Values that are read for each scrape. */
export interface Gauges {
  sockets(): number;
  pool(): { readonly open: number; readonly inUse: number; readonly waiting: number };
  workers(): WorkerStats;
  watcher(): {
    /** The time from the latest change's write to its publication; null before the first. */
    readonly lagMs: number | null;
    /** When the last reply of the change stream was completely delivered; ms since the epoch. */
    readonly lastReplyAtMs: number;
    readonly restarts: number;
    readonly gaps: number;
    readonly skipped: number;
  };
}

/** Counts the work of the service. Cheap: called for each request, packet and event. */
export interface Metrics {
  requestEnded(request: EndedRequest): void;
  /** Wraps an intake of packets so that its packets are counted. */
  counted<A extends unknown[], T extends { packets: readonly unknown[] }>(
    entry: string,
    ingest: (...args: A) => Promise<T>,
  ): (...args: A) => Promise<T>;
  /** Counts a connection of an address that has too many. */
  connectionRefused(transport: string): void;
  /** Counts a message of a device that was acknowledged and not stored. */
  messageRefused(): void;
  /** Counts a change and the events that it caused. */
  published(change: Change, events: readonly { readonly name: string }[]): void;
  /** Counts webhook messages by outcome, with the duration of the request, if there was one, and the delay of a delivered message. */
  webhookEnded(outcome: string, count: number, ms: number | null, delayMs?: number): void;
  readonly packing: PackingMetrics;
  /** All metrics in the text format of Prometheus. */
  text(): Promise<string>;
}

/** For a service without an ops server. */
export const NO_METRICS: Metrics = {
  requestEnded: () => undefined,
  counted: (_entry, ingest) => ingest,
  connectionRefused: () => undefined,
  messageRefused: () => undefined,
  published: () => undefined,
  webhookEnded: () => undefined,
  packing: NO_PACKING_METRICS,
  text: async () => '',
};

const PREFIX = 'vigil_';
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `gauges` returns null until the database is available; `isReady`: whether the service accepts requests. */
export function createMetrics(gauges: () => Gauges | null, isReady: () => boolean): Metrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  // Software versions are not disclosed.
  register.removeSingleMetric('nodejs_version_info');
  addGauges(register, gauges, isReady);
  addUtilization(register);
  const packets = addCounter(register, 'packets_stored_total', 'Packets stored, by transport', ['transport']);
  const events = addCounter(register, 'events_total', 'Live events published, by name', ['event']);
  const refused = addCounter(register, 'messages_refused_total', 'Messages of devices that cannot be stored', []);
  const connections = addCounter(
    register,
    'connections_refused_total',
    'Connections and requests of addresses that have as many as they may, by transport',
    ['transport'],
  );
  const commands = addCounter(register, 'commands_total', 'Commands that entered a status', ['status']);
  return {
    requestEnded: createRequestMetrics(register),
    counted(entry, ingest) {
      const count = packets.labels({ transport: entry });
      return async (...args) => {
        const stored = await ingest(...args);
        count.inc(stored.packets.length);
        return stored;
      };
    },
    connectionRefused: (transport) => connections.inc({ transport }),
    messageRefused: () => refused.inc(),
    published(change, list) {
      for (const { name } of list) events.inc({ event: name });
      // Packets are not decoded for this.
      if (change.store === 'commands' && change.after !== null) commands.inc({ status: String(change.after.status) });
    },
    webhookEnded: createWorkerMetrics(register, () => gauges()?.workers() ?? null),
    packing: createPackingMetrics(register),
    text: () => register.metrics(),
  };
}

function addCounter(register: Registry, name: string, help: string, labelNames: string[]): Counter {
  return new Counter({ name: `${PREFIX}${name}`, help, labelNames, registers: [register] });
}

function createRequestMetrics(register: Registry): Metrics['requestEnded'] {
  const requests = addCounter(register, 'http_requests_total', 'Requests, by route and status', [
    'method',
    'route',
    'status',
  ]);
  const durations = new Histogram({
    name: `${PREFIX}http_request_duration_seconds`,
    help: 'Time from the request to the end of its answer',
    labelNames: ['method', 'route'],
    buckets: SECONDS,
    registers: [register],
  });
  // Looking up labels costs more than counting, so each combination is looked up once.
  const known = new Map<string, { count: Counter.Internal; time: Histogram.Internal<string> }>();
  return ({ method, route, status, ms }) => {
    const key = `${method} ${route} ${status}`;
    let found = known.get(key);
    if (found === undefined) {
      const count = requests.labels({ method, route, status: status === null ? 'aborted' : String(status) });
      found = { count, time: durations.labels({ method, route }) };
      known.set(key, found);
    }
    found.count.inc();
    found.time.observe(ms / 1_000);
  };
}

function addGauges(register: Registry, gauges: () => Gauges | null, isReady: () => boolean): void {
  const add = (name: string, help: string, read: (known: Gauges) => number): void => {
    new Gauge({
      name: `${PREFIX}${name}`,
      help,
      registers: [register],
      collect() {
        const known = gauges();
        this.set(known === null ? 0 : read(known));
      },
    });
  };
  new Gauge({
    name: `${PREFIX}ready`,
    help: '1 while the service accepts requests, 0 while it starts or stops, or its database is unavailable',
    registers: [register],
    collect() {
      this.set(isReady() ? 1 : 0);
    },
  });
  add('sockets', 'Connected subscribers of live events', ({ sockets }) => sockets());
  add('mongodb_pool_open', 'Connections to the database', ({ pool }) => pool().open);
  add('mongodb_pool_in_use', 'Connections to the database that are in use', ({ pool }) => pool().inUse);
  add('mongodb_pool_waiting', 'Operations that wait for a connection', ({ pool }) => pool().waiting);
  add(
    'watcher_lag_seconds',
    'Time from the latest change of the database to its publication',
    ({ watcher }) => (watcher().lagMs ?? 0) / 1_000,
  );
  add(
    'watcher_heard_timestamp_seconds',
    'When the change stream last replied',
    ({ watcher }) => watcher().lastReplyAtMs / 1_000,
  );
  const addWatcherCounter = (name: string, help: string, field: 'restarts' | 'gaps' | 'skipped'): void => {
    new Counter({
      name: `${PREFIX}watcher_${name}_total`,
      help,
      registers: [register],
      collect() {
        this.reset();
        this.inc(gauges()?.watcher()[field] ?? 0);
      },
    });
  };
  addWatcherCounter('restarts', 'How often the change stream failed and was resumed', 'restarts');
  addWatcherCounter('gaps', 'How often changes were lost because the change stream could not be resumed', 'gaps');
  addWatcherCounter('skipped', 'Changes that were skipped because processing them failed', 'skipped');
}

/** The utilization of the event loop since the previous scrape. */
function addUtilization(register: Registry): void {
  let last = performance.eventLoopUtilization();
  new Gauge({
    name: `${PREFIX}event_loop_utilization`,
    help: 'Share of time that the event loop was busy since the previous scrape',
    registers: [register],
    collect() {
      const now = performance.eventLoopUtilization();
      this.set(performance.eventLoopUtilization(now, last).utilization);
      last = now;
    },
  });
}
