/** A device's connection to the broker: its identity, its published messages and its subscriptions. */
import { LIMITS } from '../../core/limits.js';
import { isTransientError } from '../../platform/mongo/driver/errors.js';
import type { ReportInvalidMessage } from '../invalid-messages.js';
import { type ReceiveDeps, receive } from '../receive.js';
import { isOwnFilter, ownTracksCommandsOf } from '../topics.js';
import type { ConnectCredentials, Device } from './device.js';
import type { Peer } from './peer.js';
import { REASON } from './reason-codes.js';
import { noteArrival, type Session } from './sessions.js';

export interface Connection {
  /** Unique for each connection. */
  readonly id: string;
  readonly peer: Peer;
  readonly credentials: ConnectCredentials;
  /** Updated when its object or model changes. */
  device: Device;
  /** When it replaced the previous connection, ms by the database's clock. */
  sinceMs: number;
  /** Subscribed filters with their QoS, in their order: of several for the commands of OwnTracks, the last one counts. */
  readonly filters: Map<string, 0 | 1>;
  /** Identifier of the message that is being sent to the device, or null. */
  sending: number | null;
  /** The last possible duplicate in progress: later messages wait for it. Null if there is none. */
  lastSlow: Promise<void> | null;
  /** Aborted when a message could not be stored: the device resends it and all later ones, in order. */
  readonly failure: AbortController;
  /** What the device may send again. */
  readonly session: Session;
  /** The message that the device leaves if its connection breaks; null for none. */
  will: Published | null;
  /** Acknowledgements that are due, in the order of their messages. */
  readonly acknowledgements: Acknowledgement[];
  /** Identifiers of messages of QoS 2 that the device has not released; null before the first one. */
  unreleased: Set<number> | null;
  /** Topics by their aliases; null before the first one. */
  aliases: Map<number, string> | null;
}

type NewConnection = Pick<Connection, 'id' | 'sinceMs' | 'credentials' | 'device' | 'session' | 'peer' | 'will'>;

export const newConnection = (fields: NewConnection): Connection => ({
  ...fields,
  filters: new Map(),
  sending: null,
  lastSlow: null,
  failure: new AbortController(),
  acknowledgements: [],
  unreleased: null,
  aliases: null,
});

/** The acknowledgement of a message with QoS 1 or 2. */
export interface Acknowledgement {
  readonly messageId: number;
  /** Null until the message is stored, or refused. */
  bytes: Buffer | null;
  /** Whether the connection ends after it, because the message was larger than the client may send. */
  readonly isLast: boolean;
}

export interface Published {
  readonly topic: string;
  readonly payload: Buffer | string;
  readonly qos: 0 | 1 | 2;
  readonly dup: boolean;
  readonly messageId?: number | undefined;
}

/**
 * Stores a published message. Resolves when it may be acknowledged: with null when it is stored, with the error when it is invalid
 * and reported. Rejects if it could not be stored: the connection ends, and the device resends it.
 */
export async function receivePublished(
  deps: ReceiveDeps & { reportInvalidMessage: ReportInvalidMessage },
  connection: Connection,
  published: Published,
): Promise<unknown> {
  const { record, declared } = connection.device;
  const { topic, payload, qos } = published;
  noteBase(connection, topic);
  const messageId = qos === 0 ? null : (published.messageId ?? null);
  const maybeDuplicate = noteArrival(connection.session, messageId, published.dup);
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(payload);
  // Devices do not resend messages with QoS 0.
  const signal = qos === 0 ? null : connection.failure.signal;
  const work = () => receive(deps, record, declared, { topic, payload: bytes, messageId, maybeDuplicate, signal });
  try {
    await runSerially(connection, maybeDuplicate, work);
    return null;
  } catch (error) {
    // Only temporary errors can disappear when the message is resent.
    if (isTransientError(error)) {
      connection.failure.abort(error);
      throw error;
    }
    deps.reportInvalidMessage(record, topic, error);
    return error;
  }
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

/** Subscribes to a filter. Returns the granted QoS, or the reason why not. */
export function grant(connection: Connection, { topic, qos }: { topic: string; qos: number }): number {
  const { filters, device } = connection;
  if (!isOwnFilter(topic, device.declared)) return REASON.notAuthorized;
  if (!filters.has(topic) && filters.size >= LIMITS.mqttSubscriptions) return REASON.quotaExceeded;
  const granted = qos > 0 ? 1 : 0;
  putLast(filters, topic, granted);
  return granted;
}

/** OwnTracks, which may have subscribed to its commands below several bases of its topics, gets them below the one of its last message. */
function noteBase({ filters }: Connection, topic: string): void {
  if (filters.size < 2) return;
  const commands = ownTracksCommandsOf(topic);
  const qos = filters.get(commands);
  if (qos !== undefined) putLast(filters, commands, qos);
}

function putLast(filters: Connection['filters'], filter: string, qos: 0 | 1): void {
  filters.delete(filter);
  filters.set(filter, qos);
}
