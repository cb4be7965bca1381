/** Sources: the key is made here and shown once; whoever makes one must have the rights that its key gives. */
import { type Caller, scopeOf } from '../../core/access.js';
import { DEFAULT_MODEL_ID } from '../../core/builtin.js';
import { badRequest } from '../../core/errors.js';
import { isObject, type JsonObject } from '../../core/json.js';
import { checkSource } from '../../core/source.js';
import { builtInStore } from '../../core/stores.js';
import { assertCanGrant, getReferencedId, type HookDeps, type StoreHooks, toNewEntity } from '../../entities/hooks.js';
import { findPlace } from '../../entities/place.js';
import { createEntity } from '../../entities/write.js';
import { forgetPayloads } from './refused-payloads.js';
import { createKey, hashKey } from './source-store.js';

const COMMANDING = ['GET /objects/*/commands', 'POST /objects/*/commands/*'];

/** Whether the answers to whoever has the key contain commands. */
const givesCommands = ({ map }: JsonObject): boolean => isObject(map) && map.commands === true;

/** What a key permits: packets of all objects of the group, with `register` new objects there, and commands if answers contain them. */
export function assertCanSend(caller: Caller, source: JsonObject): void {
  const { register } = source;
  const registering = register === true ? ['POST /objects'] : [];
  assertCanGrant(caller, ['POST /objects/*/packets', ...registering, ...(givesCommands(source) ? COMMANDING : [])]);
}

/** Commands of all objects of the group go to this address, or out with answers, with their parameters, and count as sent. */
function assertCanCommand(caller: Caller, source: JsonObject): void {
  if (typeof source.commandUrl === 'string' || givesCommands(source)) assertCanGrant(caller, COMMANDING);
}

/**
 * The key for commands, which no answer contains. It belongs to the address that it is given with: whoever may change a source must not
 * send its key to an address of their own.
 */
function keepCommandKey({ commandKey, ...fields }: JsonObject): JsonObject {
  if (commandKey === undefined) return fields;
  if (commandKey === null) return { ...fields, _commandKey: null };
  if (typeof fields.commandUrl !== 'string') throw badRequest('commandKey: only together with commandUrl');
  return { ...fields, _commandKey: { origin: new URL(fields.commandUrl).origin, key: commandKey } };
}

export function sourceHooks({ database, now }: HookDeps): StoreHooks {
  const store = builtInStore('sources');
  const findModel = (caller: Caller, model: JsonObject[string]): Promise<string> =>
    model === DEFAULT_MODEL_ID
      ? Promise.resolve(model)
      : getReferencedId({ database, caller }, 'model', builtInStore('models'), model);
  return {
    async create(caller, { fields, group }) {
      assertCanSend(caller, fields);
      assertCanCommand(caller, fields);
      checkSource(fields);
      const model = await findModel(caller, fields.model ?? DEFAULT_MODEL_ID);
      const place = await findPlace(database, scopeOf(caller), group);
      const key = createKey();
      const stored = { ...keepCommandKey(fields), model, _key: hashKey(key) };
      return { ...(await createEntity(database, store, toNewEntity(caller, stored, place, now()))), key };
    },
    async preparePatch(caller, _key, given) {
      assertCanCommand(caller, given);
      const patch = keepCommandKey(given);
      if (patch.register === true) assertCanSend(caller, patch);
      return patch.model === undefined ? patch : { ...patch, model: await findModel(caller, patch.model) };
    },
    afterRemove: ({ _id }) => forgetPayloads(database, _id),
  };
}
