/** One device's connection to the broker: who it is, and what it publishes and listens to. */
import type { Client } from 'aedes';
import { isAway } from '../db/documents.js';
import { LIMITS } from '../model/limits.js';
import type { Claim, Device } from './device.js';
import type { TellFault } from './faults.js';
import type { Guard } from './guard.js';
import { type ReceiveParts, receive } from './receive.js';
import { isOwnFilter } from './topics.js';

export interface Connection {
  /** Names this one connection of the device. */
  readonly id: string;
  readonly client: Client;
  readonly guard: Guard;
  readonly claim: Claim;
  /** Who it is, as was last found; changes with its object and model. */
  device: Device;
  /** When it took over from the connection before it, ms by the database's clock. */
  sinceMs: number;
  /** Filters it listens to, and with what QoS. */
  readonly filters: Map<string, 0 | 1>;
  /** Identifiers of the first messages that were acknowledged on this connection. */
  readonly acknowledged: Set<number>;
  /** Identifier of the message that is being sent to it; null while there is none. */
  sending: number | null;
  /** The last message that had to be looked for: those after it wait. Null while there is none. */
  turn: Promise<void> | null;
  /** Aborted when a message could not be stored: the device sends it again, and those after it, in their order. */
  readonly failure: AbortController;
  /** Whether the connection before it broke: it may send again what was acknowledged there. */
  readonly isResuming: boolean;
}

export interface Published {
  readonly topic: string;
  readonly payload: Buffer | string;
  readonly qos: 0 | 1 | 2;
  readonly dup: boolean;
  readonly messageId?: number | undefined;
}

/**
 * Takes what a device published: resolves when it may be acknowledged, which is when it is stored, or when it is of no
 * use and was told so. Rejects where it could not be stored: the connection ends, and the device sends it again.
 */
export async function takePublished(
  parts: ReceiveParts & { tellFault: TellFault },
  connection: Connection,
  published: Published,
): Promise<void> {
  const { record, declared } = connection.device;
  const { topic, payload, qos } = published;
  const messageId = qos === 0 ? null : (published.messageId ?? null);
  const isNew = messageId !== null && connection.acknowledged.has(messageId);
  const isSuspect = published.dup || (connection.isResuming && !isNew && isEarly(connection));
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(payload);
  // What is sent once does not come again.
  const signal = qos === 0 ? null : connection.failure.signal;
  const work = () => receive(parts, record, declared, { topic, payload: bytes, messageId, isSuspect, signal });
  try {
    await inTurn(connection, isSuspect, work);
  } catch (error) {
    // What the database does not take now it takes later; whatever else is wrong would be so each time it is sent again.
    if (isAway(error)) {
      connection.failure.abort(error);
      throw error;
    }
    parts.tellFault(record, topic, error);
  }
  if (messageId !== null && isEarly(connection)) connection.acknowledged.add(messageId);
}

/** Messages are stored as they come, so that they go into one write; but none before one that has to be looked for. */
function inTurn(connection: Connection, isSlow: boolean, work: () => Promise<void>): Promise<void> {
  const before = connection.turn;
  const turn = before === null ? work() : before.then(work, work);
  if (isSlow) {
    const end = (): void => {
      if (connection.turn === turn) connection.turn = null;
    };
    connection.turn = turn;
    turn.then(end, end);
  }
  return turn;
}

// What was under way when the connection broke comes first on the next one.
const isEarly = ({ acknowledged }: Connection): boolean => acknowledged.size < LIMITS.mqttStoringPerDevice;

/** The QoS that is granted for a filter, or null where it is not the device's to listen to. */
export function grant(connection: Connection, { topic, qos }: { topic: string; qos: number }): 0 | 1 | null {
  const { filters, device } = connection;
  if (!isOwnFilter(topic, device.declared)) return null;
  if (!filters.has(topic) && filters.size >= LIMITS.mqttSubscriptions) return null;
  const granted = qos > 0 ? 1 : 0;
  filters.set(topic, granted);
  return granted;
}
