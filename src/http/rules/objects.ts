/** Objects: their model is one the caller sees, a device's password is sealed; packets end, and commands are shared, with them. */
import { followAccess } from '../../db/commands.js';
import { readOfflineAfter } from '../../db/devices.js';
import { removePackets } from '../../db/packets.js';
import { badRequest } from '../../errors.js';
import type { Caller } from '../../model/access.js';
import { DEFAULT_MODEL_ID } from '../../model/builtin.js';
import { isObject, type JsonObject } from '../../model/json.js';
import { LIMITS } from '../../model/limits.js';
import { builtInStore } from '../../model/stores.js';
import { getReferencedId, type Rule, type RuleParts } from './rule.js';

export function objectRule({ database, inBackground, sealDevice }: RuleParts): Rule {
  const withModel = async (caller: Caller, fields: JsonObject, model: JsonObject[string]): Promise<JsonObject> => {
    const { id, name } = fields;
    // Built in: everyone sees it, and it stays.
    const isDefault = model === DEFAULT_MODEL_ID;
    const _id = isDefault ? model : await getReferencedId({ database, caller }, 'model', builtInStore('models'), model);
    const first = Object.assign({}, id !== undefined && { id }, name !== undefined && { name });
    return Object.assign(first, { model: _id, models: { id: _id } }, fields, { model: _id });
  };
  return {
    prepareNew: (caller, fields) => withModel(caller, sealed(sealDevice, fields), fields.model ?? DEFAULT_MODEL_ID),
    preparePatch: async (caller, _key, patch) => {
      const stored = sealed(sealDevice, patch);
      return patch.model === undefined ? stored : withModel(caller, stored, patch.model);
    },
    // Who sees the object sees what was commanded to it, and nobody else.
    afterShare: ({ _id }) => followAccess(database, _id),
    // Years of packets take longer than a request may: nobody can see them any more meanwhile.
    afterRemove: async ({ _id }) => inBackground(removePackets(database, _id)),
  };
}

/** docs/reference/mqtt.md: what `config` says of the device is checked, its password stored so that no reader can use it. */
function sealed(seal: (password: string) => string, fields: JsonObject): JsonObject {
  const { config } = fields;
  if (!isObject(config)) return fields;
  if (config.offlineAfter != null && readOfflineAfter(config.offlineAfter) === null) {
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
  return { ...fields, config: { ...config, auth: { ...config.auth, password: seal(password) } } };
}
