/** Acknowledgements of a device: of commands with PUBACK, and of messages of QoS 2 with PUBREL (sections 3.4 to 3.7). */
import type { Packet } from 'mqtt-packet';
import type { Connection } from './connection.js';
import { REASON } from './reason-codes.js';

export type OnConfirm = (connection: Connection, messageId: number, reasonCode: number) => void;

export function handlePuback(onConfirm: OnConfirm, connection: Connection, packet: Packet & { cmd: 'puback' }): void {
  onConfirm(connection, packet.messageId ?? 0, packet.reasonCode ?? REASON.success);
}

// Section 4.3.3. Messages of QoS 2 are stored when they arrive, and stored once.
export function handlePubrel({ peer, unreleased }: Connection, { messageId = 0 }: Packet & { cmd: 'pubrel' }): void {
  const isKnown = unreleased?.delete(messageId) === true;
  peer.send({ cmd: 'pubcomp', messageId, reasonCode: isKnown ? REASON.success : REASON.packetIdNotFound });
}

// The service sends no messages of QoS 2: whatever this acknowledges is unknown ([MQTT-4.3.3-6]).
export function handlePubrec({ peer }: Connection, { messageId = 0 }: Packet & { cmd: 'pubrec' }): void {
  peer.send({ cmd: 'pubrel', messageId, reasonCode: REASON.packetIdNotFound });
}
