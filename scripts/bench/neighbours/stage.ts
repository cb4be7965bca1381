// Two tenants of a running service: one that works, and one that attacks from a process of its own.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { MqttClient } from 'mqtt';
import type { Attack, Attacker } from './asking.js';
import type { FromAttacker } from './attacker.js';
import { connectTo, DEVICE_AUTH } from './devices.js';

const PROGRAM = 'dist/scripts/bench/neighbours/attacker.js';
const PASSWORD = 'a long enough password';
const MANY_PACKETS = 100_000;
const MANY_PER_REQUEST = 5_000;
const LARGE_PACKETS = 10_000;
const LARGE_PER_REQUEST = 1_000;
const LARGE_TEXT = 'y'.repeat(3_000);
/** Close to the maximal cost of a check: 900 rules for each of many items, and a pattern for a long text. */
const COSTLY_SCHEMA = {
  properties: {
    items: { items: { allOf: Array.from({ length: 900 }, () => ({ type: 'number', minimum: 0 })) } },
    text: { pattern: '^(a|aa|aaa)*b$' },
  },
};

export interface Address {
  readonly url: string;
  readonly mqttUrl: string;
}

export interface Stage extends Address {
  readonly attacker: Attacker;
  readonly tenantToken: string;
  /** The device of the tenant that works, connected. */
  readonly device: MqttClient;
}

/** Creates both tenants and the data of the attacker; `login` is an administrator's. */
export async function setUpStage(address: Address, login: object): Promise<Stage> {
  const { url, mqttUrl } = address;
  const admin = await logIn(url, login);
  const { position } = await call<{ position: string }>(url, admin, 'GET', 'events');
  const tenant = await addTenant(url, admin, 'honest');
  const { token } = await addTenant(url, admin, 'attacker');
  await create(url, token, 'objects', { id: 'attacker-large', name: 'Large' });
  const data = { children: [{ id: 'on', name: 'on', type: 'argument', dataType: 'boolean' }] };
  const model = await create(url, token, 'models', { name: 'device', data });
  await create(url, token, 'objects', { id: 'attacker-device', name: 'Device', model, config: { auth: DEVICE_AUTH } });
  await create(url, token, 'stores', { name: 'costly', schema: COSTLY_SCHEMA });
  await fill(url, token);
  const attacker = {
    url,
    mqttUrl,
    token,
    since: position,
    many: 'attacker-1',
    large: 'attacker-large',
    device: 'attacker-device',
    costlyStore: 'costly',
    neighbour: 'honest-1',
    neighbourId: tenant.objectId,
  };
  const device = connectTo(mqttUrl, attacker.neighbour, { reconnectPeriod: 0 });
  await once(device as unknown as NodeJS.EventEmitter, 'connect');
  return { url, mqttUrl, tenantToken: tenant.token, device, attacker };
}

/** A user who may do everything in a group of their own, with an object. */
export async function addTenant(
  url: string,
  admin: string,
  login: string,
): Promise<{ token: string; objectId: string }> {
  const role = await create(url, admin, 'roles', { name: login, credentials: ['* /*'] });
  const group = await create(url, admin, 'groups', { name: login });
  await create(url, admin, 'users', { login, password: PASSWORD, name: login, role, group });
  const token = await logIn(url, { login, password: PASSWORD });
  const fields = { id: `${login}-1`, name: login, config: { auth: DEVICE_AUTH } };
  return { token, objectId: await create(url, token, 'objects', fields) };
}

async function fill(url: string, token: string): Promise<void> {
  const post = async (object: string, count: number, packet: (at: number) => object): Promise<void> => {
    const packets = Array.from({ length: count }, (_, at) => packet(at));
    await call(url, token, 'POST', `objects/${object}/packets`, packets);
  };
  for (let from = 0; from < LARGE_PACKETS; from += LARGE_PER_REQUEST) {
    await post('attacker-large', LARGE_PER_REQUEST, (at) => ({ time: from + at, text: LARGE_TEXT }));
  }
  for (let from = 0; from < MANY_PACKETS; from += MANY_PER_REQUEST) {
    await post('attacker-1', MANY_PER_REQUEST, (at) => ({
      time: from + at,
      speed: (at * 7_919) % 10_007,
      fuel: at % 100,
    }));
  }
}

export const logIn = async (url: string, login: object): Promise<string> =>
  (await call<{ token: string }>(url, null, 'POST', 'auth/token', login)).token;

/** Returns the `_id` of the new entity. */
export const create = async (url: string, token: string, store: string, fields: object): Promise<string> =>
  (await call<{ _id: string }>(url, token, 'POST', store, fields))._id;

export async function call<T>(
  url: string,
  token: string | null,
  method: string,
  path: string,
  body?: object,
): Promise<T> {
  const answer = await fetch(`${url}/api/v1/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token !== null && { Authorization: `Bearer ${token}` }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

export interface RunningAttack {
  /** The kinds of answers so far. */
  readonly answers: ReadonlySet<string>;
  /** Ends the attacker; resolves with the number of each kind of answer. */
  stop(): Promise<Readonly<Record<string, number>>>;
}

/** Starts an attack; resolves when its process runs. */
export async function startAttack({ name }: Attack, attacker: Attacker): Promise<RunningAttack> {
  const child: ChildProcess = fork(resolve(PROGRAM), [name, JSON.stringify(attacker)], { execArgv: [] });
  const answers = new Set<string>();
  let counts: Readonly<Record<string, number>> = {};
  child.on('message', (message: FromAttacker) => {
    if ('first' in message) answers.add(message.first);
    else counts = message.counts;
  });
  await once(child, 'spawn');
  return {
    answers,
    async stop() {
      const exited = once(child, 'exit');
      if (child.connected) child.send('end');
      await exited;
      return counts;
    },
  };
}
