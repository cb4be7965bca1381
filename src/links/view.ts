/** What a visitor of a share link sees of its object now. */
import { BSON } from 'mongodb';
import { isObject, type JsonObject } from '../core/json.js';
import { type LinkTerms, toShownObject, toShownPacket } from '../core/link.js';
import { nodesOf } from '../core/model.js';
import { builtInStore } from '../core/stores.js';
import { statesIn, thresholdsIn, type ValueState, type ValueThreshold } from '../core/tones.js';
import { findState } from '../packets/latest.js';
import { findLatestValues } from '../packets/latest-values.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findStored } from '../platform/mongo/schema/lookup.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import { readName } from './link-store.js';
import type { Viewer } from './viewer.js';

export async function readView(database: Database, viewer: Viewer): Promise<JsonObject> {
  const { linkId, terms, object, expiresAtMs } = viewer;
  const { objectId, fields, history } = terms;
  const [name, state, latest] = await Promise.all([
    readName(database, linkId),
    findState(database, objectId),
    findLatestValues(database, [objectId], { paths: fields, after: null }),
  ]);
  // A report of presence is no value.
  const { online: _, ...values } = toObject(latest.get(objectId)?.values ?? null);
  return {
    name,
    expiresAt: expiresAtMs,
    history,
    object: toShownObject(object, fields),
    state: state === null ? null : toShownPacket(toObject(state), fields),
    latest: values,
    parameters: await describeParameters(database, String(object.model), { fields, names: Object.keys(values) }),
  };
}

function toObject(document: Uint8Array | null): JsonObject {
  const plain = document === null ? null : toPlain(BSON.deserialize(document));
  return isObject(plain) ? plain : {};
}

/** Names, units and meanings of the shown parameters: a model says more than a link may. */
async function describeParameters(
  database: Database,
  modelId: string,
  { fields, names }: { readonly fields: LinkTerms['fields']; readonly names: readonly string[] },
): Promise<JsonObject[]> {
  const found = await findStored(database, builtInStore('models'), '_id', modelId);
  const wanted = new Set([...(fields ?? []), ...names]);
  const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
  return nodesOf(toObject(found).data, 'argument')
    .filter(({ id }) => wanted.has(String(id)))
    .map(({ id, name, unit, states, thresholds }) => ({
      id: String(id),
      name: text(name),
      unit: text(unit),
      ...(states != null && { states: statesIn(states).map(toState) }),
      ...(thresholds != null && { thresholds: thresholdsIn(thresholds).map(toThreshold) }),
    }));
}

const toState = ({ value, label = null, tone = null }: ValueState): JsonObject => ({ value, label, tone });

const toThreshold = ({ from = null, to = null, tone, label = null }: ValueThreshold): JsonObject => ({
  from,
  to,
  tone,
  label,
});
