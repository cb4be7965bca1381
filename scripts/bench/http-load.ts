// HTTP load: as fast as answers arrive, or at a fixed rate.
import { setTimeout as wait } from 'node:timers/promises';
import { openConnection, type Target, toRequest } from './connection.js';
import type { Size } from './data.js';
import type { MakeWanted } from './workloads.js';

/** The results of a load between `begin` and `end`; latencies in ms. */
export interface Measured {
  readonly seconds: number;
  readonly count: number;
  readonly errors: number;
  readonly latencies: number[];
}

export interface Load {
  go(): void;
  /** The number of answers, or of live events, so far, measured or not. */
  answered(): number;
  begin(): void;
  end(): Measured;
}

const RETRY_MS = 100;
const TICK_MS = 1;
const WAITING = 2_000;

/** Counts answers and latencies during the measurement. */
export function createMeter() {
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  let count = 0;
  let errors = 0;
  let answered = 0;
  const latencies: number[] = [];
  return {
    note(ok: boolean, latencyMs: number): void {
      answered++;
      if (from === Number.POSITIVE_INFINITY || to > 0) return;
      if (!ok) errors++;
      else {
        count++;
        latencies.push(latencyMs);
      }
    },
    answered: () => answered,
    begin(): void {
      from = performance.now();
    },
    end(): Measured {
      to = performance.now();
      return { seconds: (to - from) / 1_000, count, errors, latencies };
    },
  };
}

/** Each connection sends its next request after the answer to the previous one. */
export function loadHttp(target: Target, size: Size, wanted: MakeWanted, connections: number): Load {
  const meter = createMeter();
  let nth = 0;
  const run = async (): Promise<void> => {
    let connection = openConnection(target.url);
    for (;;) {
      const request = toRequest(target, wanted(nth++, size));
      const startMs = performance.now();
      const status = await connection.send(request);
      meter.note(status === 200, performance.now() - startMs);
      if (status !== 0) continue;
      await wait(RETRY_MS);
      connection = openConnection(target.url);
    }
  };
  return {
    go: () => {
      for (let one = 0; one < connections; one++) void run();
    },
    answered: meter.answered,
    begin: meter.begin,
    end: meter.end,
  };
}

/**
 * Sends requests at a fixed rate, independent of the answers. The latency of a request includes its wait for a connection; a request
 * that exceeds the queue is an error.
 */
export function paceHttp(target: Target, size: Size, wanted: MakeWanted, rate: number, connections = 16): Load {
  const meter = createMeter();
  const waiting: { request: string; dueMs: number }[] = [];
  const idle = Array.from({ length: connections }, () => openConnection(target.url));
  const sendNext = async (): Promise<void> => {
    let connection = waiting.length === 0 ? undefined : idle.pop();
    while (connection !== undefined && waiting.length > 0) {
      const { request, dueMs } = waiting.shift() as { request: string; dueMs: number };
      const status = await connection.send(request);
      meter.note(status === 200, performance.now() - dueMs);
      if (status === 0) connection = openConnection(target.url);
    }
    if (connection !== undefined) idle.push(connection);
  };
  const go = (): void => {
    const startMs = performance.now();
    let nth = 0;
    setInterval(() => {
      const nowMs = performance.now();
      for (; nth < ((nowMs - startMs) / 1_000) * rate; nth++) {
        if (waiting.length > WAITING) meter.note(false, 0);
        else waiting.push({ request: toRequest(target, wanted(nth, size)), dueMs: startMs + (nth / rate) * 1_000 });
        void sendNext();
      }
    }, TICK_MS);
  };
  return { go, answered: meter.answered, begin: meter.begin, end: meter.end };
}
