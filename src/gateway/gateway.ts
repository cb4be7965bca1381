/** The devices' door put together: where they connect, and what a change in the database means for those that are here. */
import type { Audit } from '../db/audit.js';
import { createDeviceFinder } from '../db/devices.js';
import type { Change } from '../model/change.js';
import { isConcerned, recheck } from './admission.js';
import { type Broker, type BrokerAddress, startBroker } from './broker.js';
import type { Connection } from './connection.js';
import { createDeliverer, type Deliverer } from './deliver.js';
import type { DeviceFinding, DeviceParts } from './device.js';
import { createFaults, type TellFault } from './faults.js';
import { createIdle } from './idle.js';
import type { MqttAddress } from './listener.js';
import { type Mqtt, startMqtt } from './mqtt.js';
import { createPresence, DEVICE_GROUPS, type Presence } from './presence.js';
import type { ReceiveParts } from './receive.js';
import { createRetryQueue, type RetryQueue, runEach } from './retry-queue.js';

export interface GatewayParts extends DeviceParts, ReceiveParts {
  /** Null where devices cannot connect. */
  readonly address: MqttAddress | null;
  /** Null where there is no broker of the operator's. */
  readonly broker: BrokerAddress | null;
  readonly audit: Audit;
  readonly log: {
    info(details: object, message: string): void;
    debug(details: object, message: string): void;
    warn(details: object, message: string): void;
    error(details: object, message: string): void;
  };
}

export interface Gateway {
  /** Listens, and gives the address; null where devices cannot connect. */
  start(): Promise<string | null>;
  /** Something changed in the database. */
  apply(change: Change): void;
  /** Changes were missed. */
  applyAny(): void;
  stop(): Promise<void>;
}

export function createGateway(parts: GatewayParts): Gateway {
  const presence = createPresence(parts);
  const idle = createIdle(parts);
  const deliverer = createDeliverer(parts);
  const tellFault = createFaults(parts);
  const returns = createReturns(parts, presence);
  const findDevice = createDeviceFinder(parts.database, DEVICE_GROUPS);
  const inner = { ...parts, findDevice, presence, deliverer, tellFault, returns };
  let mqtt: Mqtt | null = null;
  let broker: Broker | null = null;
  return {
    async start() {
      idle.start();
      if (parts.address !== null || parts.broker !== null) await presence.start();
      const { instance } = presence;
      if (parts.broker !== null) broker = startBroker({ ...inner, instance, address: parts.broker });
      if (parts.address !== null) mqtt = await startListening(inner, parts.address);
      return mqtt?.url ?? null;
    },
    apply(change) {
      idle.apply(change);
      const objectId = change.store === 'presence' ? change.id : change.objectId;
      const connection = objectId === null ? undefined : mqtt?.connections.get(objectId);
      if (connection !== undefined) applyTo(inner, connection, change);
      else broker?.apply(change);
      if (!CONCERNING.has(change.store)) return;
      const concerned = [...(mqtt?.connections.values() ?? [])].filter((one) => isConcerned(one, change));
      checkAll(inner, concerned, (one) => recheck(inner, one));
    },
    applyAny() {
      idle.applyAny();
      checkAll(inner, [...(mqtt?.connections.values() ?? [])], (one) => lookAgain(inner, one));
    },
    async stop() {
      await Promise.all([idle.stop(), presence.stop(), returns.stop()]);
      await Promise.all([mqtt?.stop(), broker?.stop()]);
    },
  };
}

interface InnerParts extends GatewayParts, DeviceFinding {
  readonly presence: Presence;
  readonly deliverer: Deliverer;
  readonly tellFault: TellFault;
  readonly returns: RetryQueue<Connection>;
}

function startListening(parts: InnerParts, address: MqttAddress): Promise<Mqtt> {
  const { deliverer, presence } = parts;
  return startMqtt({
    ...parts,
    address,
    onSubscribe: deliverer.look,
    onConfirm: deliverer.confirm,
    onDisconnect(connection) {
      deliverer.end(connection);
      presence.leave(connection.device.record.objectId, connection.id);
    },
  });
}

function checkAll(
  { log }: InnerParts,
  connections: readonly Connection[],
  look: (connection: Connection) => Promise<void>,
): void {
  void runEach(connections, look).then((undone) => {
    if (undone === null) return;
    const { items, error } = undone;
    log.error({ err: error, connections: items.length }, 'connections could not be checked');
  });
}

/** After changes were missed: anything may have happened to the device. */
async function lookAgain(parts: InnerParts, connection: Connection): Promise<void> {
  await recheck(parts, connection);
  const isNewest = await parts.presence.holds(connection.device.record.objectId, connection.id);
  if (isNewest) parts.deliverer.look(connection);
  else connection.client.close();
}

function applyTo(parts: InnerParts, connection: Connection, change: Change): void {
  if (change.store === 'presence') applyPresence(parts, connection, change);
  if (change.store === 'commands' && change.after?.status === 'queued') parts.deliverer.wake(connection);
}

const CONCERNING: ReadonlySet<string> = new Set(['objects', 'models', 'tokens', 'users', 'roles', 'groups']);

/** The newest connection of a device is the one that counts, wherever it is; who was taken for gone says otherwise. */
function applyPresence({ returns }: InnerParts, connection: Connection, { after }: Change): void {
  const isOurs = after?.connection === connection.id;
  if (after !== null && !isOurs) {
    if (Number(after.since) > connection.sinceMs) connection.client.close();
    return;
  }
  if (after === null || after.ended !== null) returns.add(connection);
}

/** Devices that were taken for gone and are here: all of an instance's, where its signs of life were late. */
function createReturns({ log }: GatewayParts, presence: Presence): RetryQueue<Connection> {
  const arrive = async (connection: Connection): Promise<void> => {
    if (connection.guard.stream.destroyed) return;
    connection.sinceMs = (await presence.arrive(connection.device.record, connection.id)).sinceMs;
  };
  return createRetryQueue({
    run: (connections) => runEach(connections, arrive),
    onFailure: (details) => log.warn(details, 'failed to mark connected devices online: trying again'),
  });
}
