/**
 * Devices behind a broker of the operator's: this instance is one of its clients, and shares the load with the others. What
 * a topic says after `objects/<id>/` means what it means on a connection of the device's own.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import mqtt, { type IPublishPacket, type MqttClient } from 'mqtt';
import { isBehindBroker, noteBehindBroker } from '../db/brokered.js';
import { claimCommand, confirmDelivery, releaseCommands } from '../db/commands.js';
import { type DeviceRecord, findDevice } from '../db/devices.js';
import { isAway } from '../db/documents.js';
import type { ModelFinder } from '../db/models.js';
import { tooLarge } from '../errors.js';
import { atMost } from '../model/cache-size.js';
import type { Change } from '../model/change.js';
import { isTopic, toDelivery } from '../model/command.js';
import { LIMITS } from '../model/limits.js';
import { namesObject } from '../model/own-id.js';
import type { TellFault } from './faults.js';
import { type ReceiveParts, receive } from './receive.js';
import { COMMANDS_TOPIC } from './topics.js';

export interface BrokerAddress {
  readonly url: string;
  /** Names this instance at the broker, which then keeps what comes while it is away; null for no such memory. */
  readonly clientId: string | null;
}

export interface BrokerParts extends ReceiveParts {
  readonly address: BrokerAddress;
  readonly models: ModelFinder;
  readonly tellFault: TellFault;
  /** Names this process. */
  readonly instance: string;
  readonly log: {
    info(details: object, message: string): void;
    warn(details: object, message: string): void;
    error(details: object, message: string): void;
  };
}

export interface Broker {
  apply(change: Change): void;
  stop(): Promise<void>;
}

const PREFIX = 'objects/';
/** All instances are one holder: what one is handing over, no other one takes from it. */
const HOLDER = 'broker';
/** Of all that subscribe so, the broker gives each message to one. */
const FILTER = `$share/vigil/${PREFIX}+/#`;

interface State {
  readonly clients: MqttClient[];
  /** Devices by what their topics call them. */
  readonly devices: LRUCache<string, DeviceRecord>;
  readonly noted: LRUCache<string, true>;
  isStopping: boolean;
}

/**
 * Connects; comes back by itself. A client deals with one message after the other, and acknowledges each when it is
 * stored: so there are several.
 */
export function startBroker(parts: BrokerParts): Broker {
  const most = LIMITS.mqttDevicesRemembered;
  const state: State = {
    clients: [],
    devices: new LRUCache({ ...atMost(most), ttl: LIMITS.brokerDeviceMs }),
    noted: new LRUCache(atMost(most)),
    isStopping: false,
  };
  for (let at = 0; at < LIMITS.brokerConnections; at++) state.clients.push(connect(parts, state, at));
  return {
    apply(change) {
      if (change.store === 'objects') state.devices.clear();
      if (change.store !== 'commands' || change.after?.status !== 'queued' || change.objectId === null) return;
      sendSoon(parts, state, change.objectId);
    },
    async stop() {
      state.isStopping = true;
      await Promise.all(state.clients.map(leave));
    },
  };
}

function connect(parts: BrokerParts, state: State, at: number): MqttClient {
  const { url, clientId } = parts.address;
  const client = mqtt.connect(url, {
    clientId: `${clientId ?? `vigil-${parts.instance}`}-${at}`,
    clean: clientId === null,
    reconnectPeriod: LIMITS.brokerReconnectMs,
    resubscribe: false,
  });
  client.handleMessage = (packet, done) => {
    if (packet.cmd !== 'publish') return done();
    take(parts, state, packet).then(() => done(), done);
  };
  client.on('connect', () => {
    client.subscribe(FILTER, { qos: 1 }, (error, granted) => {
      const isRefused = granted?.some(({ qos }) => qos === 128);
      if (error || isRefused) parts.log.warn({ err: error, filter: FILTER }, 'the broker refuses the subscription');
    });
    if (at > 0) return;
    parts.log.info({}, 'connected to the broker');
    // What an instance that died was handing over waits again; who hands one over just now may do so twice.
    releaseCommands(parts.database, [HOLDER]).catch((error) =>
      parts.log.warn({ err: error }, 'commands may wait longer'),
    );
  });
  client.on('error', (error) => parts.log.warn({ err: error }, 'the connection to the broker failed'));
  return client;
}

/** Says goodbye; a broker that does not answer (what was sent to it, or the goodbye) is not waited for. */
async function leave(client: MqttClient): Promise<void> {
  const waited = new AbortController();
  const late = wait(LIMITS.brokerLeaveMs, undefined, { signal: waited.signal });
  await Promise.race([client.endAsync(), late]).catch(() => undefined);
  waited.abort();
  client.stream.destroy();
}

/**
 * Stores a message; resolves when it may be acknowledged. While the database is away it is tried again, and waits; whatever
 * else is wrong with it would be so each time, and those after it must not wait for that.
 */
async function take(parts: BrokerParts, state: State, packet: IPublishPacket): Promise<void> {
  const [key = '', ...levels] = packet.topic.slice(PREFIX.length).split('/');
  const topic = levels.join('/');
  while (!state.isStopping) {
    try {
      await takeOnce(parts, state, { key, topic, packet });
      return;
    } catch (error) {
      if (!isAway(error)) {
        parts.log.error({ err: error }, 'a message of the broker was refused: a fault of ours');
        return;
      }
      parts.log.warn({ err: error }, 'a message of the broker could not be stored: tried again');
      await wait(LIMITS.commandRetryMs);
    }
  }
  // Not acknowledged: the broker gives it to another, or to this one when it is back.
  throw new Error('stopping');
}

async function takeOnce(
  parts: BrokerParts,
  state: State,
  { key, topic, packet }: { key: string; topic: string; packet: IPublishPacket },
): Promise<void> {
  const device = state.devices.get(key) ?? (await findDevice(parts.database, key));
  if (device === null || !device.isActive) return;
  state.devices.set(key, device);
  const declared = await parts.models.declarationsOf(device.modelId);
  // What this side sends comes back on the same filter.
  const isOurs = topic.startsWith(`${COMMANDS_TOPIC}/`) && !topic.endsWith('/result');
  if (isOurs || [...declared.actions.values()].some((action) => action.topic === topic)) return;
  await note(parts, state, device.objectId);
  const messageId = packet.qos === 0 ? null : (packet.messageId ?? null);
  try {
    const payload = readPayload(packet);
    await receive(parts, device, declared, { topic, payload, messageId, isSuspect: packet.dup, signal: null });
  } catch (error) {
    if (isAway(error)) throw error;
    parts.tellFault(device, topic, error);
  }
}

/** No larger than a device that connects to this service could send it: it is taken apart in one go. */
function readPayload({ payload }: IPublishPacket): Buffer {
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(payload);
  if (bytes.length <= LIMITS.mqttPacketBytes) return bytes;
  throw tooLarge(`the message: more than ${LIMITS.mqttPacketBytes} bytes`);
}

/** A device that was heard of through the broker is sent its commands through it. */
async function note(parts: BrokerParts, state: State, objectId: string): Promise<void> {
  if (state.noted.has(objectId)) return;
  // Not waited for: its client takes no acknowledgement of the broker before it is done with the message at hand.
  if (await noteBehindBroker(parts.database, objectId)) sendSoon(parts, state, objectId);
  state.noted.set(objectId, true);
}

function sendSoon(parts: BrokerParts, state: State, objectId: string): void {
  sendAll(parts, state, objectId).catch((error) =>
    parts.log.warn({ err: error }, 'a command could not be handed to the broker: it waits'),
  );
}

/** Every instance hears of a command; the one that claims it hands it over. `delivered`: the broker has it. */
async function sendAll(parts: BrokerParts, state: State, objectId: string): Promise<void> {
  if (!state.noted.has(objectId) && !(await isBehindBroker(parts.database, objectId))) return;
  const [client] = state.clients;
  if (client === undefined || !client.connected || state.isStopping) return;
  const device = await findDevice(parts.database, objectId);
  if (device === null) return;
  const declared = await parts.models.declarationsOf(device.modelId);
  for (;;) {
    const command = await claimCommand(parts.database, objectId, HOLDER, parts.now());
    if (command === null) return;
    const { topic, payload } = toDelivery(command, declared.actions.get(command.command));
    const full = `${PREFIX}${nameInTopics(device)}/${topic ?? `${COMMANDS_TOPIC}/${command.command}`}`;
    await client.publishAsync(full, payload, { qos: 1 });
    await confirmDelivery(parts.database, command._id, HOLDER, parts.now());
  }
}

/** Where a device hears its commands: by its own id, where that names it and may be part of a topic. */
const nameInTopics = ({ objectId, ownId }: DeviceRecord): string =>
  namesObject(ownId) && isTopic(ownId) ? ownId : objectId;
