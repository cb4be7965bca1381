/** The MQTT gateway: starts the broker and the bridge, and applies database changes to connected devices. */

import type { Audit } from '../accounts/audit.js';
import type { Change } from '../core/change.js';
import type { RefusedPackets } from '../packets/refused-packets.js';
import type { WrongClocks } from '../packets/wrong-clocks.js';
import { type Bridge, type BridgeAddress, startBridge } from './bridge/bridge.js';
import { createDeliverer, type Deliverer } from './command-delivery.js';
import { createDeviceFinder } from './devices.js';
import { createInvalidMessageReporter, type ReportInvalidMessage } from './invalid-messages.js';
import { type Broker, type BrokerDeps, startBroker } from './mqtt/broker.js';
import { mayAffectConnections, recheck } from './mqtt/connect-auth.js';
import type { Connection } from './mqtt/connection.js';
import type { DeviceDeps, DeviceFinding } from './mqtt/device.js';
import type { MqttAddress } from './mqtt/listener.js';
import { REASON } from './mqtt/reason-codes.js';
import type { Arrivals } from './presence/arrivals.js';
import { createOfflineTimeouts } from './presence/offline-timeout.js';
import { createPresence, DEVICE_GROUPS, type Presence } from './presence/presence.js';
import { createRetryQueue, type RetryQueue, runEach } from './presence/retry-queue.js';
import type { ReceiveDeps } from './receive.js';

export interface GatewayDeps extends DeviceDeps, ReceiveDeps {
  /** Null if devices cannot connect directly. */
  readonly address: MqttAddress | null;
  /** An external broker; null if none is configured. */
  readonly broker: BridgeAddress | null;
  /** For the simulation: what accepts devices instead. */
  readonly startBroker?: (deps: BrokerDeps) => Promise<Broker>;
  readonly audit: Audit;
  readonly refusedPackets: RefusedPackets;
  readonly arrivals: Arrivals;
  readonly wrongClocks: WrongClocks;
  /** Called for each message that is acknowledged and not stored. */
  readonly onRefused: () => void;
  readonly log: {
    info(details: object, message: string): void;
    debug(details: object, message: string): void;
    warn(details: object, message: string): void;
    error(details: object, message: string): void;
  };
}

export interface Gateway {
  /** Resolves with the address; null if devices cannot connect directly. Throws 503: it may be called again then. */
  start(): Promise<string | null>;
  apply(change: Change): void;
  /** For a gap in the change stream. */
  reset(): void;
  stop(): Promise<void>;
}

export function createGateway(deps: GatewayDeps): Gateway {
  const { storePresence, reportedOffline } = deps.arrivals;
  const presence = createPresence({ ...deps, ingest: storePresence });
  const offlineTimeouts = createOfflineTimeouts({ ...deps, ingest: storePresence, reportedOffline });
  const deliverer = createDeliverer(deps);
  const reportInvalidMessage = createInvalidMessageReporter(deps);
  const returns = createReturns(deps, presence);
  const findDevice = createDeviceFinder(deps.database, DEVICE_GROUPS);
  const inner = { ...deps, findDevice, presence, deliverer, reportInvalidMessage, returns };
  let mqtt: Broker | null = null;
  let broker: Bridge | null = null;
  return {
    async start() {
      // First, because it may fail.
      if (deps.address !== null || deps.broker !== null) await presence.start();
      offlineTimeouts.start();
      deps.wrongClocks.start();
      const { instance } = presence;
      if (deps.broker !== null) broker = startBridge({ ...inner, instance, address: deps.broker });
      if (deps.address !== null) mqtt = await startListening(inner, deps.address);
      return mqtt?.url ?? null;
    },
    apply(change) {
      offlineTimeouts.apply(change);
      deps.wrongClocks.apply(change);
      const objectId = change.store === 'presence' ? change.id : change.objectId;
      const connection = objectId === null ? undefined : mqtt?.connections.get(objectId);
      if (connection !== undefined) applyTo(inner, connection, change);
      else broker?.apply(change);
      if (!AFFECTING_STORES.has(change.store)) return;
      const affected = [...(mqtt?.connections.values() ?? [])].filter((one) => mayAffectConnections(one, change));
      checkAll(inner, affected, (one) => recheck(inner, one));
    },
    reset() {
      deps.arrivals.invalidateAll();
      deps.wrongClocks.reset();
      offlineTimeouts.reset();
      broker?.reset();
      checkAll(inner, [...(mqtt?.connections.values() ?? [])], (one) => recheckAll(inner, one));
    },
    async stop() {
      await Promise.all([offlineTimeouts.stop(), deps.wrongClocks.stop(), presence.stop(), returns.stop()]);
      await Promise.all([mqtt?.stop(), broker?.stop()]);
    },
  };
}

interface InnerDeps extends GatewayDeps, DeviceFinding {
  readonly presence: Presence;
  readonly deliverer: Deliverer;
  readonly reportInvalidMessage: ReportInvalidMessage;
  readonly returns: RetryQueue<Connection>;
}

function startListening(deps: InnerDeps, address: MqttAddress): Promise<Broker> {
  const { deliverer, presence } = deps;
  return (deps.startBroker ?? startBroker)({
    ...deps,
    address,
    onSubscribe: deliverer.deliver,
    onConfirm: deliverer.confirm,
    onDisconnect(connection) {
      deliverer.end(connection);
      presence.leave(connection.device.record.objectId, connection.id);
    },
  });
}

function checkAll(
  { log }: InnerDeps,
  connections: readonly Connection[],
  check: (connection: Connection) => Promise<void>,
): void {
  void runEach(connections, check).then((failed) => {
    if (failed === null) return;
    const { items, error } = failed;
    log.error({ err: error, connections: items.length }, 'failed to check connections');
  });
}

/** After a gap in the change stream: permissions, newer connections and commands may have been missed. */
async function recheckAll(deps: InnerDeps, connection: Connection): Promise<void> {
  await recheck(deps, connection);
  const known = await deps.presence.find(connection.device.record.objectId);
  if (known !== null && known.id !== connection.id) return connection.peer.end(REASON.takenOver, TAKEN_OVER);
  // Another instance took it for lost.
  if (known === null || known.isEnded) deps.returns.add(connection);
  deps.deliverer.deliver(connection);
}

const TAKEN_OVER = 'a newer connection of the device took over';

function applyTo(deps: InnerDeps, connection: Connection, change: Change): void {
  if (change.store === 'presence') applyPresence(deps, connection, change);
  if (change.store === 'commands' && change.after?.status === 'queued') deps.deliverer.wake(connection);
}

const AFFECTING_STORES: ReadonlySet<string> = new Set(['objects', 'models', 'tokens', 'users', 'roles', 'groups']);

/** Closes a connection if its device has a newer one on any instance. If the device was marked as disconnected, marks it online again. */
function applyPresence({ returns }: InnerDeps, connection: Connection, { after }: Change): void {
  const isOurs = after?.connection === connection.id;
  if (after !== null && !isOurs) {
    if (Number(after.since) > connection.sinceMs) connection.peer.end(REASON.takenOver, TAKEN_OVER);
    return;
  }
  if (after === null || after.ended !== null) returns.add(connection);
}

/** Marks connected devices online again, for example all devices of an instance whose heartbeat was late. */
function createReturns({ log }: GatewayDeps, presence: Presence): RetryQueue<Connection> {
  const arrive = async (connection: Connection): Promise<void> => {
    if (connection.peer.isEnded) return;
    connection.sinceMs = (await presence.arrive(connection.device.record, connection.id)).sinceMs;
  };
  return createRetryQueue({
    run: (connections) => runEach(connections, arrive),
    onFailure: (details) => log.warn(details, 'failed to mark connected devices online; retrying'),
  });
}
