// Measures what something of a running server costs the storing of packets, in turns without it and with it.
import type { Size } from './data.js';
import { measure, type Round, type Timing } from './measure.js';
import type { RunningServer } from './servers.js';
import { format, median } from './stats.js';
import { WORKLOADS } from './workloads.js';

export interface StoringBench {
  readonly server: RunningServer;
  readonly mongodProcessId: number;
  readonly size: Size;
  readonly timing: Timing;
  readonly rounds: number;
  readonly say: (text: string) => void;
}

/** What is compared, in words; with `packets` of an operation, the line says what one of them takes more. */
export interface Compared {
  readonly without: string;
  readonly with: string;
  readonly packets?: number;
}

/** The lines of a table. `having` runs what it is given while the server has what is compared. */
export async function compareStoring(
  bench: StoringBench,
  workloads: readonly string[],
  compared: Compared,
  having: (run: () => Promise<Round>) => Promise<Round>,
): Promise<string[]> {
  const lines: string[] = [];
  for (const workload of WORKLOADS.filter(({ id }) => workloads.includes(id))) {
    const without: Round[] = [];
    const beside: Round[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      without.push(await measure(bench.server, workload, bench));
      beside.push(await having(() => measure(bench.server, workload, bench)));
    }
    lines.push(toLine(`${workload.id} | ${workload.title}, ${compared.without}`, without, ''));
    lines.push(toLine(` | … ${compared.with}`, beside, remarkOf(without, beside, compared.packets)));
  }
  return lines;
}

type Measured = 'perSecond' | 'p50' | 'p99' | 'serverCpuMs';

function remarkOf(without: readonly Round[], beside: readonly Round[], packets: number | undefined): string {
  const ratioOf = (name: Measured): string =>
    format(median(beside.map((round, at) => round[name] / (without[at]?.[name] ?? Number.NaN))));
  const ratios = `× ${ratioOf('perSecond')}, CPU × ${ratioOf('serverCpuMs')}`;
  if (packets === undefined) return ratios;
  const moreMs = median(beside.map((round, at) => round.serverCpuMs - (without[at]?.serverCpuMs ?? Number.NaN)));
  return `${ratios}; ${((moreMs * 1_000) / packets).toFixed(1)} µs more for each packet`;
}

function toLine(name: string, rounds: readonly Round[], remark: string): string {
  const of = (key: Measured): string => format(median(rounds.map((one) => one[key])));
  const remarks = [`CPU ms ${of('serverCpuMs')}`, remark].filter(Boolean).join(', ');
  return `| ${name} | ${of('perSecond')} | ${of('p50')} | ${of('p99')} | ${remarks} |`;
}
