// Formats the results as a Markdown table: the medians of each server's rounds. Pure.
import type { Round } from './measure.js';
import type { ServerName } from './servers.js';
import { format, median } from './stats.js';
import type { Workload } from './workloads.js';

/** The rounds of one workload against one server. */
export interface Measurement {
  readonly workload: string;
  readonly server: ServerName;
  readonly rounds: readonly Round[];
}

type Medians = Record<Exclude<keyof Round, 'peakMb' | 'readsP99'>, number> & Pick<Round, 'peakMb' | 'readsP99'>;

export function mediansOf(rounds: readonly Round[]): Medians {
  const of = (name: keyof Round): number => median(rounds.map((round) => round[name] ?? Number.NaN));
  const given = (name: 'peakMb' | 'readsP99') => (rounds.some((round) => round[name] !== null) ? of(name) : null);
  return {
    perSecond: of('perSecond'),
    p50: of('p50'),
    p99: of('p99'),
    errors: of('errors'),
    serverCpuMs: of('serverCpuMs'),
    mongodCpuMs: of('mongodCpuMs'),
    peakMb: given('peakMb'),
    readsP99: given('readsP99'),
  };
}

const HEAD = [
  '| | Workload | Server | per second | × floor | p50 ms | p99 ms | CPU ms | … of mongod | |',
  '|---|---|---|---:|---:|---:|---:|---:|---:|---|',
];

/** A line for each workload and server; `× floor` is the median ratio of operations per second. */
export function toTable(workloads: readonly Workload[], measurements: readonly Measurement[]): string {
  const lines = workloads.flatMap((workload) => {
    const ofWorkload = measurements.filter((one) => one.workload === workload.id);
    const floor = ofWorkload.find(({ server }) => server === 'floor');
    return ofWorkload.map((one, at) => {
      const title = at === 0 ? `${workload.id} | ${workload.title}` : ' |';
      return `| ${title} | ${one.server} | ${toCells(mediansOf(one.rounds), ratioOf(one.rounds, floor?.rounds ?? []))} |`;
    });
  });
  return [...HEAD, ...lines].join('\n');
}

/** The ratio within each round: both were measured within seconds, so a slow machine affects both. */
function ratioOf(rounds: readonly Round[], floor: readonly Round[]): number {
  return median(rounds.map(({ perSecond }, at) => perSecond / (floor[at]?.perSecond ?? Number.NaN)));
}

function toCells(found: Medians, ratio: number): string {
  const remarks = [
    found.errors > 0 ? `${format(found.errors)} errors` : '',
    found.peakMb === null ? '' : `peak ${format(found.peakMb)} MiB`,
    found.readsP99 === null ? '' : `GET p99 ${format(found.readsP99)} ms`,
  ];
  return [
    format(found.perSecond),
    format(ratio),
    format(found.p50),
    format(found.p99),
    format(found.serverCpuMs),
    format(found.mongodCpuMs),
    remarks.filter(Boolean).join(', '),
  ].join(' | ');
}
