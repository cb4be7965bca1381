/** The interruptions of writes and events in a round, and the table of all rounds, for docs/operations/scaling.md. */
import type { Client } from './listeners.js';
import type { Sent } from './writers.js';

export interface Measured {
  /** From the fault to the first successful answer to a request that began after it. */
  readonly firstMs: number;
  /** The longest time without an acknowledged write. */
  readonly writesMs: number;
  /** The longest time without an event at a client that stayed connected. */
  readonly eventsMs: number;
  /** From the first write after the interruption to the first event of such a client. */
  readonly behindMs: number;
  readonly unavailable: number;
  readonly cut: number;
  readonly acknowledged: number;
}

export interface Window {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly sent: readonly Sent[];
  readonly steady: readonly Client[];
}

export function measure({ fromMs, untilMs, sent, steady }: Window): Measured {
  const within = sent.filter(({ endMs }) => endMs >= fromMs && endMs <= untilMs);
  const acknowledged = within.filter(({ status }) => status === 200);
  const asked = acknowledged.filter(({ startMs }) => startMs > fromMs);
  const writes = longestPause(
    fromMs,
    acknowledged.map(({ endMs }) => endMs),
  );
  const pauses = steady.map(({ received }) =>
    longestPause(
      fromMs,
      received.map(({ atMs }) => atMs).filter((atMs) => atMs >= fromMs && atMs <= untilMs),
    ),
  );
  return {
    firstMs: Math.min(...asked.map(({ endMs }) => endMs)) - fromMs,
    writesMs: writes.ms,
    eventsMs: Math.max(0, ...pauses.map(({ ms }) => ms)),
    behindMs: Math.max(0, ...pauses.map(({ endMs }) => endMs - writes.endMs)),
    unavailable: within.filter(({ status }) => status === 503).length,
    cut: within.filter(({ status }) => status === null).length,
    acknowledged: acknowledged.length,
  };
}

function longestPause(fromMs: number, times: readonly number[]): { ms: number; endMs: number } {
  let longest = { ms: 0, endMs: fromMs };
  let before = fromMs;
  for (const atMs of [...times].sort((a, b) => a - b)) {
    if (atMs - before > longest.ms) longest = { ms: atMs - before, endMs: atMs };
    before = atMs;
  }
  return longest;
}

const COLUMNS = ['rounds', 'first success', 'no write', 'no event', 'event after write', '503', 'cut', 'acknowledged'];
const WIDTHS = COLUMNS.map((title) => Math.max(16, title.length + 2));
const line = (name: string, cells: readonly string[]): string =>
  [name.padEnd(22), ...cells.map((cell, at) => cell.padStart(WIDTHS[at] ?? 16))].join('');

export const TITLES = line('ms: median/longest', COLUMNS);

export function formatRow(name: string, measured: readonly Measured[]): string {
  const spread = (pick: (one: Measured) => number): string => {
    const sorted = measured.map(pick).sort((a, b) => a - b);
    const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
    const last = sorted.at(-1) ?? 0;
    return `${Math.round(middle)}/${Math.round(last)}`;
  };
  const sum = (pick: (one: Measured) => number): string => String(measured.reduce((all, one) => all + pick(one), 0));
  return line(name, [
    String(measured.length),
    spread(({ firstMs }) => firstMs),
    spread(({ writesMs }) => writesMs),
    spread(({ eventsMs }) => eventsMs),
    spread(({ behindMs }) => behindMs),
    sum(({ unavailable }) => unavailable),
    sum(({ cut }) => cut),
    sum(({ acknowledged }) => acknowledged),
  ]);
}
