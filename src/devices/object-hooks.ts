/** Objects: checks the model, hashes device passwords, and applies sharing and removal to commands and packets. */
import { followObject, moveFollowing } from '../commands/command-store.js';
import type { Caller } from '../core/access.js';
import { DEFAULT_MODEL_ID } from '../core/builtin.js';
import { explainSeconds } from '../core/duration.js';
import { badRequest } from '../core/errors.js';
import { isObject, type JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { getReferencedId, type HookDeps, type StoreHooks } from '../entities/hooks.js';
import { removePackets } from '../packets/packets.js';
import { createFairQueue } from '../platform/fair-queue.js';
import { parseOfflineAfter } from './devices.js';

export interface ObjectHookDeps extends HookDeps {
  /** Hashes a device password for storage. */
  readonly hashDevicePassword: (password: string) => string;
}

export function objectHooks({ database, inBackground, hashDevicePassword }: ObjectHookDeps): StoreHooks {
  // A bulk request removes many objects at once. The retention removes packets whose removal does not start in time.
  const emptying = createFairQueue('removed objects', {
    atOnce: LIMITS.objectsEmptiedAtOnce,
    perCaller: LIMITS.objectsEmptiedAtOnce,
    waiting: LIMITS.objectsEmptiedWaiting,
    waitingPerCaller: LIMITS.objectsEmptiedWaiting,
    waitMs: LIMITS.orphanGraceMs,
  });
  const withModel = async (caller: Caller, fields: JsonObject, model: JsonObject[string]): Promise<JsonObject> => {
    const { id, name } = fields;
    // The built-in model is visible to every caller and cannot be removed.
    const isDefault = model === DEFAULT_MODEL_ID;
    const _id = isDefault ? model : await getReferencedId({ database, caller }, 'model', builtInStore('models'), model);
    const first = Object.assign({}, id !== undefined && { id }, name !== undefined && { name });
    return Object.assign(first, { model: _id, models: { id: _id } }, fields, { model: _id });
  };
  return {
    prepareNew: (caller, fields) =>
      withModel(caller, withPasswordHash(hashDevicePassword, fields), fields.model ?? DEFAULT_MODEL_ID),
    preparePatch: async (caller, _key, patch) => {
      const stored = withPasswordHash(hashDevicePassword, patch);
      return patch.model === undefined ? stored : withModel(caller, stored, patch.model);
    },
    // The commands of an object have the same audience as the object.
    afterShare: ({ _id }) => followObject(database, _id),
    moveAlong: ({ _id, to }, session) => moveFollowing(database, _id, to, session),
    afterMove: ({ _id }) => followObject(database, _id),
    // Removing years of packets takes longer than a request may. Without their object the packets are not visible.
    afterRemove: async ({ _id }) => inBackground(emptying.run('', () => removePackets(database, _id))),
  };
}

/** Checks the settings of the device in `config` and hashes its password (docs/reference/mqtt.md). */
function withPasswordHash(hashPassword: (password: string) => string, fields: JsonObject): JsonObject {
  const { config } = fields;
  if (!isObject(config)) return fields;
  const fault = explainSeconds(config.offlineAfter);
  if (fault !== null) throw badRequest(`config.offlineAfter: ${fault}`);
  if (config.offlineAfter != null && parseOfflineAfter(config.offlineAfter) === null) {
    throw badRequest(
      'config.offlineAfter: expected a duration from 1 s to 366 days, such as "10 min", or milliseconds',
    );
  }
  if (!isObject(config.auth)) return fields;
  const { username, password } = config.auth;
  for (const [name, value] of Object.entries({ username, password })) {
    if (value == null || (typeof value === 'string' && value.length <= LIMITS.passwordCharactersMax)) continue;
    throw badRequest(`config.auth.${name}: expected text of at most ${LIMITS.passwordCharactersMax} characters`);
  }
  if (typeof password !== 'string' || password === '') return fields;
  return { ...fields, config: { ...config, auth: { ...config.auth, password: hashPassword(password) } } };
}
