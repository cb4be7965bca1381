/** The settings of the installation. Each instance holds them, and reads them again as soon as one of them changes them. */
import type { Change } from '../core/change.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { isDuplicate, mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { retryUntilAvailable } from '../platform/ops/lifecycle.js';
import type { MapChoice } from './map.js';

export interface Settings {
  /** Null until an administrator has chosen one. */
  map(): MapChoice | null;
  /** Stores the choice; null takes it back. */
  changeMap(choice: MapChoice | null, nowMs: number): Promise<void>;
  /** Reads what is stored. */
  load(): Promise<void>;
  /** Called for each change of the change stream. */
  apply(change: Pick<Change, 'store'>): Promise<void> | undefined;
  /** Called when changes were missed. */
  reset(): void;
}

export interface SettingsOptions {
  readonly database: Database;
  /** Until the service stops. */
  readonly signal: AbortSignal;
  readonly log: { error(details: object, message: string): void };
}

interface StoredMap {
  readonly _id: 'map';
  readonly value: MapChoice;
  readonly time: number;
}

const MAP = { _id: 'map' } as const;

export function createSettings({ database, signal, log }: SettingsOptions): Settings {
  const stored = database.db.collection<StoredMap>('settings');
  let map: MapChoice | null = null;
  let reading = Promise.resolve();
  const read = async (): Promise<void> => {
    map = (await mapDriverErrors(() => stored.findOne(MAP, COMMITTED_READ)))?.value ?? null;
  };
  /** One after the other: a read that takes long must not undo a later one. */
  const load = (): Promise<void> => {
    reading = reading.catch(() => undefined).then(read);
    return reading;
  };
  const store = async (choice: MapChoice | null, nowMs: number): Promise<void> => {
    if (choice === null) await stored.deleteOne(MAP);
    else await stored.replaceOne(MAP, { value: choice, time: nowMs }, { upsert: true });
  };
  return {
    map: () => map,
    async changeMap(choice, nowMs) {
      await mapDriverErrors(async () => {
        // Two instances may insert it at once.
        await store(choice, nowMs).catch((error) => {
          if (!isDuplicate(error)) throw error;
          return store(choice, nowMs);
        });
      });
      await load();
    },
    load,
    apply: ({ store: name }) => (name === 'settings' ? load() : undefined),
    reset() {
      retryUntilAvailable(load, { signal, onUnavailable: () => undefined }).catch((error) => {
        if (!signal.aborted) log.error({ err: error }, 'the settings of the installation could not be read');
      });
    },
  };
}
