/**
 * Decides which messages a device may be sending again. A message is marked with the DUP flag when it is sent again, and only a client
 * that continues its session has something to send again (MQTT 3.1.1, sections 3.1.2.4 and 3.3.1.1). Some clients set no flag,
 * and with a clean session too they send again what was not acknowledged.
 */
import { LRUCache } from 'lru-cache';
import { cacheSize } from '../../core/cache-size.js';
import { LIMITS } from '../../core/limits.js';

/** What a device may send again on its connection. */
export interface Session {
  /** Whether any of the first messages may be one that was acknowledged on a lost connection. */
  readonly mayRepeatAll: boolean;
  /** Identifiers of messages that arrived and were not acknowledged, on this connection and on lost ones before it. */
  readonly unanswered: Set<number>;
  /** Identifiers of the first messages that were acknowledged on this connection. */
  readonly acknowledged: Set<number>;
  /** Whether the client keeps its session when the connection ends. */
  readonly isKept: boolean;
  /** How the client ended the connection. */
  ending: Ending;
}

/** `lost`: it did not end it. `closed`: without DISCONNECT. Only what it had to send on a lost connection is worth sending again. */
export type Ending = 'disconnected' | 'closed' | 'lost';

export interface NewConnection {
  /** Whether the device marks each message that it sends again. */
  readonly marksRepeats: boolean;
  /** Whether the device continues the session of its last connection. */
  readonly continuesSession: boolean;
  /** Whether it will keep the session when this connection ends. */
  readonly keepsSession: boolean;
  /** Whether the previous connection had not ended, as far as the database knows. */
  readonly hasTakenOver: boolean;
  /** When the object's latest packet was stored; null for none. */
  readonly storedAtMs: number | null;
  readonly nowMs: number;
}

export interface Sessions {
  /** Begins the session of a new connection. */
  begin(objectId: string, connection: NewConnection): Session;
}

export function createSessions(): Sessions {
  const sessions = new LRUCache<string, Session>(cacheSize(LIMITS.mqttDevicesRemembered));
  return {
    begin(objectId, { marksRepeats, continuesSession, keepsSession, hasTakenOver, storedAtMs, nowMs }) {
      const before = sessions.get(objectId);
      const isContinued = continuesSession && before?.isKept !== false;
      const isRecent = storedAtMs !== null && nowMs - storedAtMs < LIMITS.mqttResendMs;
      // The previous connection was that of another process, which may have failed before it acknowledged.
      const isOfOthers = before === undefined && hasTakenOver;
      const isLost = before?.ending !== 'disconnected' && !marksRepeats;
      // A sensor that closes its connection before the acknowledgement, and sleeps, sends nothing again.
      const isUnanswered = isLost && (isContinued || before?.ending !== 'closed');
      const session: Session = {
        mayRepeatAll: isRecent && isLost && (isContinued || isOfOthers),
        unanswered: new Set(isUnanswered ? [...(before?.unanswered ?? [])].slice(-LIMITS.mqttStoringPerDevice) : []),
        acknowledged: new Set<number>(),
        isKept: keepsSession,
        ending: 'lost',
      };
      sessions.set(objectId, session);
      return session;
    },
  };
}

/** Notes a message that arrived. Returns whether it may be sent again. */
export function noteArrival(session: Session, messageId: number | null, isMarked: boolean): boolean {
  if (messageId === null) return isMarked;
  const isUnanswered = session.unanswered.has(messageId);
  session.unanswered.add(messageId);
  const isNew = session.acknowledged.has(messageId) || !isEarly(session);
  return isMarked || isUnanswered || (session.mayRepeatAll && !isNew);
}

/** Notes that a message is acknowledged. */
export function noteAcknowledgement(session: Session, messageId: number): void {
  session.unanswered.delete(messageId);
  if (isEarly(session)) session.acknowledged.add(messageId);
}

// Devices resend the unacknowledged messages of a lost connection first.
const isEarly = ({ acknowledged }: Session): boolean => acknowledged.size < LIMITS.mqttStoringPerDevice;
