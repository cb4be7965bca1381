/** Objects: their model is one the caller sees; their packets end, and their commands are shared, with them. */
import { shareCommands } from '../../db/commands.js';
import { removePackets } from '../../db/packets.js';
import type { Caller } from '../../model/access.js';
import { DEFAULT_MODEL_ID } from '../../model/builtin.js';
import type { JsonObject } from '../../model/json.js';
import { builtInStore } from '../../model/stores.js';
import { getReferenced, type Rule, type RuleParts } from './rule.js';

export function objectRule({ database, inBackground }: RuleParts): Rule {
  const withModel = async (caller: Caller, fields: JsonObject, model: JsonObject[string]): Promise<JsonObject> => {
    const { _id } = await getReferenced(database, caller, builtInStore('models'), model, 'model');
    const { id, name, model: _, ...rest } = fields;
    return {
      ...(id !== undefined && { id }),
      ...(name !== undefined && { name }),
      model: _id,
      models: { id: _id },
      ...rest,
    };
  };
  return {
    prepareNew: (caller, fields) => withModel(caller, fields, fields.model ?? DEFAULT_MODEL_ID),
    preparePatch: async (caller, _key, patch) =>
      patch.model === undefined ? patch : withModel(caller, patch, patch.model),
    // Who sees the object sees what was commanded to it, and nobody else.
    afterShare: ({ _id }, userId, shared) => shareCommands(database, _id, userId, shared),
    // Years of packets take longer than a request may: nobody can see them any more meanwhile.
    afterRemove: async ({ _id }) => inBackground(removePackets(database, _id)),
  };
}
