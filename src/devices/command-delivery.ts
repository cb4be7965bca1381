/**
 * Delivers commands to devices that are connected to this instance, one at a time. Each command is claimed in the database before
 * it is sent, so that only one connection sends it, and marked as delivered when the device confirms it.
 */

import {
  claimCommand,
  confirmDelivery,
  finishCommand,
  hasWaiting,
  releaseClaim,
  releaseCommands,
  type StoredCommand,
} from '../commands/command-store.js';
import type { CommandOutcome } from '../core/command.js';
import { toApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock, type Timer } from '../platform/clock.js';
import { createMinuteCount } from '../platform/minute-count.js';
import { createBulkQueue } from '../platform/mongo/driver/bulk-queue.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { toMessage } from './command-message.js';
import { toProperties } from './command-properties.js';
import type { Connection } from './mqtt/connection.js';
import { FIRST_FAILURE } from './mqtt/reason-codes.js';
import { isOwnTracksCommands } from './topics.js';

export interface DeliveryDeps {
  readonly database: Database;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Deliverer {
  /** Delivers waiting commands. Checks cheaply first, since usually none are waiting. */
  deliver(connection: Connection): void;
  /** Delivers commands after a change, if the device has a subscription. */
  wake(connection: Connection): void;
  /** The device confirmed the message with this identifier, or refused it with a reason code of MQTT 5. */
  confirm(connection: Connection, messageId: number, reasonCode: number): void;
  /** The connection ended: its unconfirmed commands wait for the next connection. */
  end(connection: Connection): void;
}

interface DeliveryState {
  isBusy: boolean;
  /** Set if a wake-up arrived during a delivery. */
  again: boolean;
  isEnded: boolean;
  /** Whether the connection may have claimed a command, which must then be released. */
  mayHold: boolean;
  /** When the claim was made that failed last: it may have claimed a command, which nobody has sent. Null for none. */
  unsureMs: number | null;
  lastId: number;
  /** Identifiers of messages that the device has not confirmed or refused. */
  readonly unconfirmed: Set<number>;
  /** Receives what became of the current command. */
  onConfirm: ((fate: Fate) => void) | null;
}

const newState = (): DeliveryState => ({
  isBusy: false,
  again: false,
  isEnded: false,
  mayHold: false,
  unsureMs: null,
  lastId: 0,
  unconfirmed: new Set(),
  onConfirm: null,
});

/**
 * What became of a command that was sent: the device refused it with an outcome, or confirmed it; it was written to a device that
 * confirms nothing (QoS 0); or neither.
 */
type Fate = CommandOutcome | 'confirmed' | 'written' | 'unconfirmed';

export function createDeliverer(deps: DeliveryDeps): Deliverer {
  const states = new WeakMap<Connection, DeliveryState>();
  const release = createRelease(deps);
  const failures = createMinuteCount();
  const stateOf = (connection: Connection): DeliveryState => {
    const known = states.get(connection);
    if (known !== undefined) return known;
    const state = newState();
    states.set(connection, state);
    return state;
  };
  const wake = (connection: Connection): void => {
    const state = stateOf(connection);
    state.again = true;
    if (state.isBusy || state.isEnded || connection.filters.size === 0) return;
    state.isBusy = true;
    sendAll(deps, connection, state)
      .catch((error) => {
        const failed = failures();
        if (failed !== null) deps.log.warn({ err: error, failed }, 'failed to send commands; retrying');
        clock.setTimeout(() => wake(connection), LIMITS.commandRetryMs).unref();
      })
      .finally(() => {
        state.isBusy = false;
        if (state.isEnded && state.mayHold) release(connection.id);
        // Woken after the last look, and before this.
        else if (state.again) wake(connection);
      });
  };
  return {
    wake,
    deliver(connection) {
      hasWaiting(deps.database, connection.device.record.objectId, deps.now()).then(
        (isWaiting) => isWaiting && wake(connection),
        // The check failed: `wake` retries until the database answers.
        () => wake(connection),
      );
    },
    confirm(connection, messageId, reasonCode) {
      const state = stateOf(connection);
      const wasFull = isFull(connection, state);
      state.unconfirmed.delete(messageId);
      if (connection.sending === messageId) state.onConfirm?.(toFate(reasonCode));
      if (wasFull) wake(connection);
    },
    end(connection) {
      const state = stateOf(connection);
      state.isEnded = true;
      state.onConfirm?.('unconfirmed');
      if (!state.isBusy && state.mayHold) release(connection.id);
    },
  };
}

/** Whether the device takes no more messages before it confirms one: its Receive Maximum ([MQTT-3.3.4-9]). */
const isFull = ({ peer }: Connection, { unconfirmed }: DeliveryState): boolean =>
  unconfirmed.size >= peer.limits.receiveMaximum;

/** A device of MQTT 5 may refuse a command in its PUBACK (section 3.4.2.1). */
function toFate(reasonCode: number): Fate {
  if (reasonCode < FIRST_FAILURE) return 'confirmed';
  return { status: 'failed', result: { reasonCode, message: 'the device refused the command' } };
}

/** Releases unconfirmed commands. The next connection takes them over in any case; until then they are listed as queued. */
function createRelease({ database, log }: DeliveryDeps): (holder: string) => void {
  const grouping = { maxItems: LIMITS.presenceBatch, atOnce: 1, apartMs: LIMITS.presenceGatherMs };
  const release = createBulkQueue(grouping, async (holders: readonly string[]) => {
    await releaseCommands(database, holders).catch((error) =>
      log.warn(
        { err: error, devices: holders.length },
        'failed to release commands of ended connections; the next connections take them over',
      ),
    );
  });
  return (holder) => void release(holder);
}

async function sendAll(deps: DeliveryDeps, connection: Connection, state: DeliveryState): Promise<void> {
  while (state.again && !state.isEnded) {
    state.again = false;
    if (state.unsureMs !== null) await releaseClaim(deps.database, connection.id, state.unsureMs);
    state.unsureMs = null;
    for (;;) {
      const { objectId } = connection.device.record;
      // A failed claim may have succeeded in the database.
      const heldBefore = state.mayHold;
      state.mayHold = true;
      const isOver = state.isEnded || isFull(connection, state);
      const nowMs = deps.now();
      state.unsureMs = isOver ? null : nowMs;
      const command = isOver ? null : await claimCommand(deps.database, objectId, connection.id, nowMs);
      state.unsureMs = null;
      if (command === null) state.mayHold = heldBefore;
      if (command === null || state.isEnded) break;
      const fate = await send(connection, state, command, deps.now());
      if (fate === 'unconfirmed') continue;
      // The device has what it confirms, also if a connection that has broken without a word has taken the command since.
      const holder = fate === 'confirmed' ? null : connection.id;
      if (typeof fate === 'string') await confirmDelivery(deps.database, command._id, holder, deps.now());
      else await finish(deps, { objectId, commandId: command._id }, fate);
    }
  }
}

/** The command may have ended meanwhile: then that counts. */
async function finish(
  deps: DeliveryDeps,
  command: { objectId: string; commandId: string },
  outcome: CommandOutcome,
): Promise<void> {
  await finishCommand(deps.database, command, outcome, deps.now()).catch((error) => {
    if (![404, 409].includes(toApiError(error).status)) throw error;
  });
}

/** Where OwnTracks expects its commands on a connection that has subscribed to them and to nothing else; null for other devices. */
function ownTracksTopicOf({ filters, device }: Connection): string | null {
  const topics = [...filters.keys()];
  const named = new Set([...device.declared.actions.values()].map(({ topic }) => topic));
  // The one below which the device has published last is the last one.
  return topics.every((topic) => isOwnTracksCommands(topic) && !named.has(topic)) ? (topics.at(-1) ?? null) : null;
}

/** Sends a command. Returns what became of it, as far as the QoS of its subscription allows to know. */
async function send(
  connection: Connection,
  state: DeliveryState,
  command: StoredCommand,
  nowMs: number,
): Promise<Fate> {
  const { peer, filters } = connection;
  const { topic, payload } = toMessage(command, connection.device.declared, ownTracksTopicOf(connection));
  // The QoS of the subscription to this exact topic, otherwise the highest of all subscriptions.
  const qos = filters.get(topic) ?? ([...filters.values()].includes(1) ? 1 : 0);
  const messageId = nextId(state);
  const message = { cmd: 'publish', topic, payload, qos, retain: false, dup: false, messageId } as const;
  const properties = peer.version === 5 ? toProperties(command, '', nowMs) : undefined;
  const bytes = peer.encode({ ...message, ...(properties && { properties }) });
  // [MQTT-3.1.2-25]: it will never be sent to this device.
  if (bytes === null) {
    const limit = peer.limits.maxPacketBytes;
    return { status: 'failed', result: { message: `larger than the ${limit} bytes that the device accepts` } };
  }
  let timer: Timer | undefined;
  const confirmed = new Promise<Fate>((resolve) => {
    state.onConfirm = resolve;
    // A device that never confirms still receives the next command.
    timer = clock.setTimeout(() => resolve('unconfirmed'), LIMITS.commandConfirmMs);
  });
  connection.sending = messageId;
  if (qos > 0) state.unconfirmed.add(messageId);
  const written = new Promise<Fate>((resolve) => {
    peer.write(bytes, (isSent) => resolve(isSent ? 'written' : 'unconfirmed'));
  });
  const fate = await (qos === 0 ? Promise.race([written, confirmed]) : confirmed);
  clock.clearTimer(timer);
  state.onConfirm = null;
  connection.sending = null;
  return qos === 0 && state.isEnded ? 'unconfirmed' : fate;
}

// [MQTT-2.2.1-4]: an identifier that is not in use. There are always some: Receive Maximum is at most 65,535.
function nextId(state: DeliveryState): number {
  do state.lastId = (state.lastId % 65_535) + 1;
  while (state.unconfirmed.has(state.lastId));
  return state.lastId;
}
