/** PUBLISH of a device, and its acknowledgement with PUBACK or PUBREC (sections 3.3 to 3.5). */
import type { IPublishPacket } from 'mqtt-packet';
import { toApiError, tooLarge } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { cutReason } from '../../packets/reasons.js';
import type { ReportInvalidMessage } from '../invalid-messages.js';
import type { ReceiveDeps } from '../receive.js';
import { TopicError } from '../topics.js';
import { type Acknowledgement, type Connection, type Published, receivePublished } from './connection.js';
import type { OversizedMessage } from './oversized-message.js';
import { ProtocolError, REASON } from './reason-codes.js';
import { noteAcknowledgement } from './sessions.js';
import { isTopicName } from './topic-name.js';

export interface PublishDeps extends ReceiveDeps {
  readonly reportInvalidMessage: ReportInvalidMessage;
  readonly log: { debug(details: object, message: string): void };
}

/** Stores a message, and acknowledges it then. Throws ProtocolError. */
export function handlePublish(deps: PublishDeps, connection: Connection, packet: IPublishPacket): void {
  const { qos, messageId = 0 } = packet;
  // An alias is set also by a message that is refused: its device goes on with it.
  const topic = topicOf(connection, packet);
  const fault = explainTopics(topic, packet);
  if (fault !== null) {
    refuseTopic(deps, connection, { ...packet, topic }, fault);
    return;
  }
  const isRepeated = qos === 2 && isUnreleased(connection, messageId);
  const dup = packet.dup || isRepeated;
  const published: Published = { topic, payload: packet.payload, qos, dup, messageId };
  if (qos === 0) {
    receivePublished(deps, connection, published).then(
      () => connection.peer.limiter.release(),
      (error) => endAfter(deps, connection, error),
    );
    return;
  }
  const acknowledgement: Acknowledgement = { messageId, bytes: null, isLast: false };
  connection.acknowledgements.push(acknowledgement);
  receivePublished(deps, connection, published).then(
    (error) => {
      acknowledgement.bytes = toAcknowledgement(connection, qos, messageId, error);
      sendAcknowledgements(connection);
    },
    (error) => endAfter(deps, connection, error),
  );
}

/**
 * Acknowledges a message that is too large, and reports it: it would fail every time, and block those behind it. A client of MQTT 5
 * was told the limit, so that its connection ends then (section 3.2.2.3.6).
 */
export function refuseOversized(deps: PublishDeps, connection: Connection, message: OversizedMessage): void {
  const { topic, qos, messageId, bytes } = message;
  const { peer } = connection;
  const error = tooLarge(`the message: ${bytes} bytes; at most ${LIMITS.mqttPacketBytes} are permitted`);
  deps.reportInvalidMessage(connection.device.record, topic, error);
  const isLast = peer.version === 5;
  if (messageId !== null) {
    const acknowledgementBytes = toAcknowledgement(connection, qos, messageId, error);
    connection.acknowledgements.push({ messageId, bytes: acknowledgementBytes, isLast });
    sendAcknowledgements(connection);
    return;
  }
  peer.limiter.release();
  if (isLast) peer.end(REASON.packetTooLarge, error.message);
}

/** What is wrong with the topics of a message ([MQTT-3.3.2-2], [MQTT-3.3.2-14]); null for nothing. */
function explainTopics(topic: string, { properties }: IPublishPacket): ProtocolError | null {
  if (topic === '') return new ProtocolError('a message without a topic');
  if (!isTopicName(topic)) return new ProtocolError('a topic with a wildcard', REASON.topicInvalid);
  const { responseTopic } = properties ?? {};
  if (responseTopic === undefined || isTopicName(responseTopic)) return null;
  return new ProtocolError('a response topic with a wildcard', REASON.topicInvalid);
}

/**
 * Acknowledges a message whose topic nobody may publish to, and reports it: a device that waits for the acknowledgement would send it
 * on each connection, and nothing behind it. One with QoS 0 is not sent again. Throws ProtocolError for it.
 */
function refuseTopic(deps: PublishDeps, connection: Connection, packet: IPublishPacket, fault: ProtocolError): void {
  const { topic, qos, messageId = 0 } = packet;
  if (qos === 0) throw fault;
  const error = new TopicError(fault.message);
  deps.reportInvalidMessage(connection.device.record, topic, error);
  if (qos === 2) isUnreleased(connection, messageId);
  const bytes = toAcknowledgement(connection, qos, messageId, error);
  connection.acknowledgements.push({ messageId, bytes, isLast: false });
  sendAcknowledgements(connection);
}

/** The topic, of an alias too (section 3.3.2.3.4). Throws ProtocolError. */
function topicOf(connection: Connection, { topic, properties }: IPublishPacket): string {
  const alias = properties?.topicAlias;
  if (alias === undefined) return topic;
  // [MQTT-3.3.2-8], [MQTT-3.3.2-9]
  if (alias === 0 || alias > LIMITS.mqttTopicAliases) {
    throw new ProtocolError(
      `the topic alias ${alias}; 1 to ${LIMITS.mqttTopicAliases} are permitted`,
      REASON.topicAliasInvalid,
    );
  }
  if (topic === '') {
    const known = connection.aliases?.get(alias);
    if (known === undefined) throw new ProtocolError('a topic alias without a topic');
    return known;
  }
  setAlias(connection, alias, topic);
  return topic;
}

function setAlias(connection: Connection, alias: number, topic: string): void {
  connection.aliases ??= new Map();
  connection.aliases.set(alias, topic);
  let characters = 0;
  for (const one of connection.aliases.values()) characters += one.length;
  if (characters > LIMITS.mqttTopicAliasCharacters) {
    throw new ProtocolError('topic aliases for too long topics', REASON.quotaExceeded);
  }
}

/**
 * Notes a message of QoS 2. Returns whether the device had sent it before and has not released it (section 4.3.3). The count of both
 * kinds of messages that are not complete is limited by Receive Maximum ([MQTT-3.3.4-9]), before MQTT 5 by a limit of the service.
 */
function isUnreleased(connection: Connection, messageId: number): boolean {
  connection.unreleased ??= new Set();
  const { peer, unreleased, acknowledgements } = connection;
  if (unreleased.has(messageId)) return true;
  unreleased.add(messageId);
  const isTold = peer.version === 5;
  const ofQos1 = acknowledgements.filter((one) => !unreleased.has(one.messageId)).length;
  const max = isTold ? LIMITS.mqttStoringPerDevice : LIMITS.mqttUnreleasedMessages;
  if (unreleased.size + (isTold ? ofQos1 : 0) > max) {
    throw new ProtocolError(`more than ${max} messages that are not complete`, REASON.receiveMaximumExceeded);
  }
  return false;
}

const ACCEPTED_BYTES = 2;

/** PUBACK, or PUBREC for QoS 2; with the reason of a message that is not stored if the client speaks MQTT 5. */
function toAcknowledgement(connection: Connection, qos: number, messageId: number, error: unknown): Buffer {
  const { peer } = connection;
  const reasonCode = error === null ? REASON.success : reasonCodeOf(error);
  if (peer.version !== 5 || reasonCode === REASON.success) {
    return Buffer.from([qos === 2 ? 0x50 : 0x40, ACCEPTED_BYTES, messageId >> 8, messageId & 0xff]);
  }
  // [MQTT-4.3.3-4]: a message that PUBREC refuses is complete.
  if (qos === 2) connection.unreleased?.delete(messageId);
  const cmd = qos === 2 ? 'pubrec' : 'puback';
  const properties = peer.limits.wantsReasons ? { reasonString: cutReason(toApiError(error).message) } : undefined;
  // There is room for it, since there was room for the longer CONNACK.
  return peer.encode({ cmd, messageId, reasonCode, ...(properties && { properties }) }) as Buffer;
}

/** Why a message is refused (section 3.4.2.1). */
function reasonCodeOf(error: unknown): number {
  if (error instanceof TopicError) return REASON.topicInvalid;
  const { status } = toApiError(error);
  if (status === 400) return REASON.payloadInvalid;
  if (status === 413) return REASON.quotaExceeded;
  return status === 500 ? REASON.unspecified : REASON.implementationError;
}

// [MQTT-4.6.0-2], [MQTT-4.6.0-3]: acknowledgements have the order of their messages.
function sendAcknowledgements(connection: Connection): void {
  const { acknowledgements, peer, session } = connection;
  for (let [first] = acknowledgements; first?.bytes != null; [first] = acknowledgements) {
    acknowledgements.shift();
    // The acknowledgement cannot be sent any more.
    if (peer.isEnded) return;
    noteAcknowledgement(session, first.messageId);
    peer.write(first.bytes);
    peer.limiter.release();
    if (first.isLast) peer.end(REASON.packetTooLarge, `a packet of more than ${LIMITS.mqttPacketBytes} bytes`);
  }
}

/** A message could not be stored: the device sends it again on its next connection. */
function endAfter({ log }: PublishDeps, connection: Connection, error: unknown): void {
  const { message } = toApiError(error);
  log.debug({ object: connection.device.record.objectId, reason: message }, 'connection failed');
  connection.peer.end(REASON.serverBusy, message);
}
