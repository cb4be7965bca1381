/** Speaks MQTT 5 with a broker that does, and MQTT 3.1.1 with another one. */
import type { MqttClient } from 'mqtt';

const OLDER = 4;
const NEWER = 5;
/** CONNACK for an unsupported version: of MQTT 3.1.1, and of MQTT 5. */
const UNSUPPORTED: ReadonlySet<unknown> = new Set([1, 0x84]);

/**
 * Chooses the version of the client's next connection. Some brokers answer an unknown version with CONNACK, others only close the
 * connection: after that the other version is tried.
 */
export function negotiateVersion(client: MqttClient): void {
  let isAnswered = false;
  client.on('packetreceive', () => {
    isAnswered = true;
  });
  client.on('error', (error) => {
    // Nothing is known of a broker that is away.
    isAnswered = true;
    if (UNSUPPORTED.has((error as { code?: unknown }).code)) client.options.protocolVersion = OLDER;
  });
  client.on('close', () => {
    if (!isAnswered) client.options.protocolVersion = client.options.protocolVersion === NEWER ? OLDER : NEWER;
    isAnswered = false;
  });
}
