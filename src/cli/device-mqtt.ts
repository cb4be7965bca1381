/** The connection of `vigil device --mqtt`: sends packets, and answers commands. */
import mqtt from 'mqtt';
import { PlainError } from '../program.js';
import type { Output } from './output.js';

/** The count of packets that fit into a message of 64 KiB. */
export const PACKETS_PER_MESSAGE = 100;

export interface MqttOptions {
  readonly address: string;
  readonly objectId: string;
  readonly token: string;
  readonly output: Output;
  readonly signal: AbortSignal;
}

export interface MqttDevice {
  /** Resolves when the packets are acknowledged, which waits while the service is unavailable. */
  send(packets: readonly object[]): Promise<{ refused: []; incomplete: [] }>;
  stop(): Promise<void>;
}

/** Connects as the object, with a token. Reconnects automatically. */
export async function connectMqtt({ address, objectId, token, output, signal }: MqttOptions): Promise<MqttDevice> {
  const device = mqtt.connect(address, { clientId: objectId, username: 'token', password: token });
  const refused = new Promise<never>((_, reject) => {
    device.once('error', (error) => reject(new PlainError(`${address}: ${error.message}`)));
  });
  // One listener for all messages, since a replay sends thousands.
  const stopped = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
  });
  stopped.catch(() => undefined);
  try {
    await Promise.race([new Promise<void>((resolve) => device.once('connect', () => resolve())), refused, stopped]);
  } catch (error) {
    device.end(true);
    throw error;
  }
  refused.catch(() => undefined);
  device.on('error', (error) => output.say(error.message));
  const done = new Set<string>();
  device.on('message', (_topic, payload) => {
    const { _id, command, params } = JSON.parse(payload.toString());
    // A command that is resent because the confirmation was lost is not executed again.
    if (!done.has(_id)) output.say(`Command ${command} ${JSON.stringify(params)}: done`);
    done.add(_id);
    device.publish(`base/commands/${_id}/result`, JSON.stringify({ status: 'done' }), { qos: 1 });
  });
  await device.subscribeAsync('base/commands/#', { qos: 1 });
  return {
    async send(packets) {
      const payload = JSON.stringify(packets.length === 1 ? packets[0] : packets);
      await Promise.race([device.publishAsync('base/state', payload, { qos: 1 }), stopped]);
      // A broker acknowledges a message whatever becomes of its packets.
      return { refused: [], incomplete: [] };
    },
    stop: () => device.endAsync(signal.aborted).catch(() => undefined),
  };
}
