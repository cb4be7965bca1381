/**
 * The embedded MQTT broker: aedes speaks the protocol, and everything a device says ends in the database before it is
 * acknowledged. No device hears another: the broker routes nothing.
 */
import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import { Aedes, type AuthenticateError, type Client } from 'aedes';
import { LIMITS } from '../model/limits.js';
import { type Admission, type AdmissionParts, createAdmission, type Refusal } from './admission.js';
import { type Connection, grant, type Published, takePublished } from './connection.js';
import type { TellFault } from './faults.js';
import { type Guard, guardSocket } from './guard.js';
import { listenForDevices, type MqttAddress } from './listener.js';
import type { ReceiveParts } from './receive.js';
import { SILENT_EMITTER, SILENT_PERSISTENCE } from './silence.js';

export interface MqttParts extends AdmissionParts, ReceiveParts {
  readonly address: MqttAddress;
  readonly tellFault: TellFault;
  readonly log: { debug(details: object, message: string): void };
  /** A device may be sent what it waits for. */
  readonly onSubscribe: (connection: Connection) => void;
  /** A device has what it was sent under this identifier. */
  readonly onConfirm: (connection: Connection, messageId: number) => void;
  readonly onDisconnect: (connection: Connection) => void;
}

export interface Mqtt {
  readonly url: string;
  /** The connections of devices, by the object's `_id`. */
  readonly connections: ReadonlyMap<string, Connection>;
  stop(): Promise<void>;
}

/** What is known of a socket, before it is a device's and then. */
interface Peer {
  readonly guard: Guard;
  readonly address: string;
  connection: Connection | null;
}

interface State {
  readonly peers: WeakMap<Client, Peer>;
  readonly connections: Map<string, Connection>;
}

/** Listens for devices. */
export async function startMqtt(parts: MqttParts): Promise<Mqtt> {
  const state: State = { peers: new WeakMap(), connections: new Map() };
  const admission = createAdmission(parts);
  const broker = createBroker(parts, state, admission);
  await broker.listen();
  const listener = await listenForDevices(parts.address, (socket, address) =>
    accept(parts, state, { broker, admission, socket, address }),
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
  mq: SILENT_EMITTER,
  persistence: SILENT_PERSISTENCE,
  connectTimeout: LIMITS.mqttConnectMs,
  drainTimeout: LIMITS.mqttDrainMs,
  maxClientsIdLength: LIMITS.idCharacters,
  queueLimit: LIMITS.mqttStoringPerDevice,
  heartbeatInterval: LIMITS.timerMs,
};

function createBroker(parts: MqttParts, state: State, admission: Admission): Aedes {
  const broker = new Aedes({
    ...BROKER_OPTIONS,
    preConnect(_client, packet, done) {
      // Whoever promises no sign of life, or a very late one, is held to the longest time.
      packet.keepalive = Math.min(packet.keepalive || LIMITS.mqttKeepAliveMaxS, LIMITS.mqttKeepAliveMaxS);
      done(null, true);
    },
    authenticate(client, username, password, done) {
      const peer = state.peers.get(client) as Peer;
      const claim = { clientId: client.id, username: username ?? null, password: readPassword(password) };
      admission.admit({ client, guard: peer.guard }, { ...claim, address: peer.address }).then(
        (connection) => {
          peer.connection = connection;
          // It went while it was looked for.
          if (peer.guard.stream.destroyed) end(parts, state, admission, connection);
          // One name for each device, whichever of its ids it came with: the newer connection ends the older one.
          (client as { id: string }).id = connection.device.record.objectId;
          done(null, true);
        },
        (refusal: Refusal) => {
          // A connection that just ends is made again, as after any fault of the network.
          if (refusal.returnCode === null) peer.guard.stream.destroy();
          done(refusal as AuthenticateError, false);
        },
      );
    },
    // The one hook that the acknowledgement waits for; `published` comes after it.
    authorizePublish(client, packet, done) {
      const connection = connectionOf(state, client);
      if (connection === null) return done(new Error('nobody'));
      takePublished(parts, connection, packet as Published).then(() => {
        connection.guard.release();
        done(null);
      }, done);
    },
    authorizeSubscribe(client, subscription, done) {
      const connection = connectionOf(state, client);
      done(null, connection !== null && grant(connection, subscription) !== null ? subscription : null);
    },
    // Only what is sent to this one device comes here: under the identifier by which its PUBACK is known.
    authorizeForward(client, packet) {
      const messageId = connectionOf(state, client)?.sending;
      return messageId == null ? packet : Object.assign(packet, { messageId });
    },
  });
  listenTo(broker, parts, state);
  return broker;
}

/** Nothing fits what is not UTF-8: as text, all of it would be alike. */
const readPassword = (password: Readonly<Buffer> | undefined): string =>
  password !== undefined && isUtf8(password) ? password.toString() : '';

function connectionOf({ peers }: State, client: Client | null): Connection | null {
  return (client === null ? undefined : peers.get(client))?.connection ?? null;
}

function listenTo(broker: Aedes, parts: MqttParts, state: State): void {
  broker.on('client', (client) => {
    const connection = connectionOf(state, client);
    if (connection !== null) state.connections.set(client.id, connection);
  });
  broker.on('subscribe', (_filters, client) => {
    const connection = connectionOf(state, client);
    if (connection !== null && connection.filters.size > 0) parts.onSubscribe(connection);
  });
  broker.on('unsubscribe', (filters, client) => {
    for (const filter of filters) connectionOf(state, client)?.filters.delete(filter);
  });
  broker.on('ack', (packet, client) => {
    const connection = connectionOf(state, client);
    if (connection !== null && packet?.messageId !== undefined) parts.onConfirm(connection, packet.messageId);
  });
  for (const event of ['clientError', 'connectionError'] as const) {
    broker.on(event, (client, { message }) => {
      const object = connectionOf(state, client)?.device.record.objectId;
      parts.log.debug({ object, why: message }, 'connection failed');
    });
  }
}

function accept(
  parts: MqttParts,
  state: State,
  { broker, admission, socket, address }: { broker: Aedes; admission: Admission; socket: Socket; address: string },
): void {
  const guard = guardSocket(socket, parts.now);
  // Before the broker's own listeners: it forgets a connection that ends while it begins.
  guard.stream.once('close', () => {
    if (peer.connection !== null) end(parts, state, admission, peer.connection);
  });
  const peer: Peer = { guard, address, connection: null };
  state.peers.set(broker.handle(guard.stream), peer);
}

function end(parts: MqttParts, { connections }: State, admission: Admission, connection: Connection): void {
  const { objectId } = connection.device.record;
  if (connections.get(objectId) === connection) connections.delete(objectId);
  admission.dismiss(connection);
  parts.onDisconnect(connection);
}
