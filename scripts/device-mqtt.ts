// The MQTT connection of the test device: sends packets and answers commands.
import mqtt from 'mqtt';
import { type Client, failure } from './client.js';

/** The count of packets that fit into a message of 64 KiB. */
export const PACKETS_PER_MESSAGE = 100;

export interface MqttDevice {
  /** Resolves when the packets are acknowledged, which waits while the service is unavailable. */
  send(packets: object[]): Promise<unknown>;
  stop(): Promise<void>;
}

/** Connects as the object with the token of the script's user. Reconnects automatically. */
export async function connectMqtt(address: string, objectId: string, client: Client): Promise<MqttDevice> {
  const device = mqtt.connect(address, { clientId: objectId, username: 'token', password: client.token });
  const refused = new Promise<never>((_, reject) => {
    device.once('error', (error) => reject(failure(`${address}: ${error.message}`)));
  });
  const connected = new Promise<void>((resolve) => device.once('connect', () => resolve()));
  try {
    await Promise.race([connected, refused]);
  } catch (error) {
    device.end(true);
    throw error;
  }
  refused.catch(() => undefined);
  // The next connection uses a renewed token.
  device.on('reconnect', () => {
    device.options.password = client.token;
  });
  device.on('error', (error) => client.say(error.message));
  const done = new Set<string>();
  device.on('message', (_topic, payload) => {
    const { _id, command, params } = JSON.parse(payload.toString());
    // A command that is resent because the confirmation was lost is not executed again.
    if (!done.has(_id)) client.say(`Command ${command} ${JSON.stringify(params)}: done`);
    done.add(_id);
    device.publish(`base/commands/${_id}/result`, JSON.stringify({ status: 'done' }), { qos: 1 });
  });
  await device.subscribeAsync('base/commands/#', { qos: 1 });
  // One listener for all messages, since a replay sends thousands.
  const stopped = new Promise<never>((_, reject) => {
    client.signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
  });
  stopped.catch(() => undefined);
  return {
    send: (packets) =>
      Promise.race([
        device.publishAsync('base/state', JSON.stringify(packets.length === 1 ? packets[0] : packets), { qos: 1 }),
        stopped,
      ]),
    stop: () => device.endAsync(client.signal.aborted).catch(() => undefined),
  };
}
