// Measures what the attacks of one tenant, or of clients without a login, cost another tenant: the p99 of its requests without and with each.
import { LOGIN } from './data.js';
import type { Attack } from './neighbours/asking.js';
import { ATTACKS } from './neighbours/attacks.js';
import { type Stage, setUpStage, startAttack } from './neighbours/stage.js';
import { type Experience, workUntil } from './neighbours/tenant.js';
import { readPeakMb } from './process.js';
import { findPort, type Place, startServer } from './servers.js';
import { format, percentile } from './stats.js';

export interface NeighboursBench {
  readonly place: Place;
  /** How long the tenant works beside each attack. */
  readonly seconds: number;
  readonly say: (text: string) => void;
}

/** How long the tenant works beside each attack unless the command line says it. */
export const NEIGHBOURS_SECONDS = 3.5;
/** The share of that time without the attack: before it, and after it. */
const ALONE_SHARE = 0.3;
const P99 = 0.99;
const HEAD = [
  '| Attack | GET p99 ms | … beside it | POST p99 ms | … beside it | peak MiB | answers to the attacker |',
  '|---|---:|---:|---:|---:|---:|---|',
];

/** The lines of the results as a Markdown table. */
export async function measureNeighbours(bench: NeighboursBench): Promise<string> {
  const mqttPort = await findPort();
  const server = await startServer('ours', bench.place, { MQTT_PORT: String(mqttPort) });
  const lines = [...HEAD];
  try {
    const stage = await setUpStage({ url: server.url, mqttUrl: `mqtt://127.0.0.1:${mqttPort}` }, LOGIN);
    // The code is not compiled before the first requests.
    await workFor(stage, bench.seconds);
    for (const attack of ATTACKS) {
      const line = await measureAttack(bench, stage, attack, () => readPeakMb(server.processId));
      bench.say(line);
      lines.push(line);
    }
    await stage.device.endAsync(true);
  } finally {
    await server.stop();
  }
  return lines.join('\n');
}

async function measureAttack(
  { seconds }: NeighboursBench,
  stage: Stage,
  attack: Attack,
  readPeak: () => number,
): Promise<string> {
  const before = await workFor(stage, seconds * ALONE_SHARE);
  const running = await startAttack(attack, stage.attacker);
  const beside = await workFor(stage, seconds);
  const counts = await running.stop();
  const after = await workFor(stage, seconds * ALONE_SHARE);
  const faults = [...beside.outcomes].filter((outcome) => outcome !== 200);
  const answers = Object.entries(counts).map(([answer, count]) => `${count.toLocaleString('en-US')} × ${answer}`);
  const cells = [
    attack.name,
    ...(['readMs', 'storeMs'] as const).flatMap((name) => [
      format(percentile([...before[name], ...after[name]], P99)),
      format(percentile(beside[name], P99)),
    ]),
    format(readPeak()),
    [...answers, ...faults.map((fault) => `the tenant: ${fault}`)].join(', '),
  ];
  return `| ${cells.join(' | ')} |`;
}

function workFor(stage: Stage, seconds: number): Promise<Experience> {
  const endMs = performance.now() + seconds * 1_000;
  return workUntil(stage, () => performance.now() > endMs);
}
