/** The devices' door put together: where they connect, and what a change in the database means for those that are here. */
import type { Audit } from '../db/audit.js';
import type { Change } from '../model/change.js';
import { isConcerned, recheck } from './admission.js';
import type { Connection } from './connection.js';
import { createDeliverer } from './deliver.js';
import type { DeviceParts } from './device.js';
import { createFaults } from './faults.js';
import { createIdle } from './idle.js';
import type { MqttAddress } from './listener.js';
import { type Mqtt, startMqtt } from './mqtt.js';
import { createPresence, type Presence } from './presence.js';
import type { ReceiveParts } from './receive.js';

export interface GatewayParts extends DeviceParts, ReceiveParts {
  /** Null where devices cannot connect. */
  readonly address: MqttAddress | null;
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
  const tellFault = createFaults(parts);
  const presence = createPresence(parts);
  const idle = createIdle(parts);
  let mqtt: Mqtt | null = null;
  const forEach = (work: (connection: Connection) => Promise<unknown>, which = (_one: Connection) => true): void => {
    for (const connection of mqtt?.connections.values() ?? []) {
      if (!which(connection)) continue;
      work(connection).catch((error) => parts.log.error({ err: error }, 'a connection could not be checked'));
    }
  };
  const deliverer = createDeliverer(parts);
  const on = {
    onSubscribe: deliverer.wake,
    onConfirm: deliverer.confirm,
    onDisconnect(connection: Connection): void {
      deliverer.end(connection);
      presence.leave(connection.device.record.objectId, connection.id);
    },
  };
  return {
    async start() {
      await idle.start();
      if (parts.address === null) return null;
      await presence.start();
      mqtt = await startMqtt({ ...parts, ...on, presence, address: parts.address, tellFault });
      return mqtt.url;
    },
    apply(change) {
      idle.apply(change);
      const objectId = change.store === 'presence' ? change.id : change.objectId;
      const connection = objectId === null ? undefined : mqtt?.connections.get(objectId);
      if (connection !== undefined && change.store === 'presence') {
        applyPresence(presence, connection, change, parts.log);
      }
      if (connection !== undefined && change.store === 'commands' && change.after?.status === 'queued') {
        deliverer.wake(connection);
      }
      if (!CONCERNING.has(change.store)) return;
      forEach(
        (one) => recheck(parts, one),
        (one) => isConcerned(one, change),
      );
    },
    applyAny() {
      idle.applyAny();
      forEach(async (one) => {
        await recheck(parts, one);
        if (!(await presence.holds(one.device.record.objectId, one.id))) one.client.close();
        deliverer.wake(one);
      });
    },
    async stop() {
      await Promise.all([idle.stop(), presence.stop()]);
      await mqtt?.stop();
    },
  };
}

const CONCERNING: ReadonlySet<string> = new Set(['objects', 'models', 'tokens', 'users', 'roles', 'groups']);

/** The newest connection of a device is the one that counts, wherever it is; who was taken for gone says otherwise. */
function applyPresence(presence: Presence, connection: Connection, { after }: Change, log: GatewayParts['log']): void {
  const isOurs = after?.connection === connection.id;
  if (after !== null && !isOurs) {
    if (Number(after.since) > connection.sinceMs) connection.client.close();
    return;
  }
  if (after !== null && after.ended === null) return;
  presence.arrive(connection.device.record, connection.id).then(
    (sinceMs) => {
      connection.sinceMs = sinceMs;
    },
    (error) => log.error({ err: error }, 'a device that is here could not be told so'),
  );
}
