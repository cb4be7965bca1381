/** Authenticates connecting devices, limits how often they connect, and ends connections whose credentials become invalid. */

import { LRUCache } from 'lru-cache';
import { cacheSize } from '../../core/cache-size.js';
import type { Change } from '../../core/change.js';
import { toApiError, tooManyRequests } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { clock, type Timer } from '../../platform/clock.js';
import type { Presence } from '../presence/presence.js';
import { createConnectFailures } from './connect-failures.js';
import { type Connection, newConnection, type Published } from './connection.js';
import {
  type ConnectCredentials,
  checkCredentials,
  type Device,
  type DeviceDeps,
  type DeviceFinding,
  findAuthenticated,
} from './device.js';
import type { Peer } from './peer.js';
import { REASON } from './reason-codes.js';
import { createSessions } from './sessions.js';

export interface ConnectAuthDeps extends DeviceDeps, DeviceFinding {
  readonly now: () => number;
  readonly presence: Pick<Presence, 'arrive' | 'leave'>;
  readonly log: { debug(details: object, message: string): void };
}

/** A client that connects. */
export interface Connecting {
  readonly peer: Peer;
  readonly will: Published | null;
  /** Whether the device goes on with its session, so that it may send messages of the previous connection again. */
  readonly continuesSession: boolean;
  /** Whether it keeps the session for its next connection. */
  readonly keepsSession: boolean;
  /** Whether it marks each message that it sends again. */
  readonly marksRepeats: boolean;
}

export interface ConnectAuth {
  /** Rejects with `ConnectError`. */
  authenticate(from: Connecting, credentials: ConnectCredentials): Promise<Connection>;
  /** The connection ended. */
  disconnect(connection: Connection): void;
}

/** Why a connection is refused. Temporary errors are not final: clients treat a CONNACK with an error as final, of any version. */
export class ConnectError extends Error {
  constructor(
    message: string,
    readonly isFinal: boolean,
  ) {
    super(message);
  }
}

export function createConnectAuth(deps: ConnectAuthDeps): ConnectAuth {
  const connects = new LRUCache<string, { fromMs: number; count: number }>(cacheSize(LIMITS.mqttDevicesRemembered));
  const sessions = createSessions();
  const checkDeps = { ...deps, failures: createConnectFailures(deps.now) };
  const timers = new WeakMap<Connection, Timer>();
  const watchToken = (connection: Connection): void => {
    const { token } = connection.device;
    if (token === null) return;
    const leftMs = token.expiresAtMs - deps.now();
    if (leftMs <= 0) {
      connection.peer.end(REASON.notAuthorized, 'the token has expired');
      return;
    }
    timers.set(
      connection,
      clock.setTimeout(() => watchToken(connection), Math.min(leftMs, LIMITS.timerMs)),
    );
  };
  return {
    async authenticate({ continuesSession, keepsSession, marksRepeats, peer, will }, credentials) {
      try {
        const device = await checkCredentials(checkDeps, credentials);
        const { objectId } = device.record;
        countConnect(connects, objectId, deps.now());
        const id = clock.randomId();
        const arrival = await deps.presence.arrive(device.record, id).catch((error) => {
          // The device may have been marked online despite the error.
          deps.presence.leave(objectId, id);
          throw error;
        });
        const { sinceMs, ...previous } = arrival;
        const repeats = { continuesSession, keepsSession, marksRepeats };
        const session = sessions.begin(objectId, { ...previous, ...repeats, nowMs: deps.now() });
        const connection = newConnection({ id, sinceMs, credentials, device, session, peer, will });
        watchToken(connection);
        return connection;
      } catch (error) {
        const { status, message } = toApiError(error);
        deps.log.debug({ ...nameOf(credentials), status, reason: message }, 'device refused');
        throw new ConnectError(message, status === 401);
      }
    },
    disconnect(connection) {
      clock.clearTimer(timers.get(connection));
      connection.session.ending = connection.peer.ending;
    },
  };
}

const nameOf = ({ clientId, address }: ConnectCredentials) => ({ clientId, address });

// Limits reconnect loops: two devices with the same id end each other's connections endlessly.
function countConnect(
  connects: LRUCache<string, { fromMs: number; count: number }>,
  objectId: string,
  nowMs: number,
): void {
  const last = connects.get(objectId);
  if (last === undefined || nowMs - last.fromMs >= 60_000) {
    connects.set(objectId, { fromMs: nowMs, count: 1 });
  } else if (last.count++ >= LIMITS.mqttConnectsPerMinute) {
    throw tooManyRequests(60, 'the device connects too often');
  }
}

/** Authenticates a connection again. Updates its device and model, or closes it. */
export async function recheck(deps: DeviceDeps & DeviceFinding, connection: Connection): Promise<void> {
  const device: Device | null = await findAuthenticated(deps, connection.credentials).catch((error) => {
    // While the database is unavailable, the connection stays; the next change checks it again.
    if (toApiError(error).status === 503) return connection.device;
    throw error;
  });
  if (device !== null && device.record.objectId === connection.device.record.objectId) connection.device = device;
  else connection.peer.end(REASON.notAuthorized, 'the credentials of the device are not valid any more');
}

/** Whether a change may end a connection or change how its messages are parsed. */
export function mayAffectConnections({ device: { record, token } }: Connection, { store, kind, id }: Change): boolean {
  if (store === 'objects') return id === record.objectId;
  if (store === 'models') return id === record.modelId;
  if (token === null) return false;
  if (store === 'tokens') return id === token.id && kind === 'removed';
  if (store === 'users') return id === token.userId;
  return store === 'roles' || (store === 'groups' && kind === 'changed');
}
