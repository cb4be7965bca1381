/** Which webhooks an event goes to, beside rights, and by which names. Pure. */

import { PRESENCE_EVENTS } from '../core/event-names.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { PRESENCE_FIELDS } from '../core/packet-fields.js';
import { partitionOf } from '../processing/processor.js';
import type { ObjectFacts } from './object-facts.js';
import type { Webhook } from './webhook.js';

/** Whether the webhook selects by what has to be known of the object. */
export const needsFacts = ({ settings: { model, labels } }: Webhook): boolean => model !== null || labels !== null;

/** Whether it selects the object by its model and labels. */
export function isSelected({ settings: { model, labels } }: Webhook, facts: ObjectFacts | null): boolean {
  if (model !== null && facts?.model !== model) return false;
  return labels === null || labels.some((label) => facts?.labels.includes(label) ?? false);
}

/** In a batch everything is in order, so that one partition has all of it. */
export const partitionFor = ({ stored, settings }: Webhook, objectId: string): number =>
  partitionOf(settings.mode === 'batch' ? stored.id : objectId, LIMITS.partitions);

/** The names by which a webhook gets an event; `readPacket` gives the packet of an `object-packet`. */
export function namesOf(
  { settings: { events } }: Webhook,
  name: string,
  readPacket: () => JsonObject | null,
): readonly string[] {
  const names = events.has(name) ? [name] : [];
  if (name !== 'object-packet' || !PRESENCE_EVENTS.some((one) => events.has(one))) return names;
  const presence = presenceOf(readPacket());
  return presence !== null && events.has(presence) ? [...names, presence] : names;
}

const NO_DATA: ReadonlySet<string> = new Set(PRESENCE_FIELDS);

/** The name of a packet that contains nothing but presence. */
export function presenceOf(packet: JsonObject | null): string | null {
  if (packet === null || !Object.keys(packet).every((name) => NO_DATA.has(name))) return null;
  return packet.online === false ? 'offline' : 'online';
}
