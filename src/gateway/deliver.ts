/**
 * Commands on their way to devices that are connected here: one after the other, each claimed in the journal before it is
 * sent, so that of all instances and connections one sends it, and confirmed there when the device has it.
 */
import { claimCommand, confirmDelivery, hasWaiting, releaseCommands, type StoredCommand } from '../db/commands.js';
import type { Database } from '../db/connect.js';
import { createGrouped } from '../db/in-groups.js';
import { toDelivery } from '../model/command.js';
import { LIMITS } from '../model/limits.js';
import type { Connection } from './connection.js';
import { COMMANDS_TOPIC } from './topics.js';

export interface DeliverParts {
  readonly database: Database;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Deliverer {
  /** The device may be sent what waits for it, if there is anything: most often there is not. */
  look(connection: Connection): void;
  /** There is something for the device: sends it all, if the device listens. */
  wake(connection: Connection): void;
  /** The device confirmed the message with this identifier. */
  confirm(connection: Connection, messageId: number): void;
  /** The connection ended: what it did not confirm waits for the next one. */
  end(connection: Connection): void;
}

/** What is going on with one connection. */
interface Line {
  isBusy: boolean;
  /** Something came while it was. */
  again: boolean;
  isEnded: boolean;
  /** Whether it may have claimed a command: then what is not confirmed is to be released. */
  mayHold: boolean;
  lastId: number;
  /** Told whether the device confirmed what is being sent. */
  onConfirm: ((isConfirmed: boolean) => void) | null;
}

export function createDeliverer(parts: DeliverParts): Deliverer {
  const lines = new WeakMap<Connection, Line>();
  const release = createRelease(parts);
  const lineOf = (connection: Connection): Line => {
    const known = lines.get(connection);
    if (known !== undefined) return known;
    const line = { isBusy: false, again: false, isEnded: false, mayHold: false, lastId: 0, onConfirm: null };
    lines.set(connection, line);
    return line;
  };
  const wake = (connection: Connection): void => {
    const line = lineOf(connection);
    line.again = true;
    if (line.isBusy || line.isEnded || connection.filters.size === 0) return;
    line.isBusy = true;
    sendAll(parts, connection, line)
      .catch((error) => {
        parts.log.warn({ err: error }, 'commands could not be sent: tried again');
        setTimeout(() => wake(connection), LIMITS.commandRetryMs).unref();
      })
      .finally(() => {
        line.isBusy = false;
        if (line.isEnded && line.mayHold) release(connection.id);
      });
  };
  return {
    wake,
    look(connection) {
      hasWaiting(parts.database, connection.device.record.objectId, parts.now()).then(
        (isWaiting) => isWaiting && wake(connection),
        // It cannot be told now: to wake it tries again until it can.
        () => wake(connection),
      );
    },
    confirm(connection, messageId) {
      if (connection.sending === messageId) lineOf(connection).onConfirm?.(true);
    },
    end(connection) {
      const line = lineOf(connection);
      line.isEnded = true;
      line.onConfirm?.(false);
      if (!line.isBusy && line.mayHold) release(connection.id);
    },
  };
}

/** Whoever connects next takes over what was not confirmed in any case; this says so before. */
function createRelease({ database, log }: DeliverParts): (holder: string) => void {
  const grouping = { most: LIMITS.presenceBatch, atOnce: 1, apartMs: LIMITS.presenceGatherMs };
  const release = createGrouped(grouping, async (holders: readonly string[]) => {
    await releaseCommands(database, holders).catch((error) =>
      log.warn({ err: error, devices: holders.length }, 'commands of connections that ended wait for the next ones'),
    );
  });
  return (holder) => void release(holder);
}

async function sendAll(parts: DeliverParts, connection: Connection, line: Line): Promise<void> {
  while (line.again && !line.isEnded) {
    line.again = false;
    for (;;) {
      const { objectId } = connection.device.record;
      // Who fails may hold one without knowing.
      const heldBefore = line.mayHold;
      line.mayHold = true;
      const command = line.isEnded ? null : await claimCommand(parts.database, objectId, connection.id, parts.now());
      if (command === null) line.mayHold = heldBefore;
      if (command === null || line.isEnded) break;
      const isConfirmed = await send(connection, line, command);
      if (isConfirmed) await confirmDelivery(parts.database, command._id, connection.id, parts.now());
    }
  }
}

/** Sends a command; true when the device has it, as far as its subscription lets one know. */
async function send(connection: Connection, line: Line, command: StoredCommand): Promise<boolean> {
  const own = toDelivery(command, connection.device.declared.actions.get(command.command));
  const topic = own.topic ?? `${COMMANDS_TOPIC}/${command.command}`;
  const { filters } = connection;
  // As its subscription to this very topic says, or else with QoS 1 as soon as one of them permits that.
  const qos = filters.get(topic) ?? ([...filters.values()].includes(1) ? 1 : 0);
  line.lastId = (line.lastId % 65_535) + 1;
  const { lastId: messageId } = line;
  let timer: NodeJS.Timeout | undefined;
  const confirmed = new Promise<boolean>((resolve) => {
    line.onConfirm = resolve;
    // A device that confirms nothing is sent the next one all the same.
    timer = setTimeout(() => resolve(false), LIMITS.commandConfirmMs);
  });
  connection.sending = messageId;
  const message = { topic, payload: own.payload, qos, retain: false, dup: false };
  const written = new Promise<boolean>((resolve) => {
    connection.client.publish({ cmd: 'publish', ...message, messageId } as never, (error) => resolve(!error));
  });
  const isConfirmed = await (qos === 0 ? Promise.race([written, confirmed]) : confirmed);
  clearTimeout(timer);
  line.onConfirm = null;
  connection.sending = null;
  return isConfirmed && (qos > 0 || !line.isEnded);
}
