/**
 * The tests of a process that serves another tenant while one tenant, or clients without a login, attack: every request of the other is
 * answered, the attacker is refused or waits, and the process stays within its memory. How late the answers are:
 * `npm run bench -- --only neighbours`.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import type { Attack } from '../../scripts/bench/neighbours/asking.js';
import { type Stage, setUpStage, startAttack } from '../../scripts/bench/neighbours/stage.js';
import { workUntil } from '../../scripts/bench/neighbours/tenant.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Process, startProcess } from '../support/process.js';
import { until } from '../support/until.js';

export interface AttackedProcess {
  readonly nodeOptions: string;
  /** The peak of its memory that no attack may exceed. */
  readonly mostMib: number;
  readonly attacks: readonly Attack[];
}

/** What the tenant stores beside each attack. */
const PACKETS = 40;
const REFUSALS = ['429', '503'];
const TIMEOUT_MS = 180_000;

/** Connected subscribers of live events. */
async function readSockets({ opsUrl }: Process): Promise<number> {
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^vigil_sockets(?:\{.*\})? (\S+)/m.exec(metrics)?.[1]);
}

/** The peak memory of the process, as Linux counts it; elsewhere what it uses now. */
async function readPeakMib({ child, opsUrl }: Process): Promise<number> {
  if (process.platform === 'linux') {
    const text = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(text)?.[1]) / 1_024;
  }
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]) / 1_048_576;
}

/** Defines a test for each attack, on one process for all of them. */
export function testAttacks({ nodeOptions, mostMib, attacks }: AttackedProcess): void {
  const uri = testUri();
  let service: Process;
  let stage: Stage;

  beforeAll(async () => {
    const mqttPort = await findFreePort();
    service = await startProcess({
      PORT: String(await findFreePort()),
      OPS_PORT: String(await findFreePort()),
      MQTT_PORT: String(mqttPort),
      MONGODB_URI: uri,
      SECRET: randomBytes(32).toString('hex'),
      ADMIN_PASSWORD: ADMIN.password,
      STOP_DELAY: '0',
      OVERLOAD_DELAY: '1s',
      NODE_OPTIONS: nodeOptions,
    });
    stage = await setUpStage({ url: service.url, mqttUrl: `mqtt://127.0.0.1:${mqttPort}` }, ADMIN);
  }, TIMEOUT_MS);

  afterAll(async () => {
    await stage?.device.endAsync(true);
    const ended = await service?.stop();
    const client = await new MongoClient(uri).connect();
    await client.db().dropDatabase();
    await client.close();
    expect(ended?.code).toBe(0);
  }, TIMEOUT_MS);

  test.each(attacks.map((attack) => ({ name: attack.name, attack })))(
    'serves another tenant during: $name',
    async ({ attack }) => {
      const answers = attack.answers.map(String);
      const running = await startAttack(attack, stage.attacker);
      const isAnswered = () => answers.every((answer) => running.answers.has(answer));
      const { outcomes } = await workUntil(stage, (packets) => packets >= PACKETS && isAnswered());
      const counts = await running.stop();
      process.stderr.write(`\n## ${attack.name}: ${JSON.stringify(counts)}\n`);
      expect([...outcomes]).toEqual([200]);
      const permitted = [...answers, ...REFUSALS];
      expect(Object.keys(counts).filter((answer) => !permitted.includes(answer))).toEqual([]);
      expect(service.child.exitCode).toBeNull();
      expect(await readPeakMib(service)).toBeLessThan(mostMib);
      await until(
        async () => (await readSockets(service)) === 0,
        'the sockets and streams of the attacker to be closed',
      );
    },
    TIMEOUT_MS,
  );
}
