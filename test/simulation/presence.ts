/** Presence in a world: devices that come and go over MQTT, silences after which devices count as offline, and what must be true at rest. */
import type { Document } from 'mongodb';
import { isReport, toPlain } from './database/documents.js';
import type { SimulatedDatabase } from './database/network.js';
import type { SendingDevice } from './device.js';
import { MqttDevice } from './mqtt-device.js';
import { fail } from './oracles.js';
import { latestOf, reportsOf } from './presence-oracles.js';
import type { PresenceStep } from './steps.js';
import type { VirtualTime } from './virtual-time.js';

export interface PresenceOptions {
  readonly time: VirtualTime;
  readonly database: SimulatedDatabase;
  readonly devices: readonly SendingDevice[];
  /** Sets `config.offlineAfter` of an object; null: it has none any more. */
  readonly setOfflineAfter: (objectId: string, ms: number | null) => void;
  readonly note: (name: string, details?: string) => void;
}

/** `config.offlineAfter` at the beginning, by the number of the device: those with even numbers are connected over MQTT. */
const OFFLINE_AFTER_MS: readonly (number | null)[] = [null, 4_000, 6_000, null];
/** How many messages are sent together. */
const BURST = 8;
/** A device that was heard this much before, or after, its time is over may be either. */
const UNSURE_MS = 4_000;

export const isMqtt = (nth: number): boolean => nth % 2 === 0;

export const initialConfig = (nth: number): Document => {
  const ms = OFFLINE_AFTER_MS[nth] ?? null;
  return { auth: { password: 'secret' }, ...(ms !== null && { offlineAfter: ms }) };
};

export class Presence {
  readonly #options: PresenceOptions;

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  get #mqtt(): readonly MqttDevice[] {
    return this.#options.devices.filter((one): one is MqttDevice => one instanceof MqttDevice);
  }

  /** All devices come, and stay. */
  wake(): void {
    for (const device of this.#mqtt) device.wake();
  }

  /** All devices are cut off, which the instances learn at once. */
  leave(): void {
    for (const device of this.#mqtt) device.break(1);
  }

  perform(step: PresenceStep): void {
    const { devices, time, setOfflineAfter } = this.#options;
    const nth = step.device % devices.length;
    const device = devices[nth];
    if (step.kind === 'silence') {
      // Whether a device has this, or its connection counts, stays as it is.
      if (nth === 1 || (nth === 2 && step.offlineAfterMs !== null)) {
        setOfflineAfter(device?.objectId as string, step.offlineAfterMs);
      }
    } else if (step.kind === 'burst') {
      for (let more = 0; more < BURST; more++) {
        const sender = more % 2 === 0 ? device : devices[(nth + more) % devices.length];
        time.after(more * step.apartMs, null, () => sender?.send(1, null));
      }
    } else if (device instanceof MqttDevice) {
      device.break(step.learnsMs);
      time.after(step.awayMs, null, () => device.wake());
    }
  }

  /** Devices that are not what they should be: online where they are connected, or were heard a moment ago; offline otherwise. */
  unsettled(): string[] {
    const { devices, database } = this.#options;
    const { server } = database;
    const configs = new Map(server.committed('objects').map(({ _id, config }) => [String(_id), toPlain(config)]));
    const packets = server.committed('packets').map(toPlain);
    return devices.flatMap((device) => {
      const own = packets.filter(({ _oid }) => String(_oid) === device.objectId);
      const wanted = this.#wantedOf(device, own, configs.get(device.objectId)?.offlineAfter ?? null);
      const found = latestOf(own)?.online;
      if (wanted === null || found === wanted) return [];
      return [`device ${device.objectId} is ${found ? 'online' : 'offline'}, and should not be`];
    });
  }

  /** Null: it may be either. */
  #wantedOf(device: SendingDevice, packets: readonly Document[], offlineAfterMs: number | null): boolean | null {
    const isConnected = device instanceof MqttDevice ? device.isConnected : null;
    if (isConnected === true) return true;
    if (offlineAfterMs === null) return packets.length === 0 ? null : isConnected !== false;
    const heard = packets.filter((packet) => !isReport(packet)).map(({ _ts }) => _ts / 1_000);
    if (heard.length === 0) return null;
    const quietMs = this.#options.time.nowMs - Math.max(...heard) - offlineAfterMs;
    return Math.abs(quietMs) < UNSURE_MS ? null : quietMs < 0;
  }

  /** Reports alternate: none says that a device went offline that was. */
  check(): void {
    const { devices, database, note } = this.#options;
    const packets = database.server.committed('packets').map(toPlain);
    for (const { objectId } of devices) {
      const own = packets.filter(({ _oid }) => String(_oid) === objectId);
      for (const { online } of reportsOf(own)) note(`presence: reported ${online ? 'online' : 'offline'}`);
      const doubled = reportsOf(own).find(({ online, before }) => !online && before?.online === false);
      if (doubled !== undefined) fail(`device ${objectId} was reported offline twice, at ${doubled.packet.time}`);
    }
  }
}
