// Devices over MQTT: of the attacker and of the other tenant.
import { setTimeout as wait } from 'node:timers/promises';
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import type { Attacker, Note } from './asking.js';

export const DEVICE_AUTH = { username: 'device', password: 'a key of the machine' };

export const connectTo = (mqttUrl: string, clientId: string, options: IClientOptions = {}): MqttClient =>
  mqtt.connect(mqttUrl, { ...DEVICE_AUTH, clientId, reconnectPeriod: 10, ...options }).on('error', () => undefined);

/** Publishes one message after the other, each when the last one was acknowledged. */
export function keepPublishing(
  { mqttUrl, device }: Attacker,
  note: Note,
  messages: readonly (readonly [topic: string, payload: string | Buffer])[],
): void {
  const client = connectTo(mqttUrl, device);
  let nth = 0;
  const next = (): void => {
    const [topic, payload] = messages[nth++ % messages.length] as (typeof messages)[number];
    client.publish(topic, payload, { qos: 1 }, (error) => {
      note(error ? 'not acknowledged' : 'acknowledged');
      setImmediate(next);
    });
  };
  client.once('connect', next);
}

/** Tries one password after the other. */
export async function keepGuessing(mqttUrl: string, clientId: string, note: Note): Promise<never> {
  for (;;) {
    const password = `wrong ${Math.random()}`;
    const client = connectTo(mqttUrl, clientId, { password, reconnectPeriod: 0, connectTimeout: 3_000 });
    client.once('error', ({ message }) => note(message));
    await new Promise((resolve) => client.once('close', () => resolve(null)));
    await client.endAsync(true);
    await wait(20);
  }
}
