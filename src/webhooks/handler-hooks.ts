/** Handlers: one with an address is a webhook, with a secret of its own, and no more rights than those who set it up. */
import { isDeepStrictEqual } from 'node:util';
import { type Caller, scopeOf, withObjectIds } from '../core/access.js';
import { conflict } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { parseUrl, parseWebhook } from '../core/webhook.js';
import { type HookDeps, type StoreHooks, toNewEntity } from '../entities/hooks.js';
import { inSequence } from '../entities/in-sequence.js';
import { findPlace } from '../entities/place.js';
import { getEntity } from '../entities/read.js';
import { createEntity, newId } from '../entities/write.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { removeDeliveries, withholdFormer } from './delivery-upkeep.js';
import { countWebhooks, type Editor, loadHandler, toHandover } from './handlers.js';

export const editorOf = (caller: Caller): Editor => ({
  userId: caller.userId,
  scopes: caller.scopes && withObjectIds(caller.scopes, scopeOf(caller)),
});

const toStored = ({ userId, scopes }: Editor): JsonObject => ({
  _editor: { user: userId, scopes: scopes === null ? null : [...scopes] },
});

/** What decides who receives the messages: at a receiver of many, the headers name the account. */
const DECISIVE: readonly string[] = ['url', 'headers'];

export interface HandlerHookDeps extends HookDeps {
  /** Creates a secret that webhooks are signed with. */
  readonly createSecret: () => string;
  /** Throws a 400 if webhooks must not be sent to the address. */
  readonly checkReceiver: (url: string) => Promise<void>;
}

export function handlerHooks({
  database,
  now,
  inBackground,
  createSecret,
  checkReceiver,
}: HandlerHookDeps): StoreHooks {
  // What waits is for those in whose hands the handler was.
  const handOver = (): JsonObject => toHandover(newId(), now());
  const empty = (id: string): void => inBackground(withholdFormer(database, id, now()));
  return {
    async create(caller, { fields, group }) {
      const settings = parseWebhook(fields);
      if (settings !== null) await checkReceiver(settings.url);
      const place = await findPlace(database, scopeOf(caller), group);
      const store = builtInStore('handlers');
      if (settings === null) return createEntity(database, store, toNewEntity(caller, fields, place, now()));
      const secret = createSecret();
      const hidden = { ...toStored(editorOf(caller)), _secrets: [{ secret, until: null }] };
      const entity = toNewEntity(caller, { ...fields, ...hidden }, place, now());
      return inSequence('webhooks', async () => {
        await checkCount(database, place.branch);
        return { ...(await createEntity(database, store, entity)), secret };
      });
    },
    async preparePatch(caller, key, patch) {
      if (!DECISIVE.some((field) => field in patch)) return patch;
      const stored = await getEntity(database, builtInStore('handlers'), scopeOf(caller), key);
      // Clients send back what they have read: whoever changes something else does not answer for where it goes, nor undo
      // what another says of it meanwhile.
      const isSame = (field: string): boolean =>
        DECISIVE.includes(field) && isDeepStrictEqual(patch[field], stored[field]);
      const changes = Object.fromEntries(Object.entries(patch).filter(([field]) => !isSame(field)));
      if (!DECISIVE.some((field) => field in changes)) return changes;
      if (typeof changes.url === 'string') {
        await checkReceiver(parseUrl(changes.url).href);
        if (typeof stored.url !== 'string') await checkCount(database, stored.branch);
      }
      const isOther = 'url' in changes || (await isOfAnother(database, caller, stored._id));
      // What it sends from now on is what both may see: who made it, and who has just said where it goes.
      return { ...changes, ...toStored(editorOf(caller)), ...(isOther && handOver()) };
    },
    afterChange: async ({ _id }, patch) => {
      if ('_handover' in patch) empty(_id);
    },
    shareMarks: handOver,
    afterShare: async ({ _id }) => empty(_id),
    afterRemove: async ({ _id }) => inBackground(removeDeliveries(database, _id)),
  };
}

/** Headers name the account at a receiver of many, but whoever has set it up may renew them. */
async function isOfAnother(database: Database, { userId }: Caller, handlerId: string): Promise<boolean> {
  const handler = await loadHandler(database, handlerId);
  return handler !== null && handler.editor.userId !== userId;
}

async function checkCount(database: Database, [, tenant]: readonly string[]): Promise<void> {
  const [own, all] = await Promise.all([
    tenant === undefined ? 0 : countWebhooks(database, tenant, LIMITS.webhooksPerTenant),
    countWebhooks(database, null, LIMITS.webhooks),
  ]);
  if (own >= LIMITS.webhooksPerTenant) {
    throw conflict(`there are ${LIMITS.webhooksPerTenant} webhooks of your organisation already`);
  }
  if (all >= LIMITS.webhooks) throw conflict(`there are ${LIMITS.webhooks} webhooks already`);
}
