/** What is counted of the work that follows changes, and of webhooks. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface WorkerStats {
  readonly partitions: number;
  readonly behind: number;
  readonly tasks: number;
  readonly refills: number;
  readonly requests: number;
  readonly openBreakers: number;
  readonly waiting: number;
  readonly remembered: number;
}

const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];
const GAUGES: readonly (readonly [name: string, help: string, field: keyof WorkerStats])[] = [
  ['processing_partitions', 'Partitions that this instance owns', 'partitions'],
  ['processing_partitions_behind', 'Those that are read from the history', 'behind'],
  ['processing_tasks_waiting', 'Tasks that wait to be committed', 'tasks'],
  [
    'alarm_memory_entries',
    'What this instance remembers of objects for alarms: states, packets and instants',
    'remembered',
  ],
  ['webhook_requests_running', 'Requests to receivers of webhooks that are not answered yet', 'requests'],
  ['webhook_breakers_open', 'Webhooks that are left alone because their receivers fail', 'openBreakers'],
  [
    'webhook_messages_waiting',
    'Webhook messages that wait, of all instances: counted by one of them, every minute',
    'waiting',
  ],
];

/** Gives what counts webhook messages. */
export function createWorkerMetrics(
  register: Registry,
  gauges: () => WorkerStats | null,
): (outcome: string, count: number, ms: number | null, delayMs?: number) => void {
  const registers = [register];
  for (const [name, help, field] of GAUGES) {
    new Gauge({
      name: `vigil_${name}`,
      help,
      registers,
      collect() {
        this.set(gauges()?.[field] ?? 0);
      },
    });
  }
  new Counter({
    name: 'vigil_processing_refills_total',
    help: 'How often the history of partitions was gone',
    registers,
    collect() {
      this.reset();
      this.inc(gauges()?.refills ?? 0);
    },
  });
  const deliveries = new Counter({
    name: 'vigil_webhook_deliveries_total',
    help: 'Webhook messages that were sent, or not, by outcome',
    registers,
    labelNames: ['outcome'],
  });
  const durations = new Histogram({
    name: 'vigil_webhook_request_duration_seconds',
    help: 'Time until a receiver answered',
    registers,
    labelNames: ['outcome'],
    buckets: SECONDS,
  });
  const delays = new Histogram({
    name: 'vigil_webhook_delay_seconds',
    help: 'Time from a webhook message to its delivery',
    registers,
    buckets: [...SECONDS, 60, 600, 3_600, 36_000],
  });
  return (outcome, count, ms, delayMs) => {
    if (delayMs !== undefined) delays.observe(delayMs / 1_000);
    deliveries.inc({ outcome }, count);
    if (ms !== null) durations.observe({ outcome }, ms / 1_000);
  };
}
