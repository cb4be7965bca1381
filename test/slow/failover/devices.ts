/** Devices that speak MQTT: each counts its messages; what was not acknowledged its client sends again by itself. */
import mqtt, { type MqttClient } from 'mqtt';
import { AUTH } from '../../support/mqtt-device.js';
import { until } from '../../support/until.js';
import type { Sent } from './writers.js';

const PACE_MS = 40;
// As a device with little memory: what it cannot get rid of it does not go on collecting.
const UNACKNOWLEDGED = 50;
const DRAIN_MS = 90_000;

type Message = { -readonly [Key in keyof Sent]: Sent[Key] };

export interface Devices {
  /** Everything that was handed to the clients, in order; of status 200 when it was acknowledged, null until then. */
  readonly sent: readonly Sent[];
  acknowledgedSince(fromMs: number): number;
  /** How many messages went out once more. */
  sentAgain(): number;
  resume(): void;
  /** Returns when everything was acknowledged, or given up by the client. */
  pause(): Promise<void>;
  stop(): Promise<void>;
}

/** Connects one device for each object; the pace of twenty is 500 messages a second. */
export async function startDevices(url: string, objects: readonly string[]): Promise<Devices> {
  const sent: Message[] = [];
  const open = new Map<string, number>();
  const wentOut = new Set<string>();
  let [again, timer] = [0, undefined as NodeJS.Timeout | undefined];
  const clients = objects.map((clientId) => {
    const client = mqtt.connect(url, { ...AUTH, clientId });
    client.on('error', () => undefined);
    client.on('packetsend', (packet) => {
      if (packet.cmd !== 'publish') return;
      const text = String(packet.payload);
      if (wentOut.has(text)) again++;
      wentOut.add(text);
    });
    return { client, object: clientId, count: 0 };
  });
  const publish = (device: { client: MqttClient; object: string; count: number }): void => {
    const { client, object } = device;
    const under = open.get(object) ?? 0;
    if (under >= UNACKNOWLEDGED) return;
    open.set(object, under + 1);
    const key = `${object}/${++device.count}`;
    const startMs = performance.now();
    const message: Message = { object, kind: 'packet', key, status: null, retryAfter: 0, startMs, endMs: startMs };
    sent.push(message);
    // Two packets: what the last one holds, a packet that tells whether the device is there holds as well.
    client.publish('base/state', JSON.stringify([{ key }, { last: key }]), { qos: 1 }, (error) => {
      open.set(object, (open.get(object) ?? 0) - 1);
      if (error) return;
      message.status = 200;
      message.endMs = performance.now();
    });
  };
  const isQuiet = () => [...open.values()].every((count) => count === 0);
  await until(() => clients.every(({ client }) => client.connected), 'every device to be connected', DRAIN_MS);
  return {
    sent,
    acknowledgedSince: (fromMs) => sent.filter(({ status, startMs }) => status === 200 && startMs > fromMs).length,
    sentAgain: () => again,
    resume() {
      timer = setInterval(() => clients.forEach(publish), PACE_MS);
    },
    async pause() {
      clearInterval(timer);
      await until(isQuiet, 'everything to be acknowledged', DRAIN_MS, 50);
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(clients.map(({ client }) => client.endAsync(true)));
    },
  };
}
