/** Devices for tests: real MQTT clients, and raw connections for packets that no client would send. */
import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import { generate, type Packet, parser } from 'mqtt-packet';
import type { Call } from './fixture.js';

export const AUTH = { username: 'truck', password: 'a key of the machine' };

/** Creates an object whose device may connect; returns its `_id`. */
export async function createObject(admin: Call, id: string, fields: object = {}): Promise<string> {
  const { status, body, text } = await admin('POST', 'objects', { id, name: id, config: { auth: AUTH }, ...fields });
  if (status !== 200) throw new Error(text);
  return body._id;
}

/** Connects a client that does not reconnect by itself. Rejects with the reason of a refusal. */
export async function connectDevice(url: string, clientId: string, options: IClientOptions = {}): Promise<MqttClient> {
  const client = mqtt.connect(url, { ...AUTH, clientId, reconnectPeriod: 0, connectTimeout: 60_000, ...options });
  client.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    client.once('connect', () => resolve());
    client.once('error', reject);
    client.once('close', () => reject(new Error('closed before it was connected')));
  });
  return client;
}

/** The bytes of packets of MQTT 3.1.1; a CONNECT says its own version. */
export const bytesOf = (...packets: Packet[]): Buffer => Buffer.concat(packets.map((packet) => generate(packet)));

/** The bytes of packets of MQTT 5. */
export const bytesOf5 = (...packets: Packet[]): Buffer =>
  Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion: 5 })));

export const CONNECT = (clientId: string, more: object = {}): Packet => ({
  cmd: 'connect',
  protocolId: 'MQTT',
  protocolVersion: 4,
  clean: true,
  keepalive: 60,
  clientId,
  username: AUTH.username,
  password: Buffer.from(AUTH.password),
  ...more,
});

/** A CONNECT of MQTT 5. */
export const CONNECT5 = (clientId: string, properties: object = {}, more: object = {}): Packet =>
  CONNECT(clientId, { protocolVersion: 5, properties, ...more });

export const PUBLISH = (topic: string, payload: string | Buffer, more: object = {}): Packet => ({
  cmd: 'publish',
  topic,
  payload,
  qos: 1,
  messageId: 1,
  dup: false,
  retain: false,
  ...more,
});

export interface RawDevice {
  readonly socket: Socket;
  /** The packets that arrived. */
  readonly received: Packet[];
  readonly closed: Promise<unknown>;
  isClosed(): boolean;
  send(...packets: Packet[]): void;
}

/** Opens a connection that sends any packets, of MQTT 3.1.1 or 5. */
export async function connectRaw(url: string, version: 4 | 5 = 4): Promise<RawDevice> {
  const { hostname, port } = new URL(url);
  const socket = connectSocket(Number(port), hostname);
  const received: Packet[] = [];
  const reader = parser({ protocolVersion: version }).on('packet', (packet: Packet) => received.push(packet));
  // The parser does not know all reason codes.
  reader.on('error', () => undefined);
  let closed = false;
  socket.on('data', (data) => reader.parse(data)).on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  const whenClosed = once(socket, 'close').catch(() => undefined);
  await once(socket, 'connect');
  return {
    socket,
    received,
    closed: whenClosed,
    isClosed: () => closed,
    send: (...packets) => void socket.write(version === 5 ? bytesOf5(...packets) : bytesOf(...packets)),
  };
}
