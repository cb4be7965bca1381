// Measures webhooks (H): how soon and how many are delivered, what a receiver that hangs costs others, and what handlers that
// match nothing cost the storing of packets.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { compareStoring, type StoringBench } from './comparing.js';
import { becomeQuiet } from './measure.js';
import { type Posting, whilePosting } from './posting.js';
import { readCpuMs } from './process.js';
import type { FromReceiver, Received, ToReceiver } from './receiver.js';
import { format, median } from './stats.js';
import { postPackets } from './workloads.js';

export interface WebhookBench extends StoringBench {
  /** How many events are sent at once. */
  readonly backlog: number;
}

const EVENTS_PER_SECOND = 500;
const HEALTHY = 20;
const UNMATCHED = 100;
const BATCH = 100;
const DRAIN_MS = 300_000;
const LONG = 4;
const POLL_MS = 100;

export interface Receivers {
  readonly url: string;
  ask(ask: ToReceiver['ask'], prefix: string): Promise<Received>;
  stop(): void;
}

export async function startReceivers(): Promise<Receivers> {
  const child: ChildProcess = fork(fileURLToPath(new URL('./receiver.js', import.meta.url)), { execArgv: [] });
  const next = async (): Promise<FromReceiver> => (await once(child, 'message'))[0] as FromReceiver;
  const started = await next();
  if (!('port' in started)) throw new Error('the receivers did not start');
  return {
    url: `http://127.0.0.1:${started.port}`,
    async ask(ask, prefix) {
      child.send({ ask, prefix } satisfies ToReceiver);
      const answer = await next();
      if (!('received' in answer)) throw new Error('the receivers did not answer');
      return answer.received;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}

/** The lines of the results as a Markdown table. */
export async function measureWebhooks(bench: WebhookBench): Promise<string> {
  const receivers = await startReceivers();
  const lines = ['| | Webhooks | per second | p50 ms | p99 ms | |', '|---|---|---:|---:|---:|---|'];
  try {
    for (const one of [measureLatency, measureSlow, measureBacklog, measureHanging, measureUnmatched]) {
      for (const line of await one(bench, receivers)) {
        bench.say(line);
        lines.push(line);
      }
      await becomeQuiet([bench.server.processId, bench.mongodProcessId], bench.timing);
    }
  } finally {
    receivers.stop();
  }
  return lines.join('\n');
}

type Bench = WebhookBench;
type Lines = Promise<string[]>;

const row = (id: string, title: string, { count, seconds, p50, p99 }: Received, remark = ''): string =>
  `| ${id} | ${title} | ${format(count / seconds)} | ${format(p50)} | ${format(p99)} | ${remark} |`;

async function call({ server }: Bench, method: string, path: string, body?: object): Promise<{ _id: string }> {
  const answer = await fetch(`${server.url}/api/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${server.token}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as { _id: string };
}

async function withHandlers<T>(bench: Bench, handlers: readonly object[], run: () => Promise<T>): Promise<T> {
  const made: string[] = [];
  try {
    for (const handler of handlers) made.push((await call(bench, 'POST', 'handlers', handler))._id);
    return await run();
  } finally {
    for (const id of made) await call(bench, 'DELETE', `handlers/${id}`);
  }
}

const handlerAt = (url: string): object => ({ url, events: ['object-packet'] });

const postingOf = ({ server, size }: Bench, paced: Posting['paced']): Posting => ({ target: server, size, paced });

/** The result of an interval in the middle of the load, after a warm-up. */
async function receiveFor({ timing }: Bench, receivers: Receivers, prefix: string): Promise<Received> {
  await wait(timing.warmMaxMs);
  await receivers.ask('begin', prefix);
  await wait(LONG * timing.measureMs);
  return receivers.ask('end', prefix);
}

const measureLatency = async (bench: Bench, receivers: Receivers): Lines =>
  withHandlers(bench, [handlerAt(`${receivers.url}/fast`)], async () => {
    const load = { packetsPerSecond: EVENTS_PER_SECOND, packetsPerPost: 1 };
    const found = await whilePosting(postingOf(bench, load), () => receiveFor(bench, receivers, '/fast'));
    return [row('H1', `${EVENTS_PER_SECOND} events/s, sent until received`, found)];
  });

const measureSlow = async (bench: Bench, receivers: Receivers): Lines =>
  withHandlers(bench, [handlerAt(`${receivers.url}/slow`)], async () => {
    const load = { packetsPerSecond: 3 * EVENTS_PER_SECOND, packetsPerPost: 10 };
    const found = await whilePosting(postingOf(bench, load), () => receiveFor(bench, receivers, '/slow'));
    return [row('H2', 'a receiver that takes 50 ms, 1,500 events/s', found)];
  });

const measureBacklog = async (bench: Bench, receivers: Receivers): Lines =>
  withHandlers(bench, [handlerAt(`${receivers.url}/fast`)], async () => {
    const { server, mongodProcessId, backlog, size } = bench;
    const make = postPackets(BATCH);
    const before = [server.processId, mongodProcessId].map(readCpuMs);
    await receivers.ask('begin', '/fast');
    const startMs = performance.now();
    for (let nth = 0; nth < backlog / BATCH; nth++) {
      const { path, body } = make(nth, size);
      await call(bench, 'POST', path.replace('/api/v1/', ''), body as object);
    }
    const storedMs = performance.now() - startMs;
    let found = await receivers.ask('end', '/fast');
    while (found.count < backlog && performance.now() - startMs < DRAIN_MS) {
      await wait(POLL_MS);
      found = await receivers.ask('end', '/fast');
    }
    const used = [server.processId, mongodProcessId].map((id, at) => readCpuMs(id) - (before[at] as number));
    const cpu = `CPU ms each ${used.map((ms) => format(ms / found.count)).join(', of mongod ')}`;
    const times = `stored after ${format(storedMs / 1_000)} s, received after ${format(found.seconds)} s; ${cpu}`;
    return [row('H3', `${found.count.toLocaleString('en-US')} events at once`, found, times)];
  });

/** In turns without and with the receiver that hangs. */
async function measureHanging(bench: Bench, receivers: Receivers): Lines {
  const healthy = Array.from({ length: HEALTHY }, (_, nth) => handlerAt(`${receivers.url}/fast${nth}`));
  const load = { packetsPerSecond: EVENTS_PER_SECOND / HEALTHY, packetsPerPost: 1 };
  const alone: Received[] = [];
  const beside: Received[] = [];
  await withHandlers(bench, healthy, () =>
    whilePosting(postingOf(bench, load), async () => {
      for (let round = 0; round < bench.rounds; round++) {
        alone.push(await receiveFor(bench, receivers, '/fast'));
        const hanging = [handlerAt(`${receivers.url}/hang`)];
        beside.push(await withHandlers(bench, hanging, () => receiveFor(bench, receivers, '/fast')));
      }
    }),
  );
  const ratio = median(beside.map(({ p99 }, at) => p99 / (alone[at]?.p99 ?? Number.NaN)));
  return [
    row('H4', `${HEALTHY} receivers, ${EVENTS_PER_SECOND}/s in all`, mediansOf(alone)),
    row('', '… beside one that hangs', mediansOf(beside), `p99 × ${format(ratio)}`),
  ];
}

const mediansOf = (all: readonly Received[]): Received => ({
  count: median(all.map(({ count }) => count)),
  seconds: median(all.map(({ seconds }) => seconds)),
  p50: median(all.map(({ p50 }) => p50)),
  p99: median(all.map(({ p99 }) => p99)),
});

/** In turns without handlers and with those of another object. */
async function measureUnmatched(bench: Bench, { url }: Receivers): Lines {
  const { _id } = await call(bench, 'POST', 'objects', { id: `unmatched-${Date.now()}`, name: 'x' });
  const handlers = Array.from({ length: UNMATCHED }, () => ({ url, objects: [_id] }));
  const what = { without: 'without handlers', with: `with ${UNMATCHED} that do not match` };
  return compareStoring(bench, ['W6', 'W6b'], what, (run) => withHandlers(bench, handlers, run));
}
