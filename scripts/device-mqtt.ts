// A device for trials that speaks MQTT: sends packets, each acknowledged when it is stored, and answers commands.
import mqtt from 'mqtt';
import { type Client, failure } from './client.js';

/** As many packets as fit into a message of 64 KiB. */
export const PACKETS_PER_MESSAGE = 100;

export interface MqttDevice {
  /** Resolves when the packets are acknowledged; while the service is away, that is later. */
  send(packets: object[]): Promise<unknown>;
  stop(): Promise<void>;
}

/** Connects as the object, with the token of whoever runs the script; comes back by itself. */
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
  // A token that was renewed is good for the next connection.
  device.on('reconnect', () => {
    device.options.password = client.token;
  });
  device.on('error', (error) => client.say(error.message));
  const done = new Set<string>();
  device.on('message', (_topic, payload) => {
    const { _id, command, params } = JSON.parse(payload.toString());
    // What was sent again because the confirmation was lost is not carried out again.
    if (!done.has(_id)) client.say(`Command ${command} ${JSON.stringify(params)}: done`);
    done.add(_id);
    device.publish(`base/commands/${_id}/result`, JSON.stringify({ status: 'done' }), { qos: 1 });
  });
  await device.subscribeAsync('base/commands/#', { qos: 1 });
  // One for all messages: a replay sends thousands.
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
