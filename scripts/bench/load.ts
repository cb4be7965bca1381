// The process of a load. Its parent sends the job and the times to measure; it answers with the results.

import type { Target } from './connection.js';
import type { Size } from './data.js';
import { type Load, loadHttp, type Measured, paceHttp } from './http-load.js';
import { loadLive } from './live-load.js';
import { percentile } from './stats.js';
import { postMove, postPackets, readObject, WORKLOADS } from './workloads.js';

/** `part`: the requests of a workload, the sockets of a live workload, or the reads beside it. */
export interface Job {
  readonly workload: string;
  readonly part: 'requests' | 'sockets' | 'reads';
  /** Instead of a workload: packets at this rate, so many per request. */
  readonly paced?: {
    readonly packetsPerSecond: number;
    readonly packetsPerPost: number;
    /** Each object at a place of its own, and moving; by default all are at the same one. */
    readonly isSpread?: boolean;
  };
  readonly target: Target;
  readonly size: Size;
}

export type ToLoad = { job: Job } | 'go' | 'answered' | 'begin' | 'end';
export type FromLoad = 'ready' | 'begun' | { answered: number } | { result: Result } | { failed: string };

export interface Result extends Omit<Measured, 'latencies'> {
  readonly p50: number;
  readonly p99: number;
}

async function start({ workload, part, paced, target, size }: Job): Promise<Load> {
  if (paced !== undefined) return pacePackets(target, size, paced);
  const found = WORKLOADS.find(({ id }) => id === workload);
  if (found === undefined) throw new Error(`no workload ${workload}`);
  if (part === 'reads') return paceHttp(target, size, readObject, found.readsPerSecond * size.loadShare);
  if (found.kind === 'http' && found.rate !== undefined)
    return paceHttp(target, size, found.wanted, found.rate * size.loadShare, found.connections);
  if (found.kind === 'http') return loadHttp(target, size, found.wanted, found.connections);
  if (part === 'sockets') return loadLive(target, Math.ceil(found.sockets * size.loadShare));
  return pacePackets(target, size, found);
}

const pacePackets = (
  target: Target,
  size: Size,
  { packetsPerSecond, packetsPerPost, isSpread }: NonNullable<Job['paced']>,
): Load => {
  const wanted = isSpread ? postMove : postPackets(packetsPerPost);
  return paceHttp(target, size, wanted, packetsPerSecond / packetsPerPost);
};

const send = (message: FromLoad): void => void process.send?.(message);

function toResult({ latencies, ...measured }: Measured): Result {
  return { ...measured, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

let load: Load | null = null;
process.on('message', (message: ToLoad) => {
  if (typeof message === 'object') {
    start(message.job).then(
      (started) => {
        load = started;
        send('ready');
      },
      (error: Error) => send({ failed: error.message }),
    );
  } else if (message === 'end') send({ result: toResult((load as Load).end()) });
  else if (message === 'answered') send({ answered: (load as Load).answered() });
  else load?.[message]();
  if (message === 'begin') send('begun');
});
process.on('disconnect', () => process.exit());
