// Measures one workload against a running server, with the load in separate processes.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Size } from './data.js';
import type { FromLoad, Job, Result, ToLoad } from './load.js';
import { readCpuMs, readPeakMb, resetPeak } from './process.js';
import type { RunningServer } from './servers.js';
import type { Workload } from './workloads.js';

/** The results of one round; times in ms, memory in MiB. */
export interface Round {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
  /** CPU per operation; for live workloads per thousand deliveries. */
  readonly serverCpuMs: number;
  readonly mongodCpuMs: number;
  readonly peakMb: number | null;
  /** The 99th percentile of the reads beside the workload. */
  readonly readsP99: number | null;
}

export interface Timing {
  /** The minimum duration of a warm-up. */
  readonly warmMs: number;
  /** Its maximum duration if fewer than the workload's `warmRequests` are answered. */
  readonly warmMaxMs: number;
  readonly measureMs: number;
}

const READY_MS = 60_000;
const POLL_MS = 50;
/** How long a pause lasts at most until the processes are idle, in measurements. */
const QUIET = { withinMs: 300, cpuMs: 30, measurements: 15 };
const PER_THOUSAND = 1_000;

export async function measure(
  server: RunningServer,
  workload: Workload,
  { mongodProcessId, size, timing }: { mongodProcessId: number; size: Size; timing: Timing },
): Promise<Round> {
  const target = { url: server.url, token: server.token };
  const parts: Job['part'][] = workload.kind === 'http' ? ['requests'] : ['sockets', 'requests'];
  if (workload.readsPerSecond > 0) parts.push('reads');
  const loads = parts.map(() => fork(fileURLToPath(new URL('./load.js', import.meta.url)), { execArgv: [] }));
  try {
    for (const [at, part] of parts.entries()) {
      await ask(loads[at] as ChildProcess, { job: { workload: workload.id, part, target, size } });
    }
    for (const load of loads) load.send('go');
    await warmUp(loads[0] as ChildProcess, workload, timing);
    if (workload.kind === 'http' && workload.memory) resetPeak(server.processId);
    await Promise.all(loads.map((load) => ask(load, 'begin')));
    const processIds = [server.processId, mongodProcessId];
    const before = processIds.map(readCpuMs);
    await waitForAnswer(loads[0] as ChildProcess, timing.measureMs);
    const used = processIds.map((id, at) => readCpuMs(id) - (before[at] as number));
    const results = (await Promise.all(loads.map((load) => ask(load, 'end')))).map(resultOf);
    return toRound(workload, results, used, readPeakMb(server.processId));
  } finally {
    for (const load of loads) load.kill('SIGKILL');
    await becomeQuiet([server.processId, mongodProcessId], timing);
  }
}

/** For the time of a measurement, and until something was answered: on a busy machine, a short one may end before. */
async function waitForAnswer(load: ChildProcess, measureMs: number): Promise<void> {
  const before = await countAnswers(load);
  await wait(measureMs);
  for (const untilMs = performance.now() + READY_MS; performance.now() < untilMs; await wait(POLL_MS)) {
    if ((await countAnswers(load)) !== before) return;
  }
}

async function countAnswers(load: ChildProcess): Promise<number> {
  const answer = await ask(load, 'answered');
  if (typeof answer === 'object' && 'answered' in answer) return answer.answered;
  throw new Error('the load gave no count');
}

/** A server is several times slower until its code is compiled, which takes longer with more code. */
async function warmUp(load: ChildProcess, workload: Workload, { warmMs, warmMaxMs }: Timing): Promise<void> {
  await wait(warmMs);
  if (workload.kind !== 'http') return;
  for (const untilMs = performance.now() + warmMaxMs - warmMs; performance.now() < untilMs; await wait(POLL_MS)) {
    if ((await countAnswers(load)) >= workload.warmRequests) return;
  }
}

/** Waits until the processes are idle: remaining work would run during the measurement of the next server. */
export async function becomeQuiet(processIds: readonly number[], { measureMs }: Timing): Promise<void> {
  const read = (): number => processIds.reduce((sum, id) => sum + readCpuMs(id), 0);
  const untilMs = performance.now() + QUIET.measurements * measureMs;
  for (let before = read(); performance.now() < untilMs; before = read()) {
    await wait(QUIET.withinMs);
    if (!(read() - before > QUIET.cpuMs)) return;
  }
}

function toRound(workload: Workload, results: readonly Result[], used: readonly number[], peakMb: number): Round {
  const [main, last] = [results[0], results.at(-1)] as [Result, Result];
  const operations = workload.kind === 'http' ? main.count : main.count / PER_THOUSAND;
  return {
    perSecond: main.count / main.seconds,
    p50: main.p50,
    p99: main.p99,
    errors: results.reduce((sum, { errors }) => sum + errors, 0),
    serverCpuMs: (used[0] as number) / operations,
    mongodCpuMs: (used[1] as number) / operations,
    peakMb: workload.kind === 'http' && workload.memory ? peakMb : null,
    readsP99: workload.readsPerSecond > 0 ? last.p99 : null,
  };
}

async function ask(load: ChildProcess, message: ToLoad): Promise<FromLoad> {
  load.send(message);
  const [answer] = (await once(load, 'message', { signal: AbortSignal.timeout(READY_MS) })) as [FromLoad];
  if (typeof answer === 'object' && 'failed' in answer) throw new Error(answer.failed);
  return answer;
}

function resultOf(answer: FromLoad): Result {
  if (typeof answer === 'object' && 'result' in answer) return answer.result;
  throw new Error('the load gave no result');
}
