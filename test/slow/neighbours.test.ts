/**
 * One tenant, or clients without a login, attack while another tenant works: every request of the other is answered, the attacker is
 * refused or waits, and the process stays within its memory. How late the answers are: `npm run bench -- --only neighbours`.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { ATTACKS } from '../../scripts/bench/neighbours/attacks.js';
import { type Stage, setUpStage, startAttack } from '../../scripts/bench/neighbours/stage.js';
import { workUntil } from '../../scripts/bench/neighbours/tenant.js';
import { ADMIN, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { type Process, startProcess } from '../support/process.js';

/** What the tenant stores beside each attack. */
const PACKETS = 40;
const REFUSALS = ['429', '503'];
const TIMEOUT_MS = 180_000;

const all = ATTACKS.map((attack) => ({ name: attack.name, attack }));

/** The peak memory of the process, as Linux counts it; elsewhere what it uses now. */
async function readPeakMib({ child, opsUrl }: Process): Promise<number> {
  if (process.platform === 'linux') {
    const text = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(text)?.[1]) / 1_024;
  }
  const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]) / 1_048_576;
}

describe.each([
  { how: 'as it is started', nodeOptions: '', mostMib: 512, attacks: all },
  {
    how: 'with a heap of 512 MiB',
    nodeOptions: '--max-old-space-size=512',
    mostMib: 1_024,
    attacks: all.filter(({ attack }) => attack.isHeavy),
  },
])('a process $how', ({ nodeOptions, mostMib, attacks }) => {
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

  test.each(attacks)(
    'serves another tenant during: $name',
    async ({ attack }) => {
      const answers = attack.answers.map(String);
      const running = await startAttack(attack, stage.attacker);
      const isAnswered = () => answers.every((answer) => running.answers.has(answer));
      const { outcomes } = await workUntil(stage, (packets) => packets >= PACKETS && isAnswered());
      const counts = await running.stop();
      expect([...outcomes]).toEqual([200]);
      const permitted = [...answers, ...REFUSALS];
      expect(Object.keys(counts).filter((answer) => !permitted.includes(answer))).toEqual([]);
      expect(service.child.exitCode).toBeNull();
      expect(await readPeakMib(service)).toBeLessThan(mostMib);
    },
    TIMEOUT_MS,
  );
});
