/** The service as a process of its own, an honest tenant, and an attacker beside it. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { MqttClient } from 'mqtt';
import { callApi, logIn } from '../../support/api-call.js';
import { ADMIN } from '../../support/fixture.js';
import { findFreePort } from '../../support/ports.js';
import { type Process, startProcess } from '../../support/process.js';
import { startProgram, waitForOutput } from '../../support/program.js';
import type { Attacker } from './asking.js';
import { connectTo, DEVICE_AUTH } from './devices.js';

const PASSWORD = 'a long enough password';
const MANY_PACKETS = 100_000;
const LARGE_PACKETS = 10_000;
const LARGE_TEXT = 'y'.repeat(3_000);
/** Close to what a check may cost: 900 rules for each of many items, and a pattern over a long text. */
const COSTLY_SCHEMA = {
  properties: {
    items: { items: { allOf: Array.from({ length: 900 }, () => ({ type: 'number', minimum: 0 })) } },
    text: { pattern: '^(a|aa|aaa)*b$' },
  },
};

export interface Stage {
  readonly service: Process;
  readonly attacker: Attacker;
  readonly honestToken: string;
  /** The honest tenant's, connected. */
  readonly device: MqttClient;
}

/** `nodeOptions` are those of the service's process. */
export async function setUp(uri: string, nodeOptions: string): Promise<Stage> {
  const mqttPort = await findFreePort();
  const service = await startProcess({
    ...{ PORT: String(await findFreePort()), OPS_PORT: String(await findFreePort()), MONGODB_URI: uri },
    ...{ SECRET: randomBytes(32).toString('hex'), ADMIN_PASSWORD: ADMIN.password, STOP_DELAY: '0' },
    ...{ MQTT_PORT: String(mqttPort), NODE_OPTIONS: nodeOptions },
  });
  const admin = await logIn(service.url, ADMIN);
  const { body: before } = await callApi(service.url, admin, 'GET', 'events');
  const honest = await addTenant(service, admin, 'honest');
  const { token } = await addTenant(service, admin, 'attacker');
  await create(service, token, 'objects', { id: 'attacker-large', name: 'Large' });
  const data = { children: [{ id: 'on', name: 'on', type: 'argument', dataType: 'boolean' }] };
  const model = await create(service, token, 'models', { name: 'device', data });
  const device = { id: 'attacker-device', name: 'Device', model, config: { auth: DEVICE_AUTH } };
  await create(service, token, 'objects', device);
  await create(service, token, 'stores', { name: 'costly', schema: COSTLY_SCHEMA });
  await fill(service, token);
  const attacker = {
    ...{ url: service.url, mqttUrl: `mqtt://127.0.0.1:${mqttPort}`, token, since: before.position },
    ...{ many: 'attacker-1', large: 'attacker-large', device: 'attacker-device', costlyStore: 'costly' },
    ...{ neighbour: 'honest-1', neighbourId: honest.objectId },
  };
  const honestDevice = connectTo(attacker.mqttUrl, attacker.neighbour, { reconnectPeriod: 0 });
  await new Promise((resolve) => honestDevice.once('connect', resolve));
  return { service, honestToken: honest.token, device: honestDevice, attacker };
}

/** A user who may do everything in a group of their own, with an object. */
async function addTenant(service: Process, admin: string, login: string): Promise<{ token: string; objectId: string }> {
  const role = await create(service, admin, 'roles', { name: login, credentials: ['* /*'] });
  const group = await create(service, admin, 'groups', { name: login });
  await create(service, admin, 'users', { login, password: PASSWORD, name: login, role, group });
  const token = await logIn(service.url, { login, password: PASSWORD });
  const fields = { id: `${login}-1`, name: login, config: { auth: DEVICE_AUTH } };
  return { token, objectId: await create(service, token, 'objects', fields) };
}

async function fill(service: Process, token: string): Promise<void> {
  for (let from = 0; from < LARGE_PACKETS; from += 1_000) {
    await post(service, token, 'attacker-large', (at) => ({ time: from + at, text: LARGE_TEXT }));
  }
  for (let from = 0; from < MANY_PACKETS; from += 5_000) {
    await post(
      service,
      token,
      'attacker-1',
      (at) => ({ time: from + at, speed: (at * 7_919) % 10_007, fuel: at % 100 }),
      5_000,
    );
  }
}

/** Gives the `_id` of what was made. */
async function create({ url }: Process, token: string, store: string, fields: object): Promise<string> {
  const { status, body } = await callApi(url, token, 'POST', store, fields);
  if (status !== 200) throw new Error(`${store}: ${status} ${JSON.stringify(body)}`);
  return body._id;
}

async function post(
  { url }: Process,
  token: string,
  object: string,
  packet: (at: number) => object,
  count = 1_000,
): Promise<void> {
  const packets = Array.from({ length: count }, (_, at) => packet(at));
  const { status } = await callApi(url, token, 'POST', `objects/${object}/packets`, packets);
  if (status !== 200) throw new Error(`packets of ${object}: ${status}`);
}

/** Runs an attack beside the work; gives what both saw. */
export async function attackWhile<T>(nth: number, attacker: Attacker, work: () => Promise<T>): Promise<[T, string]> {
  const args = ['--import', 'tsx', 'test/slow/neighbours/attacker.ts', String(nth), JSON.stringify(attacker)];
  const program = startProgram(args, { PATH: process.env.PATH });
  try {
    await waitForOutput(program, /(begun)/);
    const result = await work();
    program.child.kill('SIGTERM');
    await program.ended;
    return [result, await waitForOutput(program, /answered (.*)/)];
  } finally {
    await program.end('SIGKILL');
  }
}

/** The most memory that the process had so far; as told by Linux, elsewhere what it has now. */
export async function peakMib({ service }: Stage): Promise<number> {
  if (process.platform === 'linux') {
    const text = readFileSync(`/proc/${service.child.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(text)?.[1]) / 1_024;
  }
  const metrics = await (await fetch(`${service.opsUrl}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]) / 1_048_576;
}
