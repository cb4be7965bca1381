// The process of the receivers of webhooks: counts messages and their latencies by path. `/hang…` never answers, `/slow…` takes
// 50 ms, everything else answers at once.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { percentile } from './stats.js';
import { nowMs } from './workloads.js';

/** What came to paths that begin so, since the last `begin`. */
export interface Received {
  readonly count: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
}

export type ToReceiver = { ask: 'begin' | 'end'; prefix: string };
export type FromReceiver = { port: number } | { received: Received };

const SLOW_MS = 50;
const SENT = /"sentMs":([\d.]+)/;

let latencies = new Map<string, number[]>();
let beginMs = performance.now();

const server = createServer((req, res) => {
  const path = String(req.url);
  let text = '';
  req.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
  });
  req.on('end', () => {
    const known = latencies.get(path) ?? [];
    if (known.length === 0) latencies.set(path, known);
    known.push(nowMs() - Number(SENT.exec(text)?.[1]));
    if (path.startsWith('/hang')) return;
    if (path.startsWith('/slow')) setTimeout(() => res.end(), SLOW_MS);
    else res.end();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies FromReceiver);
});

process.on('message', ({ ask, prefix }: ToReceiver) => {
  if (ask === 'begin') {
    latencies = new Map();
    beginMs = performance.now();
  }
  const all = [...latencies].flatMap(([path, found]) => (path.startsWith(prefix) ? found : []));
  const seconds = (performance.now() - beginMs) / 1_000;
  const received = { count: all.length, seconds, p50: percentile(all, 0.5), p99: percentile(all, 0.99) };
  process.send?.({ received } satisfies FromReceiver);
});
process.on('disconnect', () => process.exit());
