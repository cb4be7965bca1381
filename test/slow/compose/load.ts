/** Packets over HTTP and MQTT while containers are replaced. HTTP writers never repeat one, so each may be stored once at most. */
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import mqtt, { type MqttClient } from 'mqtt';
import { callApi } from '../../support/api-call.js';
import { AUTH } from '../../support/mqtt-device.js';
import { read } from './read.js';

const WRITERS = 3;
const PAUSE_MS = 5;
const GIVE_UP_MS = 60_000;
const PAUSE_AFTER_FAILURE_MS = 100;
const MQTT_OBJECT = 'load-mqtt';

export interface Installation {
  readonly url: string;
  readonly mqttUrl: string;
  readonly token: string;
}

export interface Load {
  /** Packets acknowledged so far, over HTTP and MQTT. */
  acknowledged(): number;
  /** The failed requests of writers over HTTP, one line each. */
  readonly failures: string[];
  /** Ends the writers, and compares what was acknowledged with what is stored. */
  stop(): Promise<Kept>;
}

export interface Kept {
  readonly acknowledged: number;
  readonly lost: number;
  readonly doubled: number;
}

/** Starts writers, each with an object of its own. */
export async function startLoad({ url, mqttUrl, token }: Installation): Promise<Load> {
  const run = randomUUID();
  const names = Array.from({ length: WRITERS }, (_, at) => `load-${at}`);
  for (const id of [...names, MQTT_OBJECT]) await createOnce(url, token, id);
  const acknowledged = new Set<string>();
  const failures: string[] = [];
  let running = true;
  const writeAll = async (name: string) => {
    for (let at = 0; running; at++) {
      const key = `${run}/${name}/${at}`;
      const failure = await post(`${url}/api/v1/objects/${name}/packets`, token, { key }).then(
        ({ status, text }) => (status === 200 ? null : `status ${status}: ${text}`),
        (error) => error.message,
      );
      if (failure === null) acknowledged.add(key);
      else failures.push(`${new Date().toISOString()} ${failure}`);
      await wait(failure === null ? PAUSE_MS : PAUSE_AFTER_FAILURE_MS);
    }
  };
  const writers = names.map(writeAll);
  // It continues its session: with a clean one, what it sends again without the DUP flag would be new (docs/reference/mqtt.md).
  const session = { clientId: MQTT_OBJECT, clean: false, reconnectPeriod: 300, connectTimeout: 60_000 };
  const device = mqtt.connect(mqttUrl, { ...AUTH, ...session });
  device.on('error', () => undefined);
  const publisher = publishAll(device, `${run}/mqtt`, acknowledged, () => running);
  return {
    failures,
    acknowledged: () => acknowledged.size,
    async stop() {
      running = false;
      await Promise.all([...writers, publisher]);
      await device.endAsync(true);
      return compare({ url, mqttUrl, token }, [...names, MQTT_OBJECT], `${run}/`, acknowledged);
    },
  };
}

/**
 * Sends one request on a new connection: the proxy may close a kept connection at the moment of the next request, which clients cannot
 * distinguish from a fault.
 */
function post(url: string, token: string, body: object): Promise<{ status: number | undefined; text: string }> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false, timeout: GIVE_UP_MS }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      answer.on('error', reject).on('end', () => resolve({ status: answer.statusCode, text }));
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer in time'))).on('error', reject);
    sent.end(JSON.stringify(body));
  });
}

async function createOnce(url: string, token: string, id: string): Promise<void> {
  const { status } = await read(url, token, `objects/${id}`);
  if (status === 200) return;
  const made = await callApi(url, token, 'POST', 'objects', { id, name: id, config: { auth: AUTH } });
  if (made.status !== 200) throw new Error(JSON.stringify(made.body));
}

/** Publishes one packet after the other, each when the last one was acknowledged; the client repeats the others. */
async function publishAll(
  device: MqttClient,
  prefix: string,
  acknowledged: Set<string>,
  isRunning: () => boolean,
): Promise<void> {
  for (let at = 0; isRunning(); at++) {
    const key = `${prefix}/${at}`;
    await device.publishAsync('base/state', JSON.stringify({ key }), { qos: 1 });
    acknowledged.add(key);
    await wait(PAUSE_MS);
  }
}

async function compare(
  { url, token }: Installation,
  names: readonly string[],
  prefix: string,
  acknowledged: ReadonlySet<string>,
): Promise<Kept> {
  const stored: string[] = [];
  for (const name of names) {
    const { body } = await read(url, token, `objects/${name}/packets`);
    for (const { key } of body) if (key?.startsWith(prefix)) stored.push(key);
  }
  const once = new Set(stored);
  return {
    acknowledged: acknowledged.size,
    lost: [...acknowledged].filter((key) => !once.has(key)).length,
    doubled: stored.length - once.size,
  };
}
