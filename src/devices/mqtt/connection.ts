/** A device's connection to the broker: its identity, its published messages and its subscriptions. */
import type { Client } from 'aedes';
import { LIMITS } from '../../core/limits.js';
import { isTransientError } from '../../platform/mongo/driver/errors.js';
import type { ReportInvalidMessage } from '../invalid-messages.js';
import { type ReceiveDeps, receive } from '../receive.js';
import { isOwnFilter } from '../topics.js';
import type { ConnectCredentials, Device } from './device.js';
import type { PacketLimiter } from './packet-limiter.js';
import { noteAcknowledgement, noteArrival, type Session } from './sessions.js';

export interface Connection {
  /** Unique for each connection. */
  readonly id: string;
  readonly client: Client;
  readonly limiter: PacketLimiter;
  readonly credentials: ConnectCredentials;
  /** Updated when its object or model changes. */
  device: Device;
  /** When it replaced the previous connection, ms by the database's clock. */
  sinceMs: number;
  /** Subscribed filters with their QoS. */
  readonly filters: Map<string, 0 | 1>;
  /** Identifier of the message that is being sent to the device, or null. */
  sending: number | null;
  /** The last possible duplicate in progress: later messages wait for it. Null if there is none. */
  lastSlow: Promise<void> | null;
  /** Aborted when a message could not be stored: the device resends it and all later ones, in order. */
  readonly failure: AbortController;
  /** What the device may send again. */
  readonly session: Session;
}

export interface Published {
  readonly topic: string;
  readonly payload: Buffer | string;
  readonly qos: 0 | 1 | 2;
  readonly dup: boolean;
  readonly messageId?: number | undefined;
}

/**
 * Stores a published message. Resolves when it may be acknowledged: it is stored, or invalid and reported. Rejects if it could not
 * be stored: the connection ends, and the device resends it.
 */
export async function receivePublished(
  deps: ReceiveDeps & { reportInvalidMessage: ReportInvalidMessage },
  connection: Connection,
  published: Published,
): Promise<void> {
  const { record, declared } = connection.device;
  const { topic, payload, qos } = published;
  const messageId = qos === 0 ? null : (published.messageId ?? null);
  const maybeDuplicate = noteArrival(connection.session, messageId, published.dup);
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(payload);
  // Devices do not resend messages with QoS 0.
  const signal = qos === 0 ? null : connection.failure.signal;
  const work = () => receive(deps, record, declared, { topic, payload: bytes, messageId, maybeDuplicate, signal });
  try {
    await runSerially(connection, maybeDuplicate, work);
  } catch (error) {
    // Only temporary errors can disappear when the message is resent.
    if (isTransientError(error)) {
      connection.failure.abort(error);
      throw error;
    }
    deps.reportInvalidMessage(record, topic, error);
  }
  // The acknowledgement cannot be sent any more.
  if (messageId === null || connection.limiter.stream.destroyed) return;
  noteAcknowledgement(connection.session, messageId);
}

/** Runs messages concurrently, so that they share one write, but keeps their order after a possible duplicate, which needs a read. */
function runSerially(connection: Connection, isSlow: boolean, work: () => Promise<void>): Promise<void> {
  const previous = connection.lastSlow;
  const current = previous === null ? work() : previous.then(work, work);
  if (isSlow) {
    const end = (): void => {
      if (connection.lastSlow === current) connection.lastSlow = null;
    };
    connection.lastSlow = current;
    current.then(end, end);
  }
  return current;
}

/** The granted QoS for a filter; null if the device may not subscribe to it. */
export function grant(connection: Connection, { topic, qos }: { topic: string; qos: number }): 0 | 1 | null {
  const { filters, device } = connection;
  if (!isOwnFilter(topic, device.declared)) return null;
  if (!filters.has(topic) && filters.size >= LIMITS.mqttSubscriptions) return null;
  const granted = qos > 0 ? 1 : 0;
  filters.set(topic, granted);
  return granted;
}
