/** A webhook as it runs: its settings, and what it may send. */

import type { Scope } from '../core/access.js';
import type { WebhookSettings } from '../core/webhook.js';
import type { StoredHandler } from './handlers.js';

export interface Rights {
  /** What the owner sees. */
  readonly scope: Scope;
  /** An event has to reach at least one address of each: of the owner, and of who set the webhook up. */
  readonly addresses: readonly (readonly string[])[];
  /** The roles and users that decide it. */
  readonly userIds: readonly string[];
  readonly roleIds: readonly string[];
  /** Whether they may read alarms. */
  readonly readsAlarms: boolean;
  /** The objects that credentials name; null where they permit all. */
  readonly permitted: ReadonlySet<string> | null;
  /** Own ids of objects that credentials name. */
  readonly ownIds: readonly string[];
}

/** What something that acts for its owner may send, and of which objects. */
export interface Reach {
  /** Null where its owner, or who set it up, is no active user. */
  readonly rights: Rights | null;
  /** The objects that it names, by `_id`; null for all. */
  readonly objects: ReadonlySet<string> | null;
  /** Where it is another group than the owner's: only what that group sees is sent. */
  readonly groupAddress: string | null;
}

export interface Webhook extends Reach {
  readonly stored: StoredHandler;
  readonly settings: WebhookSettings;
}

/** Whose work it is, in turns with that of others: a user of the root group is a tenant by itself. */
export const tenantOf = ({ stored }: Pick<Webhook, 'stored'>): string => stored.tenantId ?? stored.ownerId;

/** Whether an event of this object may be sent to this webhook. */
export const maySend = (webhook: Reach, objectId: string, audience: readonly string[]): boolean =>
  isPermitted(webhook, objectId) &&
  webhook.rights?.addresses.every((own) => own.some((address) => audience.includes(address))) === true;

/** Whether the credentials behind it permit the object, whoever sees it. */
export const isPermitted = ({ rights }: Reach, objectId: string): boolean =>
  rights !== null && (rights.permitted === null || rights.permitted.has(objectId));
