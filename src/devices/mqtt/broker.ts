/**
 * The embedded MQTT broker. aedes implements the protocol; every published message is stored in the database before it is
 * acknowledged. The broker routes no messages between devices.
 */
import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import { Aedes, type AuthenticateError, type Client } from 'aedes';
import { tooLarge } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { ReportInvalidMessage } from '../invalid-messages.js';
import type { ReceiveDeps } from '../receive.js';
import { type ConnectAuth, type ConnectAuthDeps, type ConnectError, createConnectAuth } from './connect-auth.js';
import { type Connection, grant, type Published, receivePublished } from './connection.js';
import { listenForDevices, type MqttAddress } from './listener.js';
import { NOOP_EMITTER, NOOP_PERSISTENCE } from './noop-persistence.js';
import type { OversizedMessage } from './oversized-message.js';
import { limitPackets, type PacketLimiter } from './packet-limiter.js';

export interface BrokerDeps extends ConnectAuthDeps, ReceiveDeps {
  readonly address: MqttAddress;
  readonly reportInvalidMessage: ReportInvalidMessage;
  readonly log: { debug(details: object, message: string): void };
  readonly onSubscribe: (connection: Connection) => void;
  /** The device acknowledged the message with this identifier. */
  readonly onConfirm: (connection: Connection, messageId: number) => void;
  readonly onDisconnect: (connection: Connection) => void;
}

export interface Broker {
  readonly url: string;
  /** The connections of devices, by the object's `_id`. */
  readonly connections: ReadonlyMap<string, Connection>;
  stop(): Promise<void>;
}

/** A client socket; `connection` is null until the device is authenticated. */
interface Peer {
  readonly limiter: PacketLimiter;
  readonly address: string;
  connection: Connection | null;
  /** Whether the device goes on with its session: it may send messages again without the DUP flag. */
  continuesSession: boolean;
}

interface State {
  readonly peers: WeakMap<Client, Peer>;
  readonly connections: Map<string, Connection>;
}

export async function startBroker(deps: BrokerDeps): Promise<Broker> {
  const state: State = { peers: new WeakMap(), connections: new Map() };
  const connectAuth = createConnectAuth(deps);
  const broker = createBroker(deps, state, connectAuth);
  await broker.listen();
  const listener = await listenForDevices(deps.address, (socket, address) =>
    accept(deps, state, { broker, connectAuth, socket, address }),
  );
  return {
    url: listener.url,
    connections: state.connections,
    async stop() {
      await listener.stop();
      await new Promise<void>((done) => broker.close(done));
    },
  };
}

const BROKER_OPTIONS = {
  mq: NOOP_EMITTER,
  persistence: NOOP_PERSISTENCE,
  connectTimeout: LIMITS.mqttConnectMs,
  drainTimeout: LIMITS.mqttDrainMs,
  maxClientsIdLength: LIMITS.idCharacters,
  queueLimit: LIMITS.mqttStoringPerDevice,
  heartbeatInterval: LIMITS.timerMs,
};

function createBroker(deps: BrokerDeps, state: State, connectAuth: ConnectAuth): Aedes {
  const broker = new Aedes({
    ...BROKER_OPTIONS,
    preConnect(client, packet, done) {
      const peer = state.peers.get(client) as Peer;
      // Bridges of Mosquitto say that they are one. They mark each message that they send again, and forget theirs when they crash.
      peer.continuesSession = packet.clean === false && !('bridgeMode' in packet);
      // Clients without keep-alive, or with a very long one, get the maximum.
      packet.keepalive = Math.min(packet.keepalive || LIMITS.mqttKeepAliveMaxS, LIMITS.mqttKeepAliveMaxS);
      done(null, true);
    },
    authenticate(client, username, password, done) {
      const peer = state.peers.get(client) as Peer;
      const { limiter, address, continuesSession } = peer;
      const names = { clientId: client.id, username: username ?? null };
      const credentials = { ...names, password: readPassword(password), address };
      connectAuth.authenticate({ client, limiter, continuesSession }, credentials).then(
        (connection) => {
          peer.connection = connection;
          // The client disconnected during authentication.
          if (peer.limiter.stream.destroyed) end(deps, state, connectAuth, connection);
          // Both ids of a device become one client id, so that a newer connection ends the older one.
          (client as { id: string }).id = connection.device.record.objectId;
          done(null, true);
        },
        (error: ConnectError) => {
          // Clients reconnect after a connection that ends without a CONNACK, as after a network failure.
          if (error.returnCode === null) peer.limiter.stream.destroy();
          done(error as AuthenticateError, false);
        },
      );
    },
    // The only hook that delays the acknowledgement; `published` is called after it.
    authorizePublish(client, packet, done) {
      const connection = connectionOf(state, client);
      if (connection === null) return done(new Error('not authenticated'));
      receivePublished(deps, connection, packet as Published).then(() => {
        connection.limiter.release();
        done(null);
      }, done);
    },
    authorizeSubscribe(client, subscription, done) {
      const connection = connectionOf(state, client);
      done(null, connection !== null && grant(connection, subscription) !== null ? subscription : null);
    },
    // Called only for commands to this device. Sets the identifier that its PUBACK will have.
    authorizeForward(client, packet) {
      const messageId = connectionOf(state, client)?.sending;
      return messageId == null ? packet : Object.assign(packet, { messageId });
    },
  });
  addListeners(broker, deps, state);
  return broker;
}

/** A password that is not UTF-8 becomes empty: decoding would make different passwords equal. */
const readPassword = (password: Readonly<Buffer> | undefined): string =>
  password !== undefined && isUtf8(password) ? password.toString() : '';

function connectionOf({ peers }: State, client: Client | null): Connection | null {
  return (client === null ? undefined : peers.get(client))?.connection ?? null;
}

function addListeners(broker: Aedes, deps: BrokerDeps, state: State): void {
  broker.on('client', (client) => {
    const connection = connectionOf(state, client);
    if (connection !== null) state.connections.set(client.id, connection);
  });
  broker.on('clientReady', (client) => state.peers.get(client)?.limiter.open());
  broker.on('subscribe', (_filters, client) => {
    const connection = connectionOf(state, client);
    if (connection !== null && connection.filters.size > 0) deps.onSubscribe(connection);
  });
  broker.on('unsubscribe', (filters, client) => {
    for (const filter of filters) connectionOf(state, client)?.filters.delete(filter);
  });
  broker.on('ack', (packet, client) => {
    const connection = connectionOf(state, client);
    if (connection !== null && packet?.messageId !== undefined) deps.onConfirm(connection, packet.messageId);
  });
  for (const event of ['clientError', 'connectionError'] as const) {
    broker.on(event, (client, { message }) => {
      const object = connectionOf(state, client)?.device.record.objectId;
      deps.log.debug({ object, reason: message }, 'connection failed');
    });
  }
}

function accept(
  deps: BrokerDeps,
  state: State,
  {
    broker,
    connectAuth,
    socket,
    address,
  }: { broker: Aedes; connectAuth: ConnectAuth; socket: Socket; address: string },
): void {
  const limiter = limitPackets(socket, deps.now, (message) => refuse(deps, peer, message));
  // Added before the broker's own listeners, which miss a connection that ends while it is set up.
  limiter.stream.once('close', () => {
    if (peer.connection !== null) end(deps, state, connectAuth, peer.connection);
  });
  const peer: Peer = { limiter, address, connection: null, continuesSession: false };
  state.peers.set(broker.handle(limiter.stream), peer);
}

/** PUBACK, or PUBREC for QoS 2 (MQTT 3.1.1, sections 3.4 and 3.5). */
const acknowledgementOf = (qos: number, messageId: number): Buffer =>
  Buffer.from([qos === 2 ? 0x50 : 0x40, 2, messageId >> 8, messageId & 0xff]);

/** Acknowledges a message that is too large, and reports it: it would fail every time, and block those behind it. */
function refuse(deps: BrokerDeps, { limiter, connection }: Peer, message: OversizedMessage): void {
  const { topic, qos, messageId, bytes } = message;
  if (messageId !== null) limiter.stream.write(acknowledgementOf(qos, messageId));
  limiter.release();
  const reason = `the message: ${bytes} bytes; at most ${LIMITS.mqttPacketBytes} are permitted`;
  if (connection !== null) deps.reportInvalidMessage(connection.device.record, topic, tooLarge(reason));
}

function end(deps: BrokerDeps, { connections }: State, connectAuth: ConnectAuth, connection: Connection): void {
  const { objectId } = connection.device.record;
  if (connections.get(objectId) === connection) connections.delete(objectId);
  connectAuth.disconnect(connection);
  deps.onDisconnect(connection);
}
