/** The devices' door put together: where they connect, and what a change in the database means for those that are here. */
import type { Audit } from '../db/audit.js';
import type { Change } from '../model/change.js';
import { isConcerned, recheck } from './admission.js';
import type { Connection } from './connection.js';
import type { DeviceParts } from './device.js';
import { createFaults } from './faults.js';
import type { MqttAddress } from './listener.js';
import { type Mqtt, startMqtt } from './mqtt.js';
import type { ReceiveParts } from './receive.js';

export interface GatewayParts extends DeviceParts, ReceiveParts {
  /** Null where devices cannot connect. */
  readonly address: MqttAddress | null;
  readonly audit: Audit;
  readonly log: {
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
  const tellFault = createFaults(parts);
  let mqtt: Mqtt | null = null;
  const recheckWhere = (concerns: (connection: Connection) => boolean): void => {
    for (const connection of mqtt?.connections.values() ?? []) {
      if (!concerns(connection)) continue;
      recheck(parts, connection).catch((error) => parts.log.error({ err: error }, 'a connection could not be checked'));
    }
  };
  return {
    async start() {
      if (parts.address === null) return null;
      const ignored = (): undefined => undefined;
      const on = { onSubscribe: ignored, onConfirm: ignored, onDisconnect: ignored };
      mqtt = await startMqtt({ ...parts, ...on, address: parts.address, tellFault });
      return mqtt.url;
    },
    apply(change) {
      if (CONCERNING.has(change.store)) recheckWhere((connection) => isConcerned(connection, change));
    },
    applyAny: () => recheckWhere(() => true),
    stop: async () => mqtt?.stop(),
  };
}

const CONCERNING: ReadonlySet<string> = new Set(['objects', 'models', 'tokens', 'users', 'roles', 'groups']);
