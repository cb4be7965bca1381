/** The honest tenant at work: reads, stores, listens, and has a device over MQTT; notes how each went. */
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { MqttClient } from 'mqtt';
import { openListener } from '../../support/fixture.js';
import { until } from '../../support/until.js';
import { packetIdOf } from './attacks.js';
import type { Stage } from './stage.js';

const OBJECT = 'honest-1';
const PAUSE_MS = 5;
const DEVICE_PAUSE_MS = 50;
const RECEIVED_MS = 10_000;

/** What the honest tenant's requests were answered, and how late 99 of a hundred were at most, ms. */
export interface Experience {
  /** Of HTTP, and what else went wrong in words. */
  readonly outcomes: ReadonlySet<number | string>;
  readonly readP99Ms: number;
  readonly storeP99Ms: number;
}

type Outcome = { status: number; body: string };

let stored = 0;

/** Two clients who store and read in turn, with short pauses; a device; and one who listens to all that. */
export async function workFor({ service, honestToken, device }: Stage, durationMs: number): Promise<Experience> {
  const outcomes = new Set<number | string>();
  const [readMs, storeMs]: number[][] = [[], []] as number[][];
  const agent = new Agent({ keepAlive: true });
  const ask = async (latencies: number[], method: string, path: string, body = ''): Promise<string> => {
    const startMs = performance.now();
    const given = { url: `${service.url}/api/v1/objects/${path}`, token: honestToken, agent };
    const answer = await send(given, method, body);
    latencies.push(performance.now() - startMs);
    outcomes.add(answer.status === 200 ? 200 : `${method} ${answer.status} ${answer.body}`);
    return answer.body;
  };
  const listener = await openListener(service.url, honestToken);
  const untilMs = performance.now() + durationMs;
  let last = '';
  const work = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const _id = packetIdOf(stored++);
      const speed = stored;
      await ask(storeMs as number[], 'POST', `${OBJECT}/packets`, JSON.stringify({ _id, speed }));
      last = _id;
      await ask(readMs as number[], 'GET', OBJECT);
      const packet = await ask(readMs as number[], 'GET', `${OBJECT}/packets/${_id}`);
      if (!packet.includes(`"speed":${speed}`)) outcomes.add(`not stored: ${packet}`);
      await wait(PAUSE_MS);
    }
  };
  await Promise.all([work(), work(), useDevice(device, untilMs, outcomes)]);
  const hasReceived = () => listener.received().some(({ payload }) => payload._id === last);
  await until(hasReceived, 'the last packet is received', RECEIVED_MS).catch(({ message }) => outcomes.add(message));
  listener.close();
  agent.destroy();
  return { outcomes, readP99Ms: p99Of(readMs as number[]), storeP99Ms: p99Of(storeMs as number[]) };
}

/** The same connection for all attacks: nothing may end it. */
async function useDevice(device: MqttClient, untilMs: number, outcomes: Set<number | string>): Promise<void> {
  const onClose = (): void => void outcomes.add('the device was disconnected');
  device.once('close', onClose);
  while (performance.now() < untilMs && device.connected) {
    await device
      .publishAsync('base/state', `{"rpm":${stored}}`, { qos: 1 })
      .catch(({ message }) => outcomes.add(message));
    await wait(DEVICE_PAUSE_MS);
  }
  device.off('close', onClose);
}

function send(
  { url, token, agent }: { url: string; token: string; agent: Agent },
  method: string,
  body: string,
): Promise<Outcome> {
  return new Promise((resolve) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const asked = request(url, { method, headers, agent }, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      res.once('end', () => resolve({ status: res.statusCode ?? 0, body: text }));
    });
    asked.once('error', ({ message }) => resolve({ status: 0, body: message })).end(body);
  });
}

function p99Of(latenciesMs: number[]): number {
  latenciesMs.sort((a, b) => a - b);
  return latenciesMs[Math.floor(latenciesMs.length * 0.99)] as number;
}
