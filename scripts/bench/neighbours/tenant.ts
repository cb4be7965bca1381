// The tenant that works while another one attacks: it reads, stores, receives events, and has a device over MQTT.
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { MqttClient } from 'mqtt';
import { io } from 'socket.io-client';
import { packetIdOf } from './attacks.js';
import type { Stage } from './stage.js';

const OBJECT = 'honest-1';
const CLIENTS = 2;
const PAUSE_MS = 5;
const DEVICE_PAUSE_MS = 50;
const RECEIVE_TIMEOUT_MS = 60_000;

/** What the tenant was answered; latencies in ms. */
export interface Experience {
  /** The status of requests, and in words what else went wrong. */
  readonly outcomes: ReadonlySet<number | string>;
  readonly readMs: readonly number[];
  readonly storeMs: readonly number[];
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

let stored = 0;

/**
 * Two clients that store a packet, read it and pause, in turn; a device; and a subscriber, which has to receive the last packet. `isOver` gets
 * the number of packets that this run stored.
 */
export async function workUntil(stage: Stage, isOver: (packets: number) => boolean): Promise<Experience> {
  const { url, tenantToken: token, device } = stage;
  const outcomes = new Set<number | string>();
  const readMs: number[] = [];
  const storeMs: number[] = [];
  const agent = new Agent({ keepAlive: true });
  const ask = async (latencies: number[], method: string, path: string, body = ''): Promise<string> => {
    const startMs = performance.now();
    const answer = await send({ url: `${url}/api/v1/objects/${path}`, token, agent }, method, body);
    latencies.push(performance.now() - startMs);
    outcomes.add(answer.status === 200 ? 200 : `${method} ${answer.status} ${answer.body}`);
    return answer.body;
  };
  const subscriber = await subscribe(url, token);
  const begun = stored;
  let last = '';
  let isWorking = true;
  const work = async (): Promise<void> => {
    while (!isOver(stored - begun)) {
      const speed = stored++;
      const _id = packetIdOf(speed);
      await ask(storeMs, 'POST', `${OBJECT}/packets`, JSON.stringify({ _id, speed }));
      last = _id;
      await ask(readMs, 'GET', OBJECT);
      const packet = await ask(readMs, 'GET', `${OBJECT}/packets/${_id}`);
      if (!packet.includes(`"speed":${speed}`)) outcomes.add(`not stored: ${packet}`);
      await wait(PAUSE_MS);
    }
  };
  const publishing = publishWhile(device, () => isWorking, outcomes);
  await Promise.all(Array.from({ length: CLIENTS }, work));
  isWorking = false;
  await publishing;
  if (!(await subscriber.receives(last))) outcomes.add('the subscriber did not receive the last packet');
  subscriber.close();
  agent.destroy();
  return { outcomes, readMs, storeMs };
}

async function subscribe(url: string, token: string) {
  const extraHeaders = { authorization: `Bearer ${token}` };
  const socket = io(url, { transports: ['websocket'], extraHeaders, reconnection: false, forceNew: true });
  const received = new Set<string>();
  const waiting = new Map<string, () => void>();
  socket.on('object-packet', ({ _id }: { _id: string }) => {
    received.add(_id);
    waiting.get(_id)?.();
  });
  await once(socket as unknown as NodeJS.EventEmitter, 'connect');
  return {
    async receives(id: string): Promise<boolean> {
      if (!received.has(id)) {
        const arrival = new Promise<void>((resolve) => waiting.set(id, resolve));
        await Promise.race([arrival, wait(RECEIVE_TIMEOUT_MS, undefined, { ref: false })]);
      }
      return received.has(id);
    },
    close: () => void socket.disconnect(),
  };
}

/** Uses the same connection during all attacks: none may end it. */
async function publishWhile(device: MqttClient, isWorking: () => boolean, outcomes: Set<number | string>) {
  const onClose = (): void => void outcomes.add('the device was disconnected');
  device.once('close', onClose);
  while (isWorking() && device.connected) {
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
): Promise<Answer> {
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
