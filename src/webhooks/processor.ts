/** Webhooks as a user of the engine: changes become rows of the outbox. */

import type { Change } from '../core/change.js';
import { isAlarmEvent } from '../core/event-names.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { isOfObject, isPublishable, type LiveEvent, toEvents } from '../live/events.js';
import {
  type IsWanted,
  NO_TASKS,
  type Outputs,
  type OwnedPartition,
  type Processor,
  type Task,
} from '../processing/processor.js';
import { type Delivery, newDeliveryId, toInserts, toOnceInserts } from './deliveries.js';
import { type EventMessage, toBody } from './message.js';
import { type ObjectFacts, toFacts } from './object-facts.js';
import type { Registry } from './registry.js';
import { isSelected, namesOf, needsFacts, partitionFor } from './selection.js';
import { maySend, tenantOf, type Webhook } from './webhook.js';

/** A message to be stored. */
export interface MessageTask extends Task {
  readonly delivery: Omit<Delivery, 'number'>;
  /** Made of what is stored: it may be stored already, by its id. */
  readonly isOnce?: boolean;
}

export interface ProcessorOptions {
  readonly registry: Registry;
  readonly findAudience: (objectId: string) => readonly string[] | null | Promise<readonly string[] | null>;
  readonly findFacts: (objectId: string) => ObjectFacts | null | Promise<ObjectFacts | null>;
  /** Told of rows that were stored. */
  readonly onStored: (owned: OwnedPartition, deliveries: readonly Delivery[]) => void;
  /** Told of rows that are stored now, or were before. */
  readonly onRefilled: (owned: OwnedPartition, deliveries: readonly Delivery[]) => void;
  readonly acquire: (owned: OwnedPartition) => void;
  readonly leave: (owned: OwnedPartition) => Promise<void>;
  readonly refill: Processor<MessageTask>['refill'];
  readonly now: () => number;
}

export function createProcessor(options: ProcessorOptions): Processor<MessageTask> {
  return {
    name: 'webhooks',
    plan: (change, isWanted) => plan(options, change, isWanted),
    prepare: (owned, tasks, nextNumber) => prepare(options, owned, tasks, nextNumber),
    describe: ({ delivery: { handlerId, objectId, event } }) => ({ handler: handlerId, object: objectId, event }),
    acquire: options.acquire,
    leave: options.leave,
    refill: options.refill,
  };
}

type Planned = readonly MessageTask[] | Promise<readonly MessageTask[]>;

function plan(options: ProcessorOptions, change: Change, isWanted: IsWanted): Planned {
  const { objectId } = change;
  if (objectId === null || !isPublishable(change)) return NO_TASKS;
  if (!options.registry.mayMatch(objectId) && namedIn(change).length === 0) return NO_TASKS;
  if (!isOfObject(change)) return planFor(options, change, null, isWanted);
  const audience = options.findAudience(objectId);
  if (!(audience instanceof Promise)) return planFor(options, change, audience, isWanted);
  return audience.then((found) => planFor(options, change, found, isWanted));
}

function planFor(
  options: ProcessorOptions,
  change: Change,
  audience: readonly string[] | null,
  isWanted: IsWanted,
): Planned {
  const events = toEvents(change, audience);
  const tasks: MessageTask[] = [];
  for (const event of events) {
    const matched = matchOf(options, change, event);
    if (matched.length === 0) continue;
    if (matched.some((one) => needsFacts(one) && !isNamed(change, one))) {
      return planSelected(options, change, { events, isWanted });
    }
    addTasks(options, { change, event, isWanted, matched }, tasks);
  }
  return tasks.length === 0 ? NO_TASKS : tasks;
}

const NO_IDS: readonly string[] = [];

/** The handlers that the rule of an alarm tells, whatever they select. Only alarms are decoded. */
function namedIn(change: Change): readonly string[] {
  const webhooks = change.store === 'alarms' ? change.after?.webhooks : null;
  return Array.isArray(webhooks) ? webhooks.map(String) : NO_IDS;
}

const isNamed = (change: Change, { stored }: Webhook): boolean => namedIn(change).includes(stored.id);

/** The webhooks that may send an event, and select it or are named by the rule of its alarm. */
function matchOf({ registry }: ProcessorOptions, change: Change, event: LiveEvent): readonly Webhook[] {
  const matched = registry.match(event);
  if (!isAlarmEvent(event.name)) return matched;
  const named = namedIn(change).flatMap((id) => registry.find(id) ?? []);
  const may = (webhook: Webhook): boolean =>
    webhook.rights?.readsAlarms === true && maySend(webhook, event.objectId, event.audience);
  const isSending = ({ settings }: Webhook): boolean => settings.isActive;
  return [...new Set([...matched, ...named.filter(isSending)])].filter(may);
}

/** Some select by what has to be known of the object. */
async function planSelected(
  options: ProcessorOptions,
  change: Change,
  { events, isWanted }: { events: readonly LiveEvent[]; isWanted: IsWanted },
): Promise<readonly MessageTask[]> {
  const facts = await findFactsOf(options, change);
  const tasks: MessageTask[] = [];
  for (const event of events) {
    const matched = matchOf(options, change, event).filter((one) => isNamed(change, one) || isSelected(one, facts));
    addTasks(options, { change, event, isWanted, matched }, tasks);
  }
  return tasks;
}

/** Of an object that changes, or is removed, the change itself has them. */
export function findFactsOf(
  { findFacts }: Pick<ProcessorOptions, 'findFacts'>,
  change: Change,
): ObjectFacts | null | Promise<ObjectFacts | null> {
  const image = change.store === 'objects' ? (change.after ?? change.before) : null;
  return image === null ? findFacts(String(change.objectId)) : toFacts(image);
}

interface Matched {
  readonly change: Change;
  readonly event: LiveEvent;
  readonly isWanted: IsWanted;
  readonly matched: readonly Webhook[];
}

function addTasks(options: ProcessorOptions, { change, event, isWanted, matched }: Matched, to: MessageTask[]): void {
  let makeBody: MakeBody | null = null;
  let packet: JsonObject | null = null;
  // Decoded once for all webhooks.
  const readPacket = (): JsonObject | null => {
    packet ??= change.after;
    return packet;
  };
  for (const webhook of matched) {
    const { settings } = webhook;
    const partition = partitionFor(webhook, event.objectId);
    if (!isWanted(partition, tenantOf(webhook)) || options.registry.isLater(webhook, change)) continue;
    const names = isNamed(change, webhook) ? [event.name] : namesOf(webhook, event.name, readPacket);
    for (const type of names) {
      makeBody ??= createBodies({
        timeMs: timeOf(change) ?? options.now(),
        position: change.position,
        data: event.toJson(),
      });
      const body = makeBody(type, settings.only);
      if (body !== null)
        to.push(toTask(webhook, { partition, objectId: event.objectId, type, body, change }, options.now()));
    }
  }
}

export type MakeBody = (type: string, only: readonly string[] | null) => string | null;

/** The bodies of one event: webhooks that get the same share one text, however many they are. */
export function createBodies(message: Omit<EventMessage, 'type'>): MakeBody {
  const made = new Map<string, string | null>();
  return (type, only) => {
    const key = JSON.stringify([type, only]);
    let body = made.get(key);
    if (body === undefined) {
      body = toBody({ ...message, type }, only);
      made.set(key, body);
    }
    return body;
  };
}

/** When it happened, as far as that is stored with it. */
export function timeOf({ store, after }: Change): number | null {
  const time = store === 'objects' ? (after?._at ?? after?.time) : after?.time;
  return typeof time === 'number' && Math.abs(time) < LIMITS.timeMaxMs ? time : null;
}

/** The task of storing a message; it has no change where it was made of what is stored. */
export function toTask(
  webhook: Webhook,
  made: { partition: number; objectId: string; type: string; body: string; change: Pick<Change, 'position'> | null },
  nowMs: number,
): MessageTask {
  const { partition, objectId, type, body, change } = made;
  const { stored } = webhook;
  return {
    partition,
    tenant: tenantOf(webhook),
    position: change?.position ?? null,
    bytes: body.length,
    delivery: {
      id: newDeliveryId(),
      handlerId: stored.id,
      partition,
      objectId,
      event: type,
      body,
      attempts: 0,
      timeMs: nowMs,
      batch: null,
      handover: stored.handover,
    },
  };
}

function prepare(
  { onStored, onRefilled }: ProcessorOptions,
  owned: OwnedPartition,
  tasks: readonly MessageTask[],
  nextNumber: () => number,
): Outputs {
  const fresh: Delivery[] = [];
  const refilled: Delivery[] = [];
  for (const { delivery, isOnce } of tasks) {
    (isOnce === true ? refilled : fresh).push({ ...delivery, number: nextNumber() });
  }
  const writes = [
    ...(fresh.length > 0 ? [toInserts(fresh)] : []),
    ...(refilled.length > 0 ? [toOnceInserts(refilled)] : []),
  ];
  const committed = (): void => {
    if (fresh.length > 0) onStored(owned, fresh);
    if (refilled.length > 0) onRefilled(owned, refilled);
  };
  return { writes, committed };
}
