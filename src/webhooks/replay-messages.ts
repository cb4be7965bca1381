/** Reads the next messages of a replay: after a position out of the history, of an interval out of the stored packets. */

import type { Change, OpenHistory } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { isAfter } from '../core/position.js';
import { isPublishable, toPastEvents } from '../live/events.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { type Delivery, FIRST_REPLAYED_NUMBER } from './deliveries.js';
import { toBody } from './message.js';
import type { ObjectFacts } from './object-facts.js';
import { listPastObjects, listPastPackets, type PastObject } from './past-packets.js';
import { findFactsOf, timeOf } from './processor.js';
import { toPacketMessages, toPastId } from './refill.js';
import { isMatchedBy } from './registry.js';
import type { Replay, ReplayPlace } from './replay-store.js';
import { isSelected, namesOf, needsFacts, partitionFor } from './selection.js';
import type { Webhook } from './webhook.js';

export interface ReplayParts {
  readonly database: Database;
  readonly openHistory: OpenHistory;
  readonly findAudience: (objectId: string) => readonly string[] | null | Promise<readonly string[] | null>;
  readonly findFacts: (objectId: string) => ObjectFacts | null | Promise<ObjectFacts | null>;
  readonly now: () => number;
}

/** Some messages, and where it goes on: null at its end, `gone` where the history ends before that. */
export interface ReplayPart {
  readonly deliveries: readonly Delivery[];
  readonly place: ReplayPlace | 'gone' | null;
}

interface Message {
  readonly objectId: string;
  readonly type: string;
  readonly body: string;
  /** What it was made of. */
  readonly source: string;
}

/** Stops after `webhookReplayAhead` messages, or a while. */
export async function readReplay(parts: ReplayParts, webhook: Webhook, replay: Replay): Promise<ReplayPart> {
  const read = replay.range.since === null ? readPackets : readHistory;
  const messages: Message[] = [];
  const place = await read(parts, webhook, replay, messages);
  return { deliveries: messages.map((message, index) => toDelivery(webhook, replay, { ...message, index })), place };
}

function toDelivery(
  webhook: Webhook,
  { id, timeMs, messages }: Replay,
  { objectId, type, body, source, index }: Message & { index: number },
): Delivery {
  return {
    id: toPastId(Math.floor(timeMs / 1_000), [id, objectId, source, type]),
    handlerId: webhook.stored.id,
    partition: partitionFor(webhook, objectId),
    objectId,
    event: type,
    body,
    number: FIRST_REPLAYED_NUMBER + messages + index,
    attempts: 0,
    timeMs,
    batch: null,
    handover: webhook.stored.handover,
  };
}

type Read = (parts: ReplayParts, webhook: Webhook, replay: Replay, to: Message[]) => Promise<ReplayPart['place']>;

const createIsEnough = (messages: readonly Message[]): (() => boolean) => {
  const untilMs = clock.steadyMs() + LIMITS.webhookReplayTurnMs;
  return () => messages.length >= LIMITS.webhookReplayAhead || clock.steadyMs() > untilMs;
};

const readHistory: Read = async (parts, webhook, { range, until, place }, to) => {
  const isEnough = createIsEnough(to);
  const history = await parts.openHistory(place.position ?? (range.since as string));
  if (history === null) return 'gone';
  for await (const { changes, upTo } of history) {
    for (const change of changes) {
      if (isAfter(change.position, until)) return null;
      to.push(...(await toMessages(parts, webhook, change)));
    }
    if (!isAfter(until, upTo)) return null;
    if (isEnough()) return { ...place, position: upTo };
  }
  return null;
};

/** With the rights of now, as for a client that reconnects. */
async function toMessages(
  { findAudience, findFacts, now }: ReplayParts,
  webhook: Webhook,
  change: Change,
): Promise<Message[]> {
  const { objectId } = change;
  if (!isPublishable(change) || objectId === null) return [];
  const events = toPastEvents(change, await findAudience(objectId)).filter((event) => isMatchedBy(webhook, event));
  if (events.length === 0) return [];
  if (needsFacts(webhook) && !isSelected(webhook, await findFactsOf({ findFacts }, change))) return [];
  return events.flatMap((event) =>
    namesOf(webhook, event.name, () => change.after).flatMap((type) => {
      const timeMs = timeOf(change) ?? now();
      const message = { type, timeMs, position: change.position, data: event.toJson() };
      const body = toBody(message, webhook.settings.only);
      return body === null ? [] : [{ objectId, type, body, source: change.position }];
    }),
  );
}

const readPackets: Read = async (parts, webhook, replay, to) => {
  const isEnough = createIsEnough(to);
  const { database } = parts;
  let { place } = replay;
  for (;;) {
    const selection = { scope: webhook.rights?.scope ?? null, ids: webhook.objects, after: place.doneObject };
    const objects = await listPastObjects(database, selection);
    if (objects.length === 0) return null;
    for (const object of objects) {
      const { id, audience, facts } = object;
      const isMatched = isMatchedBy(webhook, { objectId: id, audience, limits: null });
      if (isMatched && isSelected(webhook, facts)) {
        const packet = await readObject(parts, webhook, { object, replay, place, isEnough }, to);
        if (packet !== null) return { ...place, object: id, packet };
      }
      place = { position: null, doneObject: id, object: null, packet: null };
      if (isEnough()) return place;
    }
  }
};

/** The place in the object where there was enough; null where it is done. */
async function readObject(
  { database }: ReplayParts,
  webhook: Webhook,
  {
    object,
    replay,
    place,
    isEnough,
  }: { object: PastObject; replay: Replay; place: ReplayPlace; isEnough: () => boolean },
  to: Message[],
): Promise<ReplayPlace['packet']> {
  const { fromMs, toMs } = replay.range as { fromMs: number; toMs: number };
  let packet = place.object === object.id ? place.packet : null;
  for (;;) {
    const packets = await listPastPackets(database, object.id, { fromMs, toMs, place: packet });
    for (const one of packets) {
      // The one at the place comes again.
      if (one.id === packet?.id) continue;
      const made = toPacketMessages(webhook, one);
      to.push(...made.map((message) => ({ ...message, objectId: object.id, source: one.id })));
    }
    const last = packets.at(-1);
    if (last === undefined || packets.length < LIMITS.historyPage) return null;
    packet = { id: last.id, timeMs: last.timeMs, stampUs: last.stampUs };
    if (isEnough()) return packet;
  }
}
