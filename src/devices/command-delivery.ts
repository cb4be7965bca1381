/**
 * Delivers commands to devices that are connected to this instance, one at a time. Each command is claimed in the database before
 * it is sent, so that only one connection sends it, and marked as delivered when the device confirms it.
 */

import {
  claimCommand,
  confirmDelivery,
  hasWaiting,
  releaseCommands,
  type StoredCommand,
} from '../commands/command-store.js';
import { toDelivery } from '../core/command.js';
import { LIMITS } from '../core/limits.js';
import { clock, type Timer } from '../platform/clock.js';
import { createBulkQueue } from '../platform/mongo/driver/bulk-queue.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { Connection } from './mqtt/connection.js';
import { COMMANDS_TOPIC } from './topics.js';

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
  /** The device confirmed the message with this identifier. */
  confirm(connection: Connection, messageId: number): void;
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
  lastId: number;
  /** Receives whether the device confirmed the current command. */
  onConfirm: ((isConfirmed: boolean) => void) | null;
}

export function createDeliverer(deps: DeliveryDeps): Deliverer {
  const states = new WeakMap<Connection, DeliveryState>();
  const release = createRelease(deps);
  const stateOf = (connection: Connection): DeliveryState => {
    const known = states.get(connection);
    if (known !== undefined) return known;
    const state = { isBusy: false, again: false, isEnded: false, mayHold: false, lastId: 0, onConfirm: null };
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
        deps.log.warn({ err: error }, 'failed to send commands; retrying');
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
    confirm(connection, messageId) {
      if (connection.sending === messageId) stateOf(connection).onConfirm?.(true);
    },
    end(connection) {
      const state = stateOf(connection);
      state.isEnded = true;
      state.onConfirm?.(false);
      if (!state.isBusy && state.mayHold) release(connection.id);
    },
  };
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
    for (;;) {
      const { objectId } = connection.device.record;
      // A failed claim may have succeeded in the database.
      const heldBefore = state.mayHold;
      state.mayHold = true;
      const command = state.isEnded ? null : await claimCommand(deps.database, objectId, connection.id, deps.now());
      if (command === null) state.mayHold = heldBefore;
      if (command === null || state.isEnded) break;
      const isConfirmed = await send(connection, state, command);
      if (isConfirmed) await confirmDelivery(deps.database, command._id, connection.id, deps.now());
    }
  }
}

/** Sends a command. Returns whether the device received it, as far as the QoS of its subscription allows to know. */
async function send(connection: Connection, state: DeliveryState, command: StoredCommand): Promise<boolean> {
  const own = toDelivery(command, connection.device.declared.actions.get(command.command));
  const topic = own.topic ?? `${COMMANDS_TOPIC}/${command.command}`;
  const { filters } = connection;
  // The QoS of the subscription to this exact topic, otherwise the highest of all subscriptions.
  const qos = filters.get(topic) ?? ([...filters.values()].includes(1) ? 1 : 0);
  state.lastId = (state.lastId % 65_535) + 1;
  const { lastId: messageId } = state;
  let timer: Timer | undefined;
  const confirmed = new Promise<boolean>((resolve) => {
    state.onConfirm = resolve;
    // A device that never confirms still receives the next command.
    timer = clock.setTimeout(() => resolve(false), LIMITS.commandConfirmMs);
  });
  connection.sending = messageId;
  const message = { topic, payload: own.payload, qos, retain: false, dup: false };
  const written = new Promise<boolean>((resolve) => {
    connection.client.publish({ cmd: 'publish', ...message, messageId } as never, (error) => resolve(!error));
  });
  const isConfirmed = await (qos === 0 ? Promise.race([written, confirmed]) : confirmed);
  clock.clearTimer(timer);
  state.onConfirm = null;
  connection.sending = null;
  return isConfirmed && (qos > 0 || !state.isEnded);
}
