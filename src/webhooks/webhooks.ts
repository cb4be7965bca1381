/** Webhooks: the handlers, what is to be sent to them, and how it is sent. */

import { backoffMs } from '../core/backoff.js';
import type { Change } from '../core/change.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { parseWebhook } from '../core/webhook.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { Processor } from '../processing/processor.js';
import { newDeliveryId } from './deliveries.js';
import type { Outcome } from './delivery.js';
import { createDispatcher, type Dispatcher } from './dispatcher.js';
import { deactivateHandler, loadHandler } from './handlers.js';
import { toBody, toMessageId } from './message.js';
import { createObjectFacts } from './object-facts.js';
import { createProcessor, type MessageTask } from './processor.js';
import { sendMessage } from './receiver.js';
import { refill } from './refill.js';
import { createRegistry, type Registry } from './registry.js';
import { type ReplayOptions, requestReplay, startReplays } from './replays.js';
import type { Sender } from './request.js';
import { createResults } from './results.js';
import type { RightsParts } from './rights.js';
import { startUpkeep, type Upkeep } from './upkeep.js';
import type { Webhook } from './webhook.js';

export interface WebhooksOptions extends RightsParts {
  readonly database: Database;
  readonly findAudience: (objectId: string) => readonly string[] | null | Promise<readonly string[] | null>;
  /** How requests are sent: one for each receiver. */
  readonly createSender: () => Sender;
  /** `ms` is how long a request took, null where none was sent; `delayMs` how long it took until the receiver had a message. */
  readonly onOutcome: (outcome: Outcome | 'overflowed', count: number, ms: number | null, delayMs?: number) => void;
  readonly onDisabled: (webhook: Webhook) => void;
  /** Told at most once an hour of a webhook whose queue is full. */
  readonly onOverflow: (webhook: Webhook, counts: { readonly dead: number; readonly removed: number }) => void;
  /** For replays: the history, up to where everything has happened, and who is told of their ends. */
  readonly openHistory: ReplayOptions['openHistory'];
  readonly livePosition: ReplayOptions['livePosition'];
  readonly onReplayed: ReplayOptions['onReplayed'];
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
  readonly now: () => number;
}

export interface Webhooks {
  readonly processor: Processor<MessageTask>;
  readonly registry: Registry;
  /** Reads the handlers. Throws 503. */
  start(): Promise<void>;
  /** A change, before the processor receives it. */
  apply(change: Change): undefined | Promise<void>;
  /** Changes were missed. Resolves when the handlers have been read again, however long the database stays away. */
  reload(): Promise<void>;
  /** Sends a message that says nothing, and gives what the receiver answered; null where nothing can be sent. */
  sendTest(handlerId: string): Promise<JsonObject | null>;
  /** Has events of the past sent; false where nothing can be sent. Throws 400, 409, 429, 503. */
  requestReplay(request: Parameters<typeof requestReplay>[1]): Promise<boolean>;
  stats(): ReturnType<Dispatcher['stats']> & { readonly waiting: number };
  stop(): Promise<void>;
}

export function createWebhooks(options: WebhooksOptions): Webhooks {
  const { database } = options;
  const stopping = new AbortController();
  const facts = createObjectFacts(database);
  const registry = createRegistry({
    ...options,
    onChange: (handlerId) => dispatcher.refresh(handlerId),
    onResume: (handlerId) => dispatcher.resume(handlerId),
  });
  const dispatcher = createOwnDispatcher(options, registry, stopping.signal);
  const replayOptions = { ...options, registry, findFacts: facts.find };
  let upkeep: Upkeep | null = null;
  let replays: ReturnType<typeof startReplays> | null = null;
  const processor = createProcessor({
    registry,
    findAudience: options.findAudience,
    findFacts: facts.find,
    now: options.now,
    onStored(owned, deliveries) {
      upkeep?.add(deliveries);
      dispatcher.offer(owned, deliveries);
    },
    onRefilled(owned, deliveries) {
      upkeep?.add(deliveries);
      dispatcher.recheck(owned, deliveries);
    },
    acquire: dispatcher.acquire,
    leave: dispatcher.leave,
    refill: (partitions, interval) => refill({ database, registry, now: options.now }, partitions, interval),
  });
  return {
    processor,
    registry,
    stats: () => ({ ...dispatcher.stats(), waiting: upkeep?.waiting() ?? 0 }),
    async start() {
      await registry.load();
      upkeep ??= startOwnUpkeep(options, registry);
      replays ??= startReplays(replayOptions);
    },
    apply(change) {
      facts.apply(change);
      return registry.apply(change);
    },
    sendTest: (handlerId) => sendTest(options, handlerId),
    requestReplay: (request) => requestReplay(replayOptions, request),
    async reload() {
      facts.forgetAll();
      await loadUntilRead(options, registry, stopping.signal);
    },
    async stop() {
      stopping.abort();
      dispatcher.stop();
      await Promise.all([upkeep?.stop(), replays?.stop()]);
    },
  };
}

async function loadUntilRead({ log }: WebhooksOptions, registry: Registry, stopped: AbortSignal): Promise<void> {
  for (let failures = 0; !stopped.aborted; failures++) {
    try {
      return await registry.load();
    } catch (error) {
      log.warn({ err: error }, 'failed to read webhooks; retrying');
      await clock.wait(backoffMs(failures + 1, LIMITS.partitionTickMs, LIMITS.databaseRetryPauseMaxMs, clock.random()));
    }
  }
}

const createOwnDispatcher = (options: WebhooksOptions, registry: Registry, stopped: AbortSignal): Dispatcher =>
  createDispatcher({
    ...options,
    registry,
    results: createResults({ database: options.database, log: options.log, stopped }),
    onGone: (webhook) => void disable(options, webhook),
  });

const startOwnUpkeep = (options: WebhooksOptions, registry: Registry): Upkeep =>
  startUpkeep({
    ...options,
    isPresent: (handlerId) => registry.find(handlerId) !== undefined,
    onOverflow(handlerId, counts) {
      const webhook = registry.find(handlerId);
      if (webhook !== undefined) options.onOverflow(webhook, counts);
    },
  });

async function sendTest(options: WebhooksOptions, handlerId: string): Promise<JsonObject | null> {
  const stored = await loadHandler(options.database, handlerId);
  const settings = stored === null ? null : parseWebhook(stored.fields);
  if (stored === null || settings === null) return null;
  const id = newDeliveryId();
  const nowMs = options.now();
  const data = Buffer.from(JSON.stringify({ handler: handlerId }));
  const body = toBody({ type: 'webhook-test', timeMs: nowMs, position: null, data }, null) as string;
  const sender = options.createSender();
  const { signal } = new AbortController();
  const webhook = { stored, settings, rights: null, objects: null, groupAddress: null };
  try {
    const { status, error, answer, ms } = await sendMessage({ sender }, webhook, { id, body, nowMs, signal });
    return { id: toMessageId(id), status, error, answer, ms };
  } finally {
    sender.close();
  }
}

async function disable({ database, onDisabled, log, now }: WebhooksOptions, webhook: Webhook): Promise<void> {
  const handler = webhook.stored.id;
  try {
    await deactivateHandler(database, handler, now());
    log.warn({ handler }, 'a webhook is disabled: its receiver answered 410');
    onDisabled(webhook);
  } catch (error) {
    log.warn({ err: error, handler }, 'failed to disable a webhook');
  }
}
