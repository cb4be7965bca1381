/**
 * The MQTT broker for devices, for MQTT 3.1, 3.1.1 and 5. Every published message is stored in the database before it is
 * acknowledged. The broker routes no messages between devices, and keeps no sessions.
 */
import type { Socket } from 'node:net';
import type { Packet } from 'mqtt-packet';
import type { ReportInvalidMessage } from '../invalid-messages.js';
import type { ReceiveDeps } from '../receive.js';
import { handlePuback, handlePubrec, handlePubrel, type OnConfirm } from './acknowledge.js';
import { decode, type RawPacket, type Version } from './codec.js';
import { handleConnect, refuse } from './connect.js';
import { type ConnectAuth, type ConnectAuthDeps, createConnectAuth } from './connect-auth.js';
import { type Connection, receivePublished } from './connection.js';
import { listenForDevices, type MqttAddress } from './listener.js';
import { Peer } from './peer.js';
import { handlePublish, refuseOversized } from './publish.js';
import { ProtocolError, REASON } from './reason-codes.js';
import { handleSubscribe, handleUnsubscribe } from './subscribe.js';

export interface BrokerDeps extends ConnectAuthDeps, ReceiveDeps {
  readonly address: MqttAddress;
  readonly reportInvalidMessage: ReportInvalidMessage;
  readonly log: { debug(details: object, message: string): void };
  readonly onSubscribe: (connection: Connection) => void;
  /** The device acknowledged the message with this identifier, with a reason code of MQTT 5. */
  readonly onConfirm: OnConfirm;
  readonly onDisconnect: (connection: Connection) => void;
}

export interface Broker {
  readonly url: string;
  /** The connections of devices, by the object's `_id`. */
  readonly connections: ReadonlyMap<string, Connection>;
  stop(): Promise<void>;
}

interface State {
  readonly connectAuth: ConnectAuth;
  readonly connections: Map<string, Connection>;
  readonly peers: Set<Peer>;
}

export async function startBroker(deps: BrokerDeps): Promise<Broker> {
  const state: State = { connectAuth: createConnectAuth(deps), connections: new Map(), peers: new Set() };
  const listener = await listenForDevices(deps.address, (socket, address) => accept(deps, state, socket, address));
  return {
    url: listener.url,
    connections: state.connections,
    async stop() {
      for (const peer of state.peers) peer.end(REASON.shuttingDown, 'the service stops');
      await listener.stop();
    },
  };
}

function accept(deps: BrokerDeps, state: State, socket: Socket, address: string): void {
  let connection: Connection | null = null;
  const peer = new Peer(socket, {
    address,
    now: deps.now,
    onPacket(raw) {
      if (connection !== null) handlePacket(deps, connection, raw);
      else handleConnect({ connectAuth: state.connectAuth, onConnected }, peer, raw).catch(onFault);
    },
    // Messages pass only when the device is connected.
    onOversized: (message) => connection !== null && refuseOversized(deps, connection, message),
    onFault,
    onEnd() {
      state.peers.delete(peer);
      if (connection !== null) end(deps, state, connection);
    },
  });
  state.peers.add(peer);

  function onConnected(connected: Connection): void {
    connection = connected;
    const { objectId } = connected.device.record;
    // The client disconnected during authentication.
    if (peer.isEnded) {
      end(deps, state, connected);
      return;
    }
    // [MQTT-3.1.4-3]: both ids of a device are of one client.
    state.connections.get(objectId)?.peer.end(REASON.takenOver, 'a newer connection of the device took over');
    state.connections.set(objectId, connected);
  }

  function onFault(error: unknown): void {
    if (connection !== null) endWith(deps, connection, error);
    else {
      deps.log.debug({ address, reason: (error as Error).message }, 'connection failed');
      if (error instanceof ProtocolError && peer.version === 5) refuse(peer, error.reasonCode);
      else peer.close();
    }
  }
}

function handlePacket(deps: BrokerDeps, connection: Connection, raw: RawPacket): void {
  const { peer } = connection;
  peer.touch();
  try {
    // No authentication method was accepted in CONNECT (section 4.12).
    if (raw.bytes[0] === AUTH && peer.version === 5) {
      throw new ProtocolError('AUTH without an authentication method', REASON.badAuthMethod);
    }
    dispatch(deps, connection, decode(raw, peer.version as Version));
  } catch (error) {
    endWith(deps, connection, error);
  }
}

const AUTH = 0xf0;
const PINGRESP = Buffer.from([0xd0, 0]);

function dispatch(deps: BrokerDeps, connection: Connection, packet: Packet): void {
  const { peer } = connection;
  switch (packet.cmd) {
    case 'publish':
      handlePublish(deps, connection, packet);
      break;
    case 'puback':
      handlePuback(deps.onConfirm, connection, packet);
      break;
    case 'pubrel':
      handlePubrel(connection, packet);
      break;
    case 'pubrec':
      handlePubrec(connection, packet);
      break;
    case 'pubcomp':
      break;
    case 'subscribe':
      handleSubscribe(deps.onSubscribe, connection, packet);
      break;
    case 'unsubscribe':
      handleUnsubscribe(connection, packet);
      break;
    case 'pingreq':
      peer.write(PINGRESP);
      break;
    case 'disconnect':
      // Section 3.14.2.2.2: then it is no valid DISCONNECT.
      if (packet.properties?.sessionExpiryInterval && !connection.session.isKept)
        throw new ProtocolError('a session expiry interval in DISCONNECT only');
      // [MQTT-3.14.4-3]; with this reason, MQTT 5 publishes the will (section 3.14.2.1).
      if (packet.reasonCode !== REASON.disconnectWithWill) connection.will = null;
      peer.finish();
      break;
    default:
      throw new ProtocolError(`${packet.cmd.toUpperCase()} from a client`);
  }
}

function endWith({ log }: BrokerDeps, connection: Connection, error: unknown): void {
  const { message } = error as Error;
  log.debug({ object: connection.device.record.objectId, reason: message }, 'connection failed');
  connection.peer.end(error instanceof ProtocolError ? error.reasonCode : REASON.unspecified, message);
}

/** A connection ended. */
function end(deps: BrokerDeps, { connectAuth, connections }: State, connection: Connection): void {
  const { will } = connection;
  connection.will = null;
  // [MQTT-3.1.2-8]. Its session ends now, and so does the delay of a will (section 3.1.3.2.2).
  if (will !== null) receivePublished(deps, connection, will).catch(() => undefined);
  const { objectId } = connection.device.record;
  if (connections.get(objectId) === connection) connections.delete(objectId);
  connectAuth.disconnect(connection);
  deps.onDisconnect(connection);
}
