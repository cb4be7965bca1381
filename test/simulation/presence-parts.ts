/**
 * The parts of an instance that presence passes through: the real gateway with its reports, deliveries and rechecks, and the real
 * authentication and storing of a connection. Sockets and the bytes of MQTT are left out: `acceptDevices` stands for them.
 */
import type { Logger } from 'pino';
import type { Audit } from '../../src/accounts/audit.js';
import { createDevicePasswords } from '../../src/accounts/device-passwords.js';
import type { Identify } from '../../src/accounts/identify.js';
import type { Caches } from '../../src/caches.js';
import { createDigest } from '../../src/devices/dedup-id.js';
import { createGateway, type Gateway } from '../../src/devices/gateway.js';
import type { Broker, BrokerDeps } from '../../src/devices/mqtt/broker.js';
import { createConnectAuth } from '../../src/devices/mqtt/connect-auth.js';
import { type Connection, receivePublished } from '../../src/devices/mqtt/connection.js';
import { NO_LIMITS, type Peer } from '../../src/devices/mqtt/peer.js';
import { createArrivals } from '../../src/devices/presence/arrivals.js';
import type { Ingest } from '../../src/packets/ingest.js';
import { createInsertOrder } from '../../src/packets/insert-order.js';
import type { RefusedPackets } from '../../src/packets/refused-packets.js';
import type { WrongClocks } from '../../src/packets/wrong-clocks.js';
import { clock } from '../../src/platform/clock.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';

/** The key of the installation, and the password of every device. */
const KEY = Buffer.alloc(32, 7);
export const DEVICE_PASSWORD = 'secret';

/** A message of a device. */
export interface Sample {
  readonly messageId: number;
  readonly payload: string;
  readonly isAgain: boolean;
}

/** A device's end of a connection. */
export interface DeviceSide {
  /** The connection is accepted. */
  onOpen(): void;
  /** The instance has ended it, or refused it. */
  onEnd(): void;
  onStored(messageId: number): void;
}

/** The instance's end. */
export interface InstanceSide {
  publish(sample: Sample): void;
  /** The instance learns that the connection has ended. */
  end(): void;
}

export interface PresenceParts {
  readonly gateway: Gateway;
  /** Stores packets, and that their object is online. */
  readonly ingest: Ingest;
  connect(ownId: string, side: DeviceSide): InstanceSide;
}

export interface PresencePartsDeps {
  readonly database: Database;
  readonly caches: Caches;
  readonly identify: Identify;
  /** Stores packets as they are. */
  readonly ingest: Ingest;
  readonly isLive: () => boolean;
  readonly log: Logger;
}

const nothing = (): void => undefined;

export function createPresenceParts(deps: PresencePartsDeps): PresenceParts {
  const { database, caches, identify, ingest, isLive, log } = deps;
  const digest = createDigest(KEY);
  const arrivals = createArrivals({ database, ingest, digest, isLive, log });
  let accept: PresenceParts['connect'] | null = null;
  const gateway = createGateway({
    database,
    identify,
    digest,
    arrivals,
    log,
    now: clock.now,
    models: caches.models,
    devicePasswords: createDevicePasswords(KEY),
    ingest: arrivals.ingest,
    parsing: createInsertOrder(),
    address: {} as never,
    broker: null,
    async startBroker(brokerDeps) {
      const { broker, connect } = acceptDevices(brokerDeps);
      accept = connect;
      return broker;
    },
    audit: { record: nothing } as unknown as Audit,
    refusedPackets: { record: nothing } as unknown as RefusedPackets,
    wrongClocks: { start: nothing, apply: nothing, reset: nothing } as unknown as WrongClocks,
    onRefused: nothing,
  });
  return {
    gateway,
    ingest: arrivals.ingest,
    connect(ownId, side) {
      if (accept === null) throw new Error('the gateway does not accept devices yet');
      return accept(ownId, side);
    },
  };
}

/** As `mqtt/broker.ts` and `mqtt/publish.ts` do. */
function acceptDevices(deps: BrokerDeps): { broker: Broker; connect: PresenceParts['connect'] } {
  const connectAuth = createConnectAuth(deps);
  const connections = new Map<string, Connection>();
  const onEnded = (connection: Connection): void => {
    const { objectId } = connection.device.record;
    if (connections.get(objectId) === connection) connections.delete(objectId);
    connectAuth.disconnect(connection);
    deps.onDisconnect(connection);
  };
  const connect = (ownId: string, side: DeviceSide): InstanceSide => {
    let connection: Connection | null = null;
    let isEnded = false;
    const end = (): void => {
      if (isEnded) return;
      isEnded = true;
      if (connection !== null) onEnded(connection);
      side.onEnd();
    };
    const state = { version: 5, limits: NO_LIMITS, address: '10.0.0.2', ending: 'lost', end, close: end, finish: end };
    const peer = Object.defineProperty(state, 'isEnded', { get: () => isEnded }) as unknown as Peer;
    const session = { continuesSession: true, keepsSession: true, marksRepeats: false, will: null };
    const credentials = { clientId: ownId, username: null, password: DEVICE_PASSWORD, address: peer.address };
    connectAuth.authenticate({ peer, ...session }, credentials).then((connected) => {
      connection = connected;
      if (isEnded) return onEnded(connected);
      const { objectId } = connected.device.record;
      connections.get(objectId)?.peer.end(0, 'a newer connection of the device took over');
      connections.set(objectId, connected);
      side.onOpen();
    }, end);
    return {
      end,
      publish({ messageId, payload, isAgain }) {
        if (connection === null || isEnded) return;
        const published = { topic: 'base/state', payload, qos: 1, dup: isAgain, messageId } as const;
        receivePublished(deps, connection, published).then((error) => {
          if (error !== null) throw error;
          if (!isEnded) side.onStored(messageId);
        }, end);
      },
    };
  };
  return { broker: { url: 'simulated', connections, stop: async () => undefined }, connect };
}
