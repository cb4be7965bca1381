/** CONNECT and CONNACK (sections 3.1 and 3.2). */
import { isUtf8 } from 'node:buffer';
import type { IConnackPacket, IConnectPacket } from 'mqtt-packet';
import { LIMITS } from '../../core/limits.js';
import { decodeConnect, levelOf, type RawPacket, unsupportedVersion, type Version } from './codec.js';
import type { ConnectAuth, ConnectError } from './connect-auth.js';
import type { Connection } from './connection.js';
import { MAX_PACKET_BYTES } from './packet-reader.js';
import { NO_LIMITS, type Peer, type PeerLimits } from './peer.js';
import { REASON } from './reason-codes.js';
import { isTopicName } from './topic-name.js';

export interface Connecting {
  readonly connectAuth: ConnectAuth;
  /** Makes the connection that of its device: an older one ends. */
  readonly onConnected: (connection: Connection) => void;
}

/** Authenticates a client, and answers. Resolves when its next packets may pass, or its connection ended. Throws ProtocolError. */
export async function handleConnect(connecting: Connecting, peer: Peer, raw: RawPacket): Promise<void> {
  peer.stopDeadline();
  const level = levelOf(raw);
  // [MQTT-3.1.2-2]
  if (level !== null && (level < 3 || level > 5)) {
    peer.finish(unsupportedVersion(level));
    return;
  }
  peer.version = level as Version | null;
  const packet = decodeConnect(raw);
  const refused = refusalOf(packet);
  if (refused !== null) {
    refuse(peer, refused);
    return;
  }
  peer.limits = limitsOf(packet);
  const { clientId, username = null, password, clean } = packet;
  const credentials = {
    clientId: nameOf(packet),
    username,
    password: readPassword(password),
    address: peer.address,
  };
  const continuesSession = clean === false;
  // Section 3.1.2.11.2: without an expiry interval, a session of MQTT 5 ends with its connection.
  const keepsSession =
    packet.protocolVersion === 5 ? (packet.properties?.sessionExpiryInterval ?? 0) > 0 : continuesSession;
  // Bridges of Mosquitto say that they are one. They mark each message that they send again, and forget theirs when they crash.
  const marksRepeats = 'bridgeMode' in packet;
  const will = packet.will === undefined ? null : { ...packet.will, qos: packet.will.qos ?? 0, dup: false };
  let connection: Connection;
  try {
    connection = await connecting.connectAuth.authenticate(
      { peer, continuesSession, keepsSession, marksRepeats, will },
      credentials,
    );
  } catch (error) {
    const { isFinal } = error as ConnectError;
    // Clients reconnect after a connection that ends without a CONNACK, as after a network failure.
    if (isFinal) refuse(peer, REASON.wrongCredentials);
    else peer.close();
    return;
  }
  connecting.onConnected(connection);
  if (peer.isEnded) return;
  // Clients without keep-alive, or with a very long one, get the maximum.
  const keepAliveS = Math.min(packet.keepalive || LIMITS.mqttKeepAliveMaxS, LIMITS.mqttKeepAliveMaxS);
  const assignedClientIdentifier = clientId === '' ? credentials.clientId : undefined;
  peer.send(peer.version === 5 ? toConnack(packet, keepAliveS, assignedClientIdentifier) : CONNACK);
  // The answer may be larger than the client takes.
  if (!peer.isEnded) peer.open(keepAliveS);
}

/** Why a client is refused before its credentials are checked; null if it is not. */
function refusalOf({ protocolVersion, clientId, will, properties }: IConnectPacket): number | null {
  const isLong = clientId.length > LIMITS.idCharacters;
  if (isLong && protocolVersion !== 4) return REASON.clientIdInvalid;
  // [MQTT-3.1.3-8] of MQTT 3.1.1; MQTT 5 has another name for such a device.
  if (clientId === '' && protocolVersion !== 5) return REASON.clientIdInvalid;
  if (protocolVersion !== 5) return null;
  // [MQTT-4.12.0-1]
  if (properties?.authenticationMethod !== undefined) return REASON.badAuthMethod;
  // Section 3.1.2.11.10
  if (properties?.authenticationData !== undefined) return REASON.protocolError;
  if (will === undefined) return null;
  // [MQTT-3.2.2-13]
  if (will.retain === true) return REASON.retainNotSupported;
  return isTopicName(will.topic) ? null : REASON.topicInvalid;
}

/** The codes of CONNACK before MQTT 5 (MQTT 3.1.1, section 3.2.2.3). */
const RETURN_CODES: ReadonlyMap<number, number> = new Map([
  [REASON.clientIdInvalid, 2],
  [REASON.wrongCredentials, 4],
]);

/** Answers with CONNACK, and ends the connection. */
export function refuse(peer: Peer, reasonCode: number): void {
  const { version } = peer;
  const returnCode = RETURN_CODES.get(reasonCode);
  if (version === 5) peer.finish(peer.encode({ cmd: 'connack', sessionPresent: false, reasonCode }) ?? undefined);
  else if (returnCode === undefined) peer.close();
  else peer.finish(peer.encode({ cmd: 'connack', sessionPresent: false, returnCode }) ?? undefined);
}

/** A device of MQTT 5 may leave its client id out, and name itself by its user name ([MQTT-3.1.3-6]). */
const nameOf = ({ protocolVersion, clientId, username }: IConnectPacket): string =>
  clientId === '' && protocolVersion === 5 ? (username ?? '') : clientId;

/** A password that is not UTF-8 becomes empty: decoding would make different passwords equal. */
const readPassword = (password: Readonly<Buffer> | undefined): string =>
  password !== undefined && isUtf8(password) ? password.toString() : '';

function limitsOf({ protocolVersion, properties = {} }: IConnectPacket): PeerLimits {
  if (protocolVersion !== 5) return NO_LIMITS;
  return {
    receiveMaximum: properties.receiveMaximum ?? NO_LIMITS.receiveMaximum,
    maxPacketBytes: properties.maximumPacketSize ?? NO_LIMITS.maxPacketBytes,
    wantsReasons: properties.requestProblemInformation ?? NO_LIMITS.wantsReasons,
  };
}

// [MQTT-3.2.2-2]: sessions are not kept, so that none is present.
const CONNACK: IConnackPacket = { cmd: 'connack', sessionPresent: false, returnCode: 0 };

/** Says what the service does differently from the defaults of MQTT 5 (section 3.2.2.3). */
function toConnack(
  { keepalive, properties }: IConnectPacket,
  keepAliveS: number,
  assignedClientIdentifier: string | undefined,
): IConnackPacket {
  return {
    cmd: 'connack',
    sessionPresent: false,
    reasonCode: REASON.success,
    properties: {
      // A session ends with its connection.
      sessionExpiryInterval: properties?.sessionExpiryInterval ? 0 : undefined,
      receiveMaximum: LIMITS.mqttStoringPerDevice,
      retainAvailable: false,
      maximumPacketSize: MAX_PACKET_BYTES,
      assignedClientIdentifier,
      topicAliasMaximum: LIMITS.mqttTopicAliases,
      wildcardSubscriptionAvailable: true,
      subscriptionIdentifiersAvailable: false,
      sharedSubscriptionAvailable: false,
      // [MQTT-3.2.2-21]
      serverKeepAlive: keepAliveS === keepalive ? undefined : keepAliveS,
    } as NonNullable<IConnackPacket['properties']>,
  };
}
