/**
 * Connects devices of an external broker: each instance is a client of it and shares the load through a shared subscription. The
 * topic after `objects/<id>/` has the same meaning as on a direct connection.
 */

import { LRUCache } from 'lru-cache';
import mqtt, { type IPublishPacket, type MqttClient } from 'mqtt';
import { claimCommand, confirmDelivery, hasWaiting, releaseCommands } from '../../commands/command-store.js';
import { cacheSize } from '../../core/cache-size.js';
import type { Change } from '../../core/change.js';
import { isTopic } from '../../core/command.js';
import { tooLarge } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { isValidOwnId, toOwnId } from '../../core/own-id.js';
import type { ModelFinder } from '../../packets/models.js';
import { clock } from '../../platform/clock.js';
import { createMinuteCount, type MinuteCount } from '../../platform/minute-count.js';
import { isTransientError } from '../../platform/mongo/driver/errors.js';
import { type BridgeDevice, findBridgeDevice, listBridgeDevices, recordBridgeDevice } from '../bridge-devices.js';
import { toMessage } from '../command-message.js';
import { toProperties } from '../command-properties.js';
import { type DeviceRecord, findDevice } from '../devices.js';
import type { ReportInvalidMessage } from '../invalid-messages.js';
import { type ReceiveDeps, receive } from '../receive.js';
import { COMMANDS_TOPIC, isOwnTracksCommands, ownTracksCommandsOf, ownTracksTypeOf } from '../topics.js';
import { negotiateVersion } from './version.js';

export interface BridgeAddress {
  readonly url: string;
  /** The client id of this instance, for which the broker queues messages while it is disconnected; null for a clean session. */
  readonly clientId: string | null;
}

export interface BridgeDeps extends ReceiveDeps {
  readonly address: BridgeAddress;
  readonly models: ModelFinder;
  readonly reportInvalidMessage: ReportInvalidMessage;
  /** Identifies this process. */
  readonly instance: string;
  readonly log: {
    info(details: object, message: string): void;
    warn(details: object, message: string): void;
    error(details: object, message: string): void;
  };
}

export interface Bridge {
  apply(change: Change): void;
  /** For a gap in the change stream. */
  reset(): void;
  stop(): Promise<void>;
}

const PREFIX = 'objects/';
/** All instances claim commands as one holder, so that none takes over a command that another one is sending. */
const HOLDER = 'broker';
/** A shared subscription: the broker sends each message to one of its subscribers. */
const FILTER = `$share/vigil/${PREFIX}+/#`;

/** Section 3.1.2.11.2: the session does not expire. */
const NEVER = 0xff_ff_ff_ff;

interface State {
  readonly clients: MqttClient[];
  /** By the id in their topics. */
  readonly devices: LRUCache<string, DeviceRecord>;
  /** What this instance has recorded of devices, by their objects. One that recorded something else gets a later message soon. */
  readonly recorded: LRUCache<string, BridgeDevice>;
  /** Of messages that could not be stored for now, and of commands that stay. */
  readonly failures: { readonly messages: MinuteCount; readonly commands: MinuteCount };
  isStopping: boolean;
  /** The number of the last check for commands that nobody has sent. */
  lastCheck: number;
}

/**
 * Connects, and reconnects automatically. A client handles one message at a time and acknowledges it when it is stored, so several
 * clients are needed for throughput.
 */
export function startBridge(deps: BridgeDeps): Bridge {
  const max = LIMITS.mqttDevicesRemembered;
  const state: State = {
    clients: [],
    devices: new LRUCache({ ...cacheSize(max), ttl: LIMITS.brokerDeviceMs }),
    recorded: new LRUCache(cacheSize(max)),
    failures: { messages: createMinuteCount(), commands: createMinuteCount() },
    isStopping: false,
    lastCheck: 0,
  };
  for (let index = 0; index < LIMITS.brokerConnections; index++) state.clients.push(connect(deps, state, index));
  return {
    apply(change) {
      if (change.store === 'objects') state.devices.clear();
      if (change.store !== 'commands' || change.after?.status !== 'queued' || change.objectId === null) return;
      sendSoon(deps, state, change.objectId);
    },
    reset() {
      state.devices.clear();
      void sendWaiting(deps, state);
    },
    async stop() {
      state.isStopping = true;
      await Promise.all(state.clients.map(disconnect));
    },
  };
}

function connect(deps: BridgeDeps, state: State, index: number): MqttClient {
  const { url, clientId } = deps.address;
  const client = mqtt.connect(url, {
    clientId: `${clientId ?? `vigil-${deps.instance}`}-${index}`,
    clean: clientId === null,
    protocolVersion: 5,
    // Before MQTT 5, a session that is not clean lasts as long.
    ...(clientId !== null && { properties: { sessionExpiryInterval: NEVER } }),
    reconnectOnConnackError: true,
    reconnectPeriod: LIMITS.brokerReconnectMs,
    resubscribe: false,
  });
  negotiateVersion(client);
  client.handleMessage = (packet, done) => {
    if (packet.cmd !== 'publish') return done();
    receiveMessage(deps, state, packet).then(() => done(), done);
  };
  client.on('connect', () => {
    client.subscribe(FILTER, { qos: 1 }, (error, granted) => {
      const isRefused = granted?.some(({ qos }) => qos >= 128);
      if (error || isRefused) deps.log.warn({ err: error, filter: FILTER }, 'the broker refused the subscription');
    });
    if (index > 0) return;
    deps.log.info({}, 'connected to the broker');
    // Releases commands of a failed instance. A command that another instance is sending right now may be sent twice.
    releaseCommands(deps.database, [HOLDER]).catch((error) =>
      deps.log.warn({ err: error }, 'failed to release commands: they may be delayed'),
    );
    void sendWaiting(deps, state);
  });
  client.on('error', (error) => deps.log.warn({ err: error }, 'the connection to the broker failed'));
  return client;
}

/** Sends the commands whose creation nobody saw, or which nobody could send then. Retries; a later call takes the place of this one. */
async function sendWaiting(deps: BridgeDeps, state: State): Promise<void> {
  const check = ++state.lastCheck;
  for (let after: string | null = null; check === state.lastCheck && !state.isStopping; ) {
    try {
      const ids = await listBridgeDevices(deps.database, after);
      const waiting = await Promise.all(ids.map((id) => hasWaiting(deps.database, id, deps.now())));
      for (const id of ids.filter((_, index) => waiting[index])) {
        await sendAll(deps, state, id).catch((error: unknown) => reportLasting(deps, state, error));
      }
      after = ids.at(-1) ?? null;
      if (after === null) return;
    } catch (error) {
      deps.log.warn({ err: error }, 'failed to send the commands that wait; retrying');
      await clock.wait(LIMITS.commandRetryMs, { ref: false });
    }
  }
}

/** Disconnects cleanly, but waits only a limited time for the broker to acknowledge. */
async function disconnect(client: MqttClient): Promise<void> {
  const ended = new AbortController();
  const timeout = clock.wait(LIMITS.brokerLeaveMs, { signal: ended.signal });
  await Promise.race([client.endAsync(), timeout]).catch(() => undefined);
  ended.abort();
  client.stream.destroy();
}

/**
 * Stores a message; resolves when it may be acknowledged. Retries while the database is unavailable. Other errors are permanent, so
 * the message is dropped and does not block later ones.
 */
async function receiveMessage(deps: BridgeDeps, state: State, packet: IPublishPacket): Promise<void> {
  const [key = '', ...levels] = packet.topic.slice(PREFIX.length).split('/');
  const topic = levels.join('/');
  while (!state.isStopping) {
    try {
      await receiveOnce(deps, state, { key, topic, packet });
      return;
    } catch (error) {
      if (!isTransientError(error)) {
        deps.log.error({ err: error }, 'message of the broker rejected: internal error');
        return;
      }
      const failed = state.failures.messages();
      if (failed !== null) deps.log.warn({ err: error, failed }, 'failed to store a message of the broker; retrying');
      await clock.wait(LIMITS.commandRetryMs);
    }
  }
  // Without an acknowledgement the broker sends the message to another subscriber, or again to this one.
  throw new Error('stopping');
}

async function receiveOnce(
  deps: BridgeDeps,
  state: State,
  { key, topic, packet }: { key: string; topic: string; packet: IPublishPacket },
): Promise<void> {
  const device = state.devices.get(key) ?? (await findDevice(deps.database, key));
  if (device === null || !device.isActive) return;
  state.devices.set(key, device);
  const declared = await deps.models.declarationsOf(device.modelId);
  const type = ownTracksTypeOf(bytesOf(packet));
  // The filter also matches the commands that Vigil sends.
  const isOurs = type === 'cmd' || (topic.startsWith(`${COMMANDS_TOPIC}/`) && !topic.endsWith('/result'));
  if (isOurs || [...declared.actions.values()].some((action) => action.topic === topic)) return;
  if (isOwnTracksCommands(packet.topic) && (await isCommandTopic(deps, device.objectId, packet.topic))) return;
  const ownTracksTopic = type === null ? null : ownTracksCommandsOf(packet.topic);
  await recordDevice(deps, state, { objectId: device.objectId, ownTracksTopic });
  const messageId = packet.qos === 0 ? null : (packet.messageId ?? null);
  try {
    const payload = readPayload(packet);
    await receive(deps, device, declared, { topic, payload, messageId, maybeDuplicate: packet.dup, signal: null });
  } catch (error) {
    if (isTransientError(error)) throw error;
    deps.reportInvalidMessage(device, topic, error);
  }
}

/** Whether OwnTracks expects its commands there: the model may define their payload. */
const isCommandTopic = async ({ database }: BridgeDeps, objectId: string, topic: string): Promise<boolean> =>
  (await findBridgeDevice(database, objectId))?.ownTracksTopic === topic;

const bytesOf = ({ payload }: IPublishPacket): Buffer => (Buffer.isBuffer(payload) ? payload : Buffer.from(payload));

/** Applies the size limit of direct connections, since parsing blocks the event loop. Throws 413. */
function readPayload(packet: IPublishPacket): Buffer {
  const bytes = bytesOf(packet);
  if (bytes.length <= LIMITS.mqttPacketBytes) return bytes;
  throw tooLarge(`the message: more than ${LIMITS.mqttPacketBytes} bytes`);
}

/** Records that the device uses the external broker, so that its commands are sent there. */
async function recordDevice(deps: BridgeDeps, state: State, device: BridgeDevice): Promise<void> {
  const { objectId, ownTracksTopic } = device;
  const recorded = state.recorded.get(objectId);
  if (recorded?.ownTracksTopic === ownTracksTopic) return;
  // Not awaited: the client processes no acknowledgement of the broker until this message is handled.
  if (await recordBridgeDevice(deps.database, device)) sendSoon(deps, state, objectId);
  state.recorded.set(objectId, device);
}

function sendSoon(deps: BridgeDeps, state: State, objectId: string): void {
  sendAll(deps, state, objectId).catch((error) => reportUnsent(deps, state, error));
}

/** Throws what is worth another try. */
function reportLasting(deps: BridgeDeps, state: State, error: unknown): void {
  if (isTransientError(error)) throw error;
  reportUnsent(deps, state, error);
}

function reportUnsent({ log }: BridgeDeps, { failures }: State, error: unknown): void {
  const failed = failures.commands();
  if (failed !== null) log.warn({ err: error, failed }, 'failed to send a command to the broker: it stays queued');
}

/** Sends the commands that this instance can claim. `delivered` means that the broker acknowledged the command. */
async function sendAll(deps: BridgeDeps, state: State, objectId: string): Promise<void> {
  const [client] = state.clients;
  if (client === undefined || !client.connected || state.isStopping) return;
  // Another instance may have received its last message.
  const bridged = await findBridgeDevice(deps.database, objectId);
  if (bridged === null) return;
  const device = await findDevice(deps.database, objectId);
  if (device === null) return;
  const declared = await deps.models.declarationsOf(device.modelId);
  for (;;) {
    const command = await claimCommand(deps.database, objectId, HOLDER, deps.now());
    if (command === null) return;
    const { topic, payload } = toMessage(command, declared, bridged.ownTracksTopic);
    const prefix = `${PREFIX}${nameInTopics(device)}/`;
    const full = topic === bridged.ownTracksTopic ? topic : `${prefix}${topic}`;
    // Ignored before MQTT 5.
    const properties = toProperties(command, prefix, deps.now());
    await client.publishAsync(full, payload, { qos: 1, properties });
    await confirmDelivery(deps.database, command._id, HOLDER, deps.now());
  }
}

/** The id in the device's command topics: its own id, if that is valid in a topic, otherwise the `_id`. */
const nameInTopics = ({ objectId, ownId }: DeviceRecord): string =>
  isValidOwnId(toOwnId(ownId)) && isTopic(ownId) ? ownId : objectId;
