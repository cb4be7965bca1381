/** SUBSCRIBE and UNSUBSCRIBE (sections 3.8 to 3.11). */
import type { ISubscribePacket, IUnsubscribePacket } from 'mqtt-packet';
import { type Connection, grant } from './connection.js';
import { FIRST_FAILURE, ProtocolError, REASON } from './reason-codes.js';
import { isSharedFilter, isTopicFilter } from './topic-name.js';

/** Answers with the granted QoS of each filter, or why it is refused. Throws ProtocolError. */
export function handleSubscribe(
  onSubscribe: (connection: Connection) => void,
  connection: Connection,
  { messageId = 0, subscriptions, properties }: ISubscribePacket,
): void {
  // [MQTT-3.8.3-2]
  if (subscriptions.length === 0) throw new ProtocolError('SUBSCRIBE without filters');
  const { peer } = connection;
  peer.limiter.charge(subscriptions.length - 1);
  const hasIdentifier = properties?.subscriptionIdentifier !== undefined;
  const codes = subscriptions.map((one) => {
    // CONNACK has said so (sections 3.2.2.3.11 to 3.2.2.3.13).
    if (isSharedFilter(one.topic)) return REASON.sharedNotSupported;
    if (hasIdentifier) return REASON.subscriptionIdsNotSupported;
    return isTopicFilter(one.topic) ? grant(connection, one) : REASON.filterInvalid;
  });
  // MQTT 3.1.1 has one code for a failure ([MQTT-3.9.3-2] of MQTT 3.1.1).
  const granted = codes.map((code) => (code >= FIRST_FAILURE && peer.version !== 5 ? FIRST_FAILURE : code));
  peer.send({ cmd: 'suback', messageId, granted });
  if (connection.filters.size > 0) onSubscribe(connection);
}

/** Throws ProtocolError. */
export function handleUnsubscribe(connection: Connection, packet: IUnsubscribePacket): void {
  const { messageId = 0, unsubscriptions } = packet;
  // [MQTT-3.10.3-2]
  if (unsubscriptions.length === 0) throw new ProtocolError('UNSUBSCRIBE without filters');
  connection.peer.limiter.charge(unsubscriptions.length - 1);
  const granted = unsubscriptions.map((filter) => {
    if (!isTopicFilter(filter)) return REASON.filterInvalid;
    return connection.filters.delete(filter) ? REASON.success : REASON.noSubscription;
  });
  connection.peer.send({ cmd: 'unsuback', messageId, granted });
}
