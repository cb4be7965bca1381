/** Who may connect: a device that proves to be one, not too often, and only as long as its proof holds. */
import { randomUUID } from 'node:crypto';
import type { Client } from 'aedes';
import { LRUCache } from 'lru-cache';
import { toApiError, tooManyRequests } from '../errors.js';
import { atMost } from '../model/cache-size.js';
import type { Change } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import type { Connection } from './connection.js';
import { type Claim, checkClaim, type Device, type DeviceFinding, type DeviceParts, findProven } from './device.js';
import { createFailures } from './failures.js';
import type { Guard } from './guard.js';
import type { Presence } from './presence.js';

export interface AdmissionParts extends DeviceParts, DeviceFinding {
  readonly now: () => number;
  readonly presence: Pick<Presence, 'arrive' | 'leave'>;
  readonly log: { debug(details: object, message: string): void };
}

export interface Admission {
  /** The connection of a device. Rejects with `Refusal`. */
  admit(from: { client: Client; guard: Guard }, claim: Claim): Promise<Connection>;
  /** The connection ended. */
  dismiss(connection: Connection): void;
}

/** Why a device may not connect, and what CONNACK says of it; null where that may pass: clients take a CONNACK as final. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly returnCode: number | null,
  ) {
    super(message);
  }
}

/** CONNACK, MQTT 3.1.1: bad user name or password. */
const WRONG_PROOF = 4;

export function createAdmission(parts: AdmissionParts): Admission {
  const connects = new LRUCache<string, { fromMs: number; count: number }>(atMost(LIMITS.mqttDevicesRemembered));
  const leftWell = new LRUCache<string, boolean>(atMost(LIMITS.mqttDevicesRemembered));
  const checking = { ...parts, failures: createFailures(parts.now) };
  const timers = new WeakMap<Connection, NodeJS.Timeout>();
  const watchToken = (connection: Connection): void => {
    const { token } = connection.device;
    if (token === null) return;
    const leftMs = token.expiresAtMs - parts.now();
    if (leftMs <= 0) {
      connection.client.close();
      return;
    }
    timers.set(
      connection,
      setTimeout(() => watchToken(connection), Math.min(leftMs, LIMITS.timerMs)),
    );
  };
  return {
    async admit(from, claim) {
      try {
        const device = await checkClaim(checking, claim);
        const { objectId } = device.record;
        countConnect(connects, objectId, parts.now());
        const id = randomUUID();
        const arrival = await parts.presence.arrive(device.record, id).catch((error) => {
          // It may have been told to be here all the same.
          parts.presence.leave(objectId, id);
          throw error;
        });
        const { sinceMs, storedAtMs } = arrival;
        const isKnown = storedAtMs !== null && parts.now() - storedAtMs < LIMITS.mqttResendMs;
        const isResuming = isKnown && leftWell.get(objectId) !== true;
        const nothing = { filters: new Map(), acknowledged: new Set<number>(), turn: null, sending: null };
        const failure = new AbortController();
        const connection: Connection = { ...nothing, ...from, id, sinceMs, claim, device, isResuming, failure };
        watchToken(connection);
        return connection;
      } catch (error) {
        const { status, message } = toApiError(error);
        parts.log.debug({ clientId: claim.clientId, address: claim.address, status, why: message }, 'device refused');
        throw new Refusal(message, status === 401 ? WRONG_PROOF : null);
      }
    },
    dismiss(connection) {
      clearTimeout(timers.get(connection));
      leftWell.set(connection.device.record.objectId, connection.guard.hasLeft());
    },
  };
}

// A device that connects again and again, or two that share one name, would turn each other out for ever.
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

/** Looks again whether a connection may stay: what it is held to is brought up to the present, or it ends. */
export async function recheck(parts: DeviceParts & DeviceFinding, connection: Connection): Promise<void> {
  const device: Device | null = await findProven(parts, connection.claim).catch((error) => {
    // What cannot be told now is told by the next change, or by the next connection.
    if (toApiError(error).status === 503) return connection.device;
    throw error;
  });
  if (device === null || device.record.objectId !== connection.device.record.objectId) connection.client.close();
  else connection.device = device;
}

/** Whether a change may end a connection, or change what its messages mean. */
export function isConcerned({ device: { record, token } }: Connection, { store, kind, id }: Change): boolean {
  if (store === 'objects') return id === record.objectId;
  if (store === 'models') return id === record.modelId;
  if (token === null) return false;
  if (store === 'tokens') return id === token.id && kind === 'removed';
  if (store === 'users') return id === token.userId;
  return store === 'roles' || (store === 'groups' && kind === 'changed');
}
