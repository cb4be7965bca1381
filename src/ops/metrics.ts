/** What the service counts of itself, as Prometheus reads it. No label ever holds what a client wrote. */
import { performance } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Change } from '../model/change.js';

/** A request that was answered, or left before its answer. */
export interface EndedRequest {
  readonly method: string;
  /** The pattern of the route, not the path. */
  readonly route: string;
  /** The answer's status; null when the client had gone. */
  readonly status: number | null;
  readonly ms: number;
}

/** What is looked up when somebody asks; null while there is no database yet. */
export interface Gauges {
  sockets(): number;
  pool(): { readonly open: number; readonly inUse: number; readonly waiting: number };
  watcher(): {
    /** How long after it was written the latest change was told; null before the first. */
    readonly lagMs: number | null;
    /** When all news had been passed on; ms since the epoch. */
    readonly heardAtMs: number;
    readonly restarts: number;
    readonly gaps: number;
    readonly skipped: number;
  };
}

/** Where the parts of the service tell what they did. Cheap: called for each request, packet and event. */
export interface Metrics {
  requestEnded(request: EndedRequest): void;
  /** The same way in for packets, counted. */
  counted<A extends unknown[], T extends { packets: readonly unknown[] }>(
    door: string,
    ingest: (...args: A) => Promise<T>,
  ): (...args: A) => Promise<T>;
  /** What the database told, and the events that came of it. */
  told(change: Change, events: readonly { readonly name: string }[]): void;
  /** Everything, in the text format of Prometheus. */
  text(): Promise<string>;
}

/** For a service that nobody watches. */
export const NO_METRICS: Metrics = {
  requestEnded: () => undefined,
  counted: (_door, ingest) => ingest,
  told: () => undefined,
  text: async () => '',
};

const PREFIX = 'vigil_';
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `gauges` gives what only exists once there is a database, `isReady` whether requests are to be sent here. */
export function createMetrics(gauges: () => Gauges | null, isReady: () => boolean): Metrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  // Which software runs here, and in which version, is nobody's business.
  register.removeSingleMetric('nodejs_version_info');
  addGauges(register, gauges, isReady);
  addUtilization(register);
  const packets = addCounter(register, 'packets_stored_total', 'Packets stored, by door', ['door']);
  const events = addCounter(register, 'events_total', 'Live events told, by name', ['event']);
  const commands = addCounter(register, 'commands_total', 'Commands seen to enter a state', ['status']);
  return {
    requestEnded: createRequestMetrics(register),
    counted(door, ingest) {
      const count = packets.labels({ door });
      return async (...args) => {
        const stored = await ingest(...args);
        count.inc(stored.packets.length);
        return stored;
      };
    },
    told(change, told) {
      for (const { name } of told) events.inc({ event: name });
      // What a packet holds is not even looked at.
      if (change.store === 'commands' && change.after !== null) commands.inc({ status: String(change.after.status) });
    },
    text: () => register.metrics(),
  };
}

function addCounter(register: Registry, name: string, help: string, labelNames: string[]): Counter {
  return new Counter({ name: `${PREFIX}${name}`, help, labelNames, registers: [register] });
}

function createRequestMetrics(register: Registry): Metrics['requestEnded'] {
  const requests = addCounter(register, 'http_requests_total', 'Requests, by route and status', [
    ...['method', 'route', 'status'],
  ]);
  const durations = new Histogram({
    name: `${PREFIX}http_request_duration_seconds`,
    help: 'Time from the request to the end of its answer',
    labelNames: ['method', 'route'],
    buckets: SECONDS,
    registers: [register],
  });
  // Looking labels up costs more than counting: done once for each combination.
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
    help: '1 while the service takes requests, 0 while it starts, drains or has no database',
    registers: [register],
    collect() {
      this.set(isReady() ? 1 : 0);
    },
  });
  add('sockets', 'Listeners to live events that are connected', ({ sockets }) => sockets());
  add('mongodb_pool_open', 'Connections to the database', ({ pool }) => pool().open);
  add('mongodb_pool_in_use', 'Connections to the database that are working', ({ pool }) => pool().inUse);
  add('mongodb_pool_waiting', 'Operations that wait for a connection', ({ pool }) => pool().waiting);
  add(
    'watcher_lag_seconds',
    'How long after it was written the latest change was told',
    ({ watcher }) => (watcher().lagMs ?? 0) / 1_000,
  );
  add(
    'watcher_heard_timestamp_seconds',
    'When all news of the database had been passed on',
    ({ watcher }) => watcher().heardAtMs / 1_000,
  );
  const watched = (name: string, help: string, field: 'restarts' | 'gaps' | 'skipped'): void => {
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
  watched('restarts', 'How often the news of the database broke and was taken up again', 'restarts');
  watched('gaps', 'How often news of the database was lost', 'gaps');
  watched('skipped', 'Changes that could not be told', 'skipped');
}

/** How busy the event loop was since it was last asked. */
function addUtilization(register: Registry): void {
  let last = performance.eventLoopUtilization();
  new Gauge({
    name: `${PREFIX}event_loop_utilization`,
    help: 'Share of the time that the event loop was busy, since the last reading',
    registers: [register],
    collect() {
      const now = performance.eventLoopUtilization();
      this.set(performance.eventLoopUtilization(now, last).utilization);
      last = now;
    },
  });
}
