/** Adds the state of objects to lists and single reads: computed when it is read, and written after the stored fields. */
import type { Document } from 'mongodb';
import type { Store } from '../core/stores.js';
import type { JsonWriter } from '../platform/mongo/bson/json-writer.js';
import type { PrepareExtra } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { projectionOf } from '../platform/mongo/schema/mapping.js';
import { findStates } from './latest.js';
import { findLatestValues, type WantedValues } from './latest-values.js';

/** The fields to show. `isOfEach` shows the latest value of each parameter instead of the state. */
export interface Shown {
  readonly only: readonly string[] | null;
  readonly isOfEach?: boolean | undefined;
  readonly latestAfter?: string | null | undefined;
}

/** The projection of the stored fields. */
export function projected(store: Store, only: readonly string[] | null): { projection?: Document } {
  // `state` is not stored with the object, so the projection contains only stored fields.
  const own = only !== null && store.name === 'objects' ? only.filter((path) => !isState(path)) : only;
  const projection = projectionOf(store, own);
  return projection === undefined ? {} : { projection };
}

const isState = (path: string): boolean => path === 'state' || path.startsWith('state.');

/** Looks up the states of a batch of objects; undefined when no state is shown. */
export function stateOf(
  database: Database,
  store: Store,
  { only, isOfEach = false, latestAfter = null }: Shown,
): PrepareExtra | undefined {
  if (store.name !== 'objects' || (only !== null && !only.some(isState))) return undefined;
  const paths = only === null || only.includes('state') ? null : only.filter(isState).map((path) => path.slice(6));
  if (isOfEach) return latestOf(database, { paths, after: latestAfter });
  return async (ids) => {
    const states = await findStates(database, ids, paths);
    return (writer, id) => writeState(writer, states.get(id) ?? null);
  };
}

function latestOf(database: Database, wanted: WantedValues): PrepareExtra {
  return async (ids) => {
    const found = await findLatestValues(database, ids, wanted);
    return (writer, id) => {
      const { values, next } = found.get(id) ?? { values: null, next: null };
      writeState(writer, values, 'latest');
      if (next !== null) writer.raw(`,"latestNext":${asciiJson(next)}`);
    };
  };
}

/** The writer takes ASCII. */
const asciiJson = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

export function writeState(writer: JsonWriter, state: Uint8Array | null, name = 'state'): void {
  if (state === null) return;
  writer.raw(`,"${name}":`);
  writer.document(state);
}
