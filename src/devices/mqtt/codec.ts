/** Converts packets from and to bytes, for all versions, with mqtt-packet. What its parser accepts wrongly is checked before. */
import { generate, type IPublishPacket, type Packet, type Parser, parser } from 'mqtt-packet';
import { LIMITS } from '../../core/limits.js';
import { checkProperties, type PropertyOwner } from './properties.js';
import { malformed, ProtocolError, REASON } from './reason-codes.js';

/** 3 is MQTT 3.1, 4 is MQTT 3.1.1. */
export type Version = 3 | 4 | 5;

/** A packet as it arrived. */
export interface RawPacket {
  readonly bytes: Buffer;
  /** Where its variable header begins, behind the fixed header. */
  readonly bodyAt: number;
}

/** The parsers keep nothing between packets, since they get whole ones: one for each version serves all connections. */
const parsers = new Map<Version, (bytes: Buffer) => Packet>();

/** Throws ProtocolError. */
export function decode(raw: RawPacket, version: Version): Packet {
  const type = (raw.bytes[0] as number) >> 4;
  const message = type === PUBLISH ? decodePublish(raw, version) : null;
  if (message !== null) return checkedId(message, version);
  if (type === SUBSCRIBE || type === UNSUBSCRIBE) checkFilters(raw, type, version);
  else if (version === 5) checkPacket(raw);
  let parse = parsers.get(version);
  if (parse === undefined) {
    parse = createParser({ protocolVersion: version });
    parsers.set(version, parse);
  }
  try {
    return checkedId(parse(raw.bytes), version);
  } catch (error) {
    // It may have stopped in the middle of a packet.
    parsers.delete(version);
    throw error instanceof ProtocolError ? error : malformed((error as Error).message);
  }
}

/** The level of a CONNECT without its highest bit, which marks bridges; null if it is no CONNECT at all. */
export function levelOf({ bytes, bodyAt }: RawPacket): number | null {
  const nameEnd = bodyAt + 2 + (bytes.length < bodyAt + 2 ? 0 : bytes.readUInt16BE(bodyAt));
  const name = bytes.toString('latin1', bodyAt + 2, nameEnd);
  const level = bytes[nameEnd];
  if (level === undefined || (name !== 'MQTT' && name !== 'MQIsdp')) return null;
  return level & 0x7f;
}

/** A CONNECT changes the settings of its parser, so that it has one of its own. */
export function decodeConnect(raw: RawPacket): Packet & { cmd: 'connect' } {
  if (levelOf(raw) === 5) checkConnect(raw);
  try {
    return createParser({})(raw.bytes) as Packet & { cmd: 'connect' };
  } catch (error) {
    throw error instanceof ProtocolError ? error : malformed((error as Error).message);
  }
}

export const encode = (packet: Packet, version: Version): Buffer => generate(packet, { protocolVersion: version });

function createParser(settings: object): (bytes: Buffer) => Packet {
  const reader: Parser = parser(settings);
  let read: Packet | null = null;
  let failed: Error | null = null;
  reader.on('packet', (packet) => {
    read = packet;
  });
  reader.on('error', (error) => {
    failed ??= error;
  });
  return (bytes) => {
    read = null;
    failed = null;
    reader.parse(bytes);
    if (failed !== null) throw failed;
    if (read === null) throw malformed('a packet that is cut off');
    return read;
  };
}

// The parser returns -1 for an identifier that is cut off. [MQTT-2.2.1-3], [MQTT-2.2.1-4]: it is not 0.
function checkedId(packet: Packet, version: Version): Packet {
  const { messageId } = packet;
  if (messageId !== undefined && messageId < 0) throw malformed('an identifier that is cut off');
  if (messageId === 0 && version === 5) throw new ProtocolError('the identifier 0');
  return packet;
}

const PUBLISH = 3;

/** A message without properties, as almost all are: the parser takes several times as long. Null for one that has some. Throws ProtocolError. */
function decodePublish({ bytes, bodyAt }: RawPacket, version: Version): IPublishPacket | null {
  const first = bytes[0] as number;
  const qos = (first >> 1) & 3;
  // [MQTT-3.3.1-4]
  if (qos === 3) throw malformed('a message with QoS 3');
  const topicEnd = skipText(bytes, bodyAt);
  const identifierEnd = topicEnd + (qos === 0 ? 0 : 2);
  if (identifierEnd > bytes.length) throw malformed('an identifier that is cut off');
  if (version === 5 && bytes[identifierEnd] !== 0) return null;
  const message: IPublishPacket = {
    cmd: 'publish',
    qos: qos as 0 | 1 | 2,
    dup: (first & 8) !== 0,
    retain: (first & 1) !== 0,
    topic: bytes.toString('utf8', bodyAt + 2, topicEnd),
    payload: bytes.subarray(version === 5 ? identifierEnd + 1 : identifierEnd),
  };
  if (qos > 0) message.messageId = bytes.readUInt16BE(topicEnd);
  return message;
}

const SUBSCRIBE = 8;
const UNSUBSCRIBE = 10;
const PINGREQ = 12;

/** Counts the filters of a packet: the parser would make an object of each, of which a packet has room for 16,000. */
function checkFilters({ bytes, bodyAt }: RawPacket, type: number, version: Version): void {
  const identifierEnd = bodyAt + 2;
  const isSubscribe = type === SUBSCRIBE;
  let at = identifierEnd;
  if (version === 5) at = checkProperties(bytes, identifierEnd, isSubscribe ? 'subscribe' : 'unsubscribe');
  for (let count = 0; at < bytes.length; count++) {
    if (count === LIMITS.mqttFiltersPerPacket) {
      throw new ProtocolError(`more than ${LIMITS.mqttFiltersPerPacket} filters in one packet`, REASON.quotaExceeded);
    }
    at = skipText(bytes, at) + (isSubscribe ? 1 : 0);
  }
  if (at > bytes.length) throw malformed('a filter that is cut off');
}

const TYPES: Readonly<Record<number, PropertyOwner>> = {
  3: 'publish',
  4: 'ack',
  5: 'ack',
  6: 'ack',
  7: 'ack',
  14: 'disconnect',
  15: 'auth',
};

/** Checks the lengths and the properties of a packet of MQTT 5 that is neither a CONNECT nor has filters. */
function checkPacket({ bytes, bodyAt }: RawPacket): void {
  const first = bytes[0] as number;
  // Section 3.12: it has no variable header, and no payload.
  if (first >> 4 === PINGREQ && bytes.length > bodyAt) throw malformed('PINGREQ with a body');
  const owner = TYPES[first >> 4];
  if (owner === undefined) return;
  if (owner === 'publish') {
    const topicEnd = skipText(bytes, bodyAt);
    checkProperties(bytes, topicEnd + (((first >> 1) & 3) === 0 ? 0 : 2), owner);
  } else {
    // Sections 3.4.2.1, 3.14.2.1 and 3.15.2.1: without them, the reason code is 0 and there are no properties.
    const propertiesAt = bodyAt + (owner === 'ack' ? 3 : 1);
    if (bytes.length <= propertiesAt) return;
    if (checkProperties(bytes, propertiesAt, owner) !== bytes.length) throw malformed('bytes behind the properties');
  }
}

const NAME_BYTES = 6;
const FLAGS_AT = NAME_BYTES + 1;
const CONNECT_PROPERTIES_AT = NAME_BYTES + 4;
const WILL_FLAG = 0x04;
const USER_NAME_FLAG = 0x80;
const PASSWORD_FLAG = 0x40;
const WILL_QOS = 0x18;

function checkConnect({ bytes, bodyAt }: RawPacket): void {
  if (
    bytes.length <= bodyAt + CONNECT_PROPERTIES_AT ||
    bytes.toString('latin1', bodyAt + 2, bodyAt + NAME_BYTES) !== 'MQTT'
  ) {
    throw malformed('a CONNECT that is cut off');
  }
  const flags = bytes[bodyAt + FLAGS_AT] as number;
  // [MQTT-3.1.2-12]: the QoS of a will is not 3.
  if ((flags & WILL_QOS) === WILL_QOS) throw malformed('a will with QoS 3');
  let end = skipText(bytes, checkProperties(bytes, bodyAt + CONNECT_PROPERTIES_AT, 'connect'));
  if ((flags & WILL_FLAG) !== 0) end = skipText(bytes, skipText(bytes, checkProperties(bytes, end, 'will')));
  for (const flag of [USER_NAME_FLAG, PASSWORD_FLAG]) if ((flags & flag) !== 0) end = skipText(bytes, end);
  if (end !== bytes.length) throw malformed('bytes behind the payload');
}

/** Where a text with its length in front ends. */
function skipText(bytes: Buffer, at: number): number {
  if (at + 2 > bytes.length) throw malformed('a text that is cut off');
  const end = at + 2 + bytes.readUInt16BE(at);
  if (end > bytes.length) throw malformed('a text longer than its packet');
  return end;
}

/** CONNACK for a version that nobody speaks: as in MQTT 5 ([MQTT-3.1.2-2]), or with the code 1 of MQTT 3.1.1. */
export const unsupportedVersion = (level: number): Buffer =>
  level > 5
    ? encode({ cmd: 'connack', sessionPresent: false, reasonCode: REASON.unsupportedVersion }, 5)
    : encode({ cmd: 'connack', sessionPresent: false, returnCode: 1 }, 4);
