/** MQTT devices that number their messages; their clients send unacknowledged messages again by themselves. */
import mqtt, { type MqttClient } from 'mqtt';
import { AUTH } from '../../support/mqtt-device.js';
import { until } from '../../support/until.js';
import type { Sent } from './writers.js';

const PACE_MS = 40;
/** A device with little memory stops publishing at this number. */
const UNACKNOWLEDGED = 50;

type Message = { -readonly [Key in keyof Sent]: Sent[Key] };

export interface Devices {
  /** All messages, in order; the status is 200 after the acknowledgement and null before it. */
  readonly sent: readonly Sent[];
  acknowledgedSince(fromMs: number): number;
  resume(): void;
  /** Stops publishing; returns when no message waits for its acknowledgement. */
  pause(): Promise<void>;
  stop(): Promise<void>;
}

/** Connects one device for each object; the pace of twenty is 500 messages a second. */
export async function startDevices(url: string, objects: readonly string[]): Promise<Devices> {
  const sent: Message[] = [];
  const open = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const clients = objects.map((clientId) => {
    const client = mqtt.connect(url, { ...AUTH, clientId });
    client.on('error', () => undefined);
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
    // Two packets: the packet of presence repeats the values of the last one.
    client.publish('base/state', JSON.stringify([{ key }, { last: key }]), { qos: 1 }, (error) => {
      open.set(object, (open.get(object) ?? 0) - 1);
      if (error) return;
      message.status = 200;
      message.endMs = performance.now();
    });
  };
  const isQuiet = () => [...open.values()].every((count) => count === 0);
  await until(() => clients.every(({ client }) => client.connected), 'every device to be connected');
  return {
    sent,
    acknowledgedSince: (fromMs) => sent.filter(({ status, startMs }) => status === 200 && startMs > fromMs).length,
    resume() {
      timer = setInterval(() => clients.forEach(publish), PACE_MS);
    },
    async pause() {
      clearInterval(timer);
      await until(isQuiet, 'every message to be acknowledged');
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(clients.map(({ client }) => client.endAsync(true)));
    },
  };
}
