/** The messages of an interval out of the stored packets, where the history that would give them is gone. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import {
  listPastObjects,
  type PastObject,
  type PastPacket,
  readStoredPackets,
  type StoredInterval,
} from './past-packets.js';
import { createBodies, type MakeBody, type MessageTask, toTask } from './processor.js';
import type { Registry } from './registry.js';
import { isSelected, namesOf, partitionFor } from './selection.js';
import type { Webhook } from './webhook.js';

export interface RefillParts {
  readonly database: Database;
  readonly registry: Registry;
  readonly now: () => number;
}

/** Object by object; the packets of a few objects together, in the order in which they came. */
export async function* refill(
  parts: RefillParts,
  partitions: readonly number[],
  interval: StoredInterval,
): AsyncGenerator<readonly MessageTask[]> {
  if (parts.registry.isEmpty()) return;
  const wanted = new Set(partitions);
  for (let after: string | null = null; ; ) {
    const objects = await listPastObjects(parts.database, { scope: null, ids: null, after });
    const last = objects.at(-1);
    if (last === undefined) return;
    after = last.id;
    const matched = matchAll(parts.registry, objects, wanted);
    if (matched.size === 0) continue;
    for await (const packets of readStoredPackets(parts.database, [...matched.keys()], interval)) {
      // One by one: the caller may wait after each.
      for (const packet of packets) {
        const tasks = toTasks(packet, matched.get(packet.objectId) ?? [], parts.now());
        if (tasks.length > 0) yield tasks;
      }
    }
  }
}

/** The webhooks of these partitions to which packets of the objects go. */
function matchAll(
  registry: Registry,
  objects: readonly PastObject[],
  wanted: ReadonlySet<number>,
): ReadonlyMap<string, readonly Webhook[]> {
  const matched = new Map<string, readonly Webhook[]>();
  for (const { id, audience, facts } of objects) {
    const webhooks = registry
      .match({ objectId: id, audience, limits: null })
      .filter((webhook) => wanted.has(partitionFor(webhook, id)) && isSelected(webhook, facts));
    if (webhooks.length > 0) matched.set(id, webhooks);
  }
  return matched;
}

function toTasks(packet: PastPacket, webhooks: readonly Webhook[], nowMs: number): MessageTask[] {
  const makeBody = bodiesOf(packet);
  return webhooks
    .filter(({ stored }) => packet.stampUs / 1_000 >= stored.sinceMs)
    .flatMap((webhook) =>
      toPacketMessages(webhook, packet, makeBody).map(({ type, body }) => {
        const partition = partitionFor(webhook, packet.objectId);
        const task = toTask(webhook, { partition, objectId: packet.objectId, type, body, change: null }, nowMs);
        const secondsS = Math.floor(packet.stampUs / 1_000_000);
        const id = toPastId(secondsS, ['refill', webhook.stored.id, packet.objectId, packet.id, type]);
        return { ...task, isOnce: true, delivery: { ...task.delivery, id } };
      }),
    );
}

/** The messages of a stored packet for a webhook, by all names by which it gets it. */
export function toPacketMessages(
  webhook: Webhook,
  packet: PastPacket,
  makeBody: MakeBody = bodiesOf(packet),
): { type: string; body: string }[] {
  const readPacket = (): JsonObject => JSON.parse(packet.json.toString()) as JsonObject;
  return namesOf(webhook, 'object-packet', readPacket).flatMap((type) => {
    const body = makeBody(type, webhook.settings.only);
    return body === null ? [] : [{ type, body }];
  });
}

function bodiesOf({ timeMs, stampUs, json }: PastPacket): MakeBody {
  const shownMs = Math.abs(timeMs) < LIMITS.timeMaxMs ? timeMs : stampUs / 1_000;
  return createBodies({ timeMs: shownMs, position: null, data: json });
}

/** The id of a message that is made again out of the same: the same, so that it is stored once. It begins with a time, as all do. */
export function toPastId(secondsS: number, parts: readonly string[]): string {
  const hash = createHash('sha256').update(parts.join('|')).digest('hex');
  return secondsS.toString(16).padStart(8, '0').slice(-8) + hash.slice(0, 16);
}
