/** The webhooks of the installation, and which of them receive an event. Updated from changes. */

import { ACCESS_FIELDS } from '../core/access.js';
import { type Change, mayHaveChanged } from '../core/change.js';
import { isId } from '../core/entity.js';
import { toApiError } from '../core/errors.js';
import { isAfter, secondsOf } from '../core/position.js';
import { parseWebhook, type WebhookSettings } from '../core/webhook.js';
import type { Limits, LiveEvent } from '../live/events.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { handoverIn, loadHandler, loadHandlers, type StoredHandler } from './handlers.js';
import { type RightsParts, toWebhook } from './rights.js';
import { maySend, type Reach, type Webhook } from './webhook.js';

export interface RegistryOptions extends RightsParts {
  readonly database: Database;
  /** Called when a webhook was changed or removed. */
  readonly onChange: (handlerId: string) => void;
  /** Called when somebody ended the pause of a webhook. */
  readonly onResume: (handlerId: string) => void;
}

export type MatchedEvent = Pick<LiveEvent, 'objectId' | 'audience' | 'limits'>;

export interface Registry {
  isEmpty(): boolean;
  /** Whether an event of this object may match any webhook. */
  mayMatch(objectId: string): boolean;
  find(handlerId: string): Webhook | undefined;
  /** Whether the handler was created, or has changed hands, after the change: what happened before is not sent to it. */
  isLater(webhook: Webhook, change: Pick<Change, 'position'>): boolean;
  all(): Iterable<Webhook>;
  /** Webhooks that select the object and may send it, whatever the event. */
  match(event: MatchedEvent): readonly Webhook[];
  /** Reads all of them. Throws 503. */
  load(): Promise<void>;
  apply(change: Change): undefined | Promise<void>;
}

interface State extends RegistryOptions {
  readonly webhooks: Map<string, Webhook>;
  /** Where handlers were created, or last changed hands, of those of which this instance has seen that. */
  readonly begun: Map<string, Beginning>;
  /** Webhooks for all objects, by the addresses of their owners. */
  byAddress: Map<string, Webhook[]>;
  /** Webhooks that name objects, by each `_id`: events of other objects do not consider them. */
  byObject: Map<string, Webhook[]>;
  /** Webhooks by the own ids of objects that they, or the credentials behind them, name. */
  byOwnId: Map<string, Webhook[]>;
  /** How many loads and changes are not done yet, and the last of them. */
  waiting: number;
  last: Promise<unknown>;
}

interface Beginning {
  readonly position: string;
  readonly handover: string | null;
}

export function createRegistry(options: RegistryOptions): Registry {
  const state: State = {
    ...options,
    webhooks: new Map(),
    begun: new Map(),
    byAddress: new Map(),
    byObject: new Map(),
    byOwnId: new Map(),
    waiting: 0,
    last: Promise.resolve(),
  };
  return {
    isEmpty: () => state.byAddress.size + state.byObject.size === 0,
    mayMatch: (objectId) => state.byAddress.size > 0 || state.byObject.has(objectId),
    find: (handlerId) => state.webhooks.get(handlerId),
    isLater: (webhook, change) => isLater(state, webhook, change),
    all: () => state.webhooks.values(),
    match: (event) => match(state, event),
    load: () => inTurn(state, () => load(state)),
    apply(change) {
      // Most changes.
      if (change.store === 'packets') return undefined;
      const isAffected = state.waiting > 0 || change.store === 'handlers' || findAffected(state, change).size > 0;
      return isAffected ? inTurn(state, () => apply(state, change)) : undefined;
    },
  };
}

/** One after the other: a load that takes long must not undo what changed meanwhile. */
async function inTurn(state: State, work: () => Promise<void>): Promise<void> {
  state.waiting++;
  const done = state.last.then(work);
  state.last = done.catch(() => undefined);
  try {
    await done;
  } finally {
    state.waiting--;
  }
}

const NONE: readonly Webhook[] = [];

function match({ byAddress, byObject }: State, event: MatchedEvent): readonly Webhook[] {
  const found: Webhook[] = [];
  const add = (webhooks: readonly Webhook[] | undefined): void => {
    for (const webhook of webhooks ?? NONE)
      if (!found.includes(webhook) && isMatch(webhook, event)) found.push(webhook);
  };
  add(byObject.get(event.objectId));
  if (byAddress.size > 0) for (const address of event.audience) add(byAddress.get(address));
  return found.length === 0 ? NONE : found;
}

/** Whether the webhook selects the object and may send the event. Independent of the index: of a webhook as it was. */
export const isMatchedBy = (webhook: Reach, event: MatchedEvent): boolean =>
  (webhook.objects === null || webhook.objects.has(event.objectId)) && isMatch(webhook, event);

function isMatch(webhook: Reach, { objectId, audience, limits }: MatchedEvent): boolean {
  if (webhook.groupAddress !== null && !audience.includes(webhook.groupAddress)) return false;
  return maySend(webhook, objectId, audience) && (limits === null || isInAudience(webhook, limits));
}

/** As for a client: its owner is none of those who are left out, and one of each of the others. */
function isInAudience({ rights }: Reach, { except, within }: Limits): boolean {
  const own = rights?.addresses[0] ?? [];
  const isIn = (addresses: readonly string[]): boolean => own.some((address) => addresses.includes(address));
  return !isIn(except) && within.every(isIn);
}

/** Times of handlers and of changes are of different clocks: used only where the position is unknown. */
function isLater({ begun }: State, { stored }: Webhook, { position }: Pick<Change, 'position'>): boolean {
  const beginning = begun.get(stored.id);
  if (beginning?.handover === stored.handover) return isAfter(beginning.position, position);
  return secondsOf(position) * 1_000 + 999 < stored.sinceMs;
}

async function load(state: State): Promise<void> {
  const handlers = await loadHandlers(state.database);
  const loaded = await Promise.all(handlers.map((stored) => prepare(state, stored)));
  const before = new Map(state.webhooks);
  state.webhooks.clear();
  for (const webhook of loaded) if (webhook !== null) state.webhooks.set(webhook.stored.id, webhook);
  arrange(state);
  for (const webhook of loaded) if (webhook !== null) noteResumed(state, webhook, before.get(webhook.stored.id));
}

/** A handler that is not a valid webhook is skipped. */
async function prepare(state: State, stored: StoredHandler): Promise<Webhook | null> {
  const settings = findSettings(stored);
  return settings === null ? null : toWebhook(state, stored, settings);
}

function findSettings({ fields }: StoredHandler): WebhookSettings | null {
  try {
    return parseWebhook(fields);
  } catch (error) {
    if (toApiError(error).status === 400) return null;
    throw error;
  }
}

function arrange(state: State): void {
  state.byAddress = new Map();
  state.byObject = new Map();
  state.byOwnId = new Map();
  for (const webhook of state.webhooks.values()) {
    const named = [...(webhook.settings.objects ?? []), ...(webhook.rights?.ownIds ?? [])];
    addTo(state.byOwnId, new Set(named.filter((key) => !isId(key))), webhook);
    if (!webhook.settings.isActive) continue;
    if (webhook.objects !== null) addTo(state.byObject, webhook.objects, webhook);
    else addTo(state.byAddress, webhook.rights?.addresses[0] ?? [], webhook);
  }
}

function addTo(index: Map<string, Webhook[]>, keys: Iterable<string>, webhook: Webhook): void {
  for (const key of keys) {
    const same = index.get(key);
    if (same === undefined) index.set(key, [webhook]);
    else same.push(webhook);
  }
}

const apply = (state: State, change: Change): Promise<void> =>
  change.store === 'handlers' ? reload(state, change) : refresh(state, findAffected(state, change));

/** The webhooks whose rights or objects the change may decide. */
function findAffected({ webhooks, byOwnId }: State, change: Change): ReadonlySet<Webhook> {
  const { store, id } = change;
  const all = [...webhooks.values()];
  if (store === 'users') {
    return new Set(all.filter(({ stored }) => stored.ownerId === id || stored.editor.userId === id));
  }
  if (store === 'roles') {
    // Without rights, a user behind it does not exist or is not active: that is no role's to change.
    return new Set(all.filter(({ rights }) => rights?.roleIds.includes(id)));
  }
  if (store !== 'objects' || byOwnId.size === 0 || !mayHaveChanged(change, NAMING_FIELDS)) return new Set();
  const { kind, before, after } = change;
  // It may have had any id.
  if (kind === 'changed' && (before === null || after === null)) return new Set([...byOwnId.values()].flat());
  return new Set([before, after].flatMap((image) => byOwnId.get(String(image?.id)) ?? []));
}

/** Which object an own id names, and whether its owner sees that. */
const NAMING_FIELDS = ['id', ...ACCESS_FIELDS];

async function reload(state: State, { id, kind, position, changed, after }: Change): Promise<void> {
  const isBeginning = kind === 'created' || (kind === 'changed' && changed?.includes('_handover'));
  if (isBeginning) state.begun.set(id, { position, handover: handoverIn(after) });
  if (kind === 'removed') state.begun.delete(id);
  const stored = await loadHandler(state.database, id);
  const webhook = stored === null ? null : await prepare(state, stored);
  const before = state.webhooks.get(id);
  if (webhook === null) state.webhooks.delete(id);
  else state.webhooks.set(id, webhook);
  arrange(state);
  state.onChange(id);
  if (webhook !== null) noteResumed(state, webhook, before);
}

function noteResumed({ onResume }: State, { stored }: Webhook, before: Webhook | undefined): void {
  if (before !== undefined && before.stored.resumedMs !== stored.resumedMs) onResume(stored.id);
}

async function refresh(state: State, webhooks: ReadonlySet<Webhook>): Promise<void> {
  if (webhooks.size === 0) return;
  const renewed = await Promise.all([...webhooks].map(({ stored, settings }) => toWebhook(state, stored, settings)));
  for (const webhook of renewed) state.webhooks.set(webhook.stored.id, webhook);
  arrange(state);
}
